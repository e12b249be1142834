"""Budgets with real hosts and processes: what operations spend, and what people add."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from hostler import Ask, Budget, Demand, Host, OperationFailed, Policy, RunLimits, operation, workflow
from hostler.config import Config
from store.amounts import Amounts
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.lifecycle import RunStatus
from store.reader import Reader
from store.requests import post
from tests.support import until


class Price(BaseModel):
    cost: str


def _pay(ctx: Any, input: Price) -> Price:
    with pytest.raises(OperationFailed, match="no amount"):
        ctx.spend(cost="-1")
    ctx.spend(cost=input.cost)
    ctx.spend(tokens=3)
    return input


ASK = Demand(ask=Ask(cost=Decimal("0.5")))


@operation("test.pay", version=1, policy=Policy(effect="local-read", budget=ASK))
def pay(ctx, input: Price) -> Price:
    return _pay(ctx, input)


@operation("test.pay-apart", version=1, policy=Policy(effect="local-read", budget=ASK, isolation="process"))
def pay_apart(ctx, input: Price) -> Price:
    return _pay(ctx, input)


@workflow("paying", version=1, limits=RunLimits(budget=Budget(cost=Decimal("0.6"))))
def paying(build, *, apart: bool = False):
    build.call(pay_apart if apart else pay, key="a", input={"cost": "0.10"})
    build.call(pay_apart if apart else pay, key="b", input={"cost": "0.2"})


def reader() -> Reader:
    return Reader.open(Home.open(Config.load().home, create=False))


@pytest.mark.parametrize("apart", [False, True])
def test_what_an_operation_spends_is_recorded_and_the_rest_comes_back(apart: bool) -> None:
    """G6 with real hosts: b waits for what a gives back; 0.1 is spent, 0.5 are left, and that is enough."""
    with Host() as host:
        run = host.submit(paying, apart=apart)
        assert run.wait(60).status is RunStatus.COMPLETED
    with reader() as look:
        spent = {one.node: one.spent for one in look.ledgers(run.run_id)}
    assert {node: (one.cost, one.tokens, one.tasks) for node, one in spent.items()} == {
        "a": (Decimal("0.1"), 3, 1),
        "b": (Decimal("0.2"), 3, 1),
    }
    assert all(one.seconds > 0 for one in spent.values())


@workflow("too-dear", version=1, limits=RunLimits(budget=Budget(cost=Decimal("0.4"))))
def too_dear(build):
    build.call(pay, key="a", input={"cost": "0.3"})


def test_an_addition_wakes_the_host_that_keeps_the_run() -> None:
    with Host() as host:
        run = host.submit(too_dear)
        assert run.wait(60).status is RunStatus.BUDGET_EXHAUSTED
        request = Request(
            request_id="more", run_id=run.run_id, kind=RequestKind.BUDGET, principal="human:ann",
            data={"add": {"cost": "0.1"}}, at="2026-01-01T00:00:00.000Z",
        )  # fmt: skip
        post(Home.open(Config.load().home, create=False), request, clock=SystemClock())

        def status() -> bool:
            with reader() as look:
                return look.run(run.run_id).status is RunStatus.COMPLETED

        until(status)
    with reader() as look:
        assert [(one.node, one.added) for one in look.ledgers(run.run_id) if one.node is None] == [
            (None, Amounts(cost=Decimal("0.1")))
        ]
