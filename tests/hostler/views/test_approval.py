"""What a person is shown before an approval."""

from decimal import Decimal
from typing import Any

import pytest

from hostler.views.approval import node_plan_text
from hostler.views.plan import plan_text
from store.amounts import Ask, Demand
from store.plans import AgentExecutor, CommandExecutor, Executor, GraphPlan, NodePlan, PlannedNode
from store.policy import Effect, Heartbeat, Policy, Retry
from tests.hostler.views.support import NODE_SHA, PLAN_SHA, RUN_ID
from tests.hostler.views.test_plan import ruled

PAYS: dict[str, Any] = {
    "effect": Effect.PAID_CLOUD,
    "resume": "deterministic",
    "retry": Retry(attempts=3, delays=(1,)),
    "heartbeat": Heartbeat(seconds=30),
    "budget": Demand(ask=Ask(cost=Decimal(5))),
}


def shown(executor: Executor, **policy: Any) -> list[str]:
    plan = NodePlan(
        run_id=RUN_ID,
        node="a",
        executor=executor,
        input={"argv": ["true"]},
        input_sha256="0" * 64,
        dependencies={},
        policy=Policy(**policy),
    )
    return node_plan_text(plan, NODE_SHA).splitlines()


@pytest.mark.parametrize("executor", [CommandExecutor(cwd="shop\x1b"), AgentExecutor(cwd="shop\x1b")])
def test_it_says_where_an_attempt_runs_how_often_it_may_be_made_and_what_it_may_spend(executor: Executor) -> None:
    """One yes lets all of it happen: a paid step with three attempts is paid three times on one approval."""
    assert shown(executor, **PAYS)[3:9] == [
        "  effect  paid-cloud, deterministic",
        "  claims  –, at most 1 h 00 m",
        "  cwd     shop\\x1b",
        "  retry   at most 3 attempts, then fail",
        "  beats   every 30 s",
        "  keeps   5 cost",
    ]


def test_what_is_as_ever_is_not_told() -> None:
    assert [line.split()[0] for line in shown(CommandExecutor())[:6]] == [
        "node",
        "plan",
        "runs",
        "effect",
        "claims",
        "input",
    ]


def test_the_plan_of_a_workflow_says_the_same_beforehand() -> None:
    node = PlannedNode(
        key="a", executor=CommandExecutor(cwd="shop"), input={"argv": ["true"]}, dependencies=(), policy=Policy(**PAYS)
    )
    plan = GraphPlan(workflow="w", version=1, inputs={}, nodes=(node,))
    told = [line.split() for line in plan_text(plan, PLAN_SHA, ruled(plan), width=100).splitlines()]
    assert ["cwd", "shop"] in told
    assert ["retry", "at", "most", "3", "attempts,", "then", "fail"] in told
    assert ["keeps", "5", "cost"] in told
