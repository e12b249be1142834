"""Actors that break: started anew with what depends on them, runs go on from the store, up to a budget."""

import threading
from typing import Any

import pykka
import pytest
from pydantic import BaseModel

from actors.authorization import Authorization
from actors.executor import Executor
from actors.host_resources import HostResources
from actors.run_store import RunStore
from actors.scheduler import Scheduler
from actors.supervision import Budget, Deaths
from actors.supervisor import Supervisor
from actors.timer import Timer
from hostler import Host, Policy, operation, workflow
from hostres.errors import Code, HostlerError
from store.home import Home
from store.lifecycle import RunStatus
from store.reader import Reader
from tests.support import until


class Number(BaseModel):
    n: int = 0


GO = threading.Event()
STARTED: list[str] = []


@operation("test.step", version=1, policy=Policy(effect="local-read"))
def step(ctx, input: Number) -> Number:
    STARTED.append(ctx.idempotency_key)
    while not GO.wait(0.01):
        ctx.check_cancelled()
    return Number(n=input.n + 1)


@workflow("two", version=1)
def two(build):
    first = build.call(step, key="first")
    return {"n": build.call(step, key="second", input={"n": first["n"]})["n"]}


@pytest.fixture(autouse=True)
def fresh():
    GO.clear()
    STARTED.clear()
    yield
    GO.set()


def the(actor: type[pykka.ThreadingActor]) -> Any:
    return pykka.ActorRegistry.get_by_class(actor)[0]


def break_it(actor: type[pykka.ThreadingActor]) -> None:
    """Give it a message that no actor takes, and wait until it is gone."""
    ref = the(actor)
    ref.tell(object())
    assert ref.actor_stopped.wait(30)


@pytest.mark.parametrize("actor", [Scheduler, RunStore, HostResources, Authorization, Timer])
def test_a_run_goes_on_from_the_store_when_an_actor_breaks_in_the_middle_of_it(actor):
    with Host() as host:
        run = host.submit(two)
        until(lambda: STARTED)
        break_it(actor)
        until(lambda: len(STARTED) > 1)
        GO.set()
        outcome = run.wait(timeout=60)
        assert (outcome.status, outcome.outputs) == (RunStatus.COMPLETED, {"n": 2})
        assert host.gave_up is None
    # the attempt was asked to stop, and only when it had ended was the next one made
    assert STARTED[:2] == [f"{run.run_id}:first:1", f"{run.run_id}:first:2"]
    with Reader.open(Home.open(host.config.home, create=False)) as reader:
        claims = [event.data["generation"] for event in reader.events(run.run_id) if event.kind == "run-claimed"]
    assert claims == [1, 2]


def test_a_broken_executor_costs_its_node_alone():
    with Host() as host:
        run = host.submit(two)
        until(lambda: STARTED)
        the(Executor).tell(object())
        outcome = run.wait(timeout=60)
        assert outcome.status is RunStatus.FAILED
        assert host.gave_up is None
        GO.set()


def test_a_host_whose_actors_keep_breaking_gives_up_and_its_run_can_be_resumed():
    with Host() as host:
        run = host.submit(two)
        for _ in range(6):
            until(lambda: pykka.ActorRegistry.get_by_class(Timer))
            break_it(Timer)
            until(lambda: host.gave_up or len(pykka.ActorRegistry.get_by_class(Timer)) == 1)
        with pytest.raises(HostlerError) as caught:
            run.wait(timeout=60)
        assert caught.value.code is Code.INTERNAL
        with pytest.raises(HostlerError):
            host.submit(two)
    GO.set()
    with Host() as another:
        assert another.resume(run.run_id).wait(timeout=60).status is RunStatus.COMPLETED


def test_a_broken_supervisor_ends_the_host_and_nobody_waits_for_ever():
    with Host() as host:
        run = host.submit(two)
        until(lambda: STARTED)
        the(Supervisor).tell(object())
        with pytest.raises(HostlerError):
            run.wait(timeout=60)
        assert host.gave_up is not None


def test_a_host_does_not_take_up_a_run_twice():
    with Host() as host:
        run = host.submit(two)
        until(lambda: STARTED)
        with pytest.raises(HostlerError) as caught:
            host.resume(run.run_id).wait(timeout=60)
        assert caught.value.code is Code.CONFLICT
        GO.set()
        assert run.wait(timeout=60).status is RunStatus.COMPLETED


def test_old_deaths_are_forgiven():
    deaths = Deaths(Budget(deaths=2, window_s=10))
    assert [deaths.bear(now) for now in (0, 1, 11.5, 12, 12.5)] == [True, True, True, True, False]
