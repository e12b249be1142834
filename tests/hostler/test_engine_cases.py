"""The scheduler's acceptance cases on whole hosts: a diamond, many roots and one job, approvals, a cancel."""

import threading
import time

import pytest
from pydantic import BaseModel

from actors.actions import SetTimer
from actors.host_messages import Commit
from actors.run_store import GATHER, RunStore
from hostler import ExactPlan, Host, Policy, operation, workflow
from hostler.config import Config
from store.clock import SystemClock
from store.contracts import Event, Request, RequestKind
from store.home import Home
from store.lifecycle import RunStatus
from store.reader import Reader
from store.requests import post
from tests.support import until


class Number(BaseModel):
    n: int = 0


CALLS: list[str] = []
TOGETHER = threading.Barrier(2)


@pytest.fixture(autouse=True)
def fresh():
    CALLS.clear()
    TOGETHER.reset()


def noted(ctx, input: Number) -> Number:
    CALLS.append(ctx.idempotency_key.partition(":")[2])
    return Number(n=input.n + 1)


step = operation("test.step", version=1, policy=Policy(effect="local-read"))(noted)


@operation("test.meet", version=1, policy=Policy(effect="local-read"))
def meet(ctx, input: Number) -> Number:
    TOGETHER.wait(60)
    return noted(ctx, input)


def planner(ctx, input: Number, descriptors) -> ExactPlan:
    CALLS.append(f"plan {input.n}")
    return ExactPlan(input=input)


planned_step = operation("test.planned", version=1, plan=planner, policy=Policy(effect="local-read"))(noted)
pure = operation("test.pure", version=1)(noted)
private = operation(
    "test.private",
    version=1,
    plan=planner,
    policy=Policy(effect="paid-cloud", resume="ambiguous-after-dispatch", preparation=("screen-capture",)),
)(noted)


@operation("test.held", version=1, policy=Policy(effect="local-read", claims={"slot": 1}))
def held(ctx, input: Number) -> Number:
    noted(ctx, input)
    while True:
        ctx.check_cancelled()
        time.sleep(0.005)


@workflow("diamond", version=1)
def diamond(build):
    top = build.call(step, key="top", input={"n": 0})
    left = build.call(meet, key="left", input={"n": top["n"]})
    right = build.call(meet, key="right", input={"n": top["n"]})
    return {"n": build.call(step, key="join", input={"n": left["n"]}, after=[right])["n"]}


@workflow("roots", version=1)
def roots(build, width: int):
    for index in range(width):
        build.call(planned_step, key=f"n{index:02d}", input={"n": index})
    return {}


@workflow("thinking", version=1)
def thinking(build, length: int):
    last = 0
    for index in range(length):
        last = build.call(pure, key=f"n{index:02d}", input={"n": last})["n"]
    return {"n": last}


@workflow("buying", version=1)
def buying(build):
    return {"n": build.call(private, key="buy", input={"n": 6})["n"]}


@workflow("queue", version=1)
def queue(build):
    first = build.call(held, key="a", input={"n": 1})
    build.call(held, key="b", input={"n": 1})
    build.call(step, key="c", input={"n": first["n"]})
    return {}


def reader() -> Reader:
    return Reader.open(Home.open(Config.load().home, create=False))


def log(run_id: str) -> list[Event]:
    with reader() as store:
        return list(store.events(run_id))


def statuses(run_id: str) -> dict[str, str]:
    with reader() as store:
        return {node.key: node.status.value for node in store.nodes(run_id)}


def answer(run_id: str, plan_sha256: str | None, *, kind: RequestKind = RequestKind.APPROVE) -> None:
    clock = SystemClock()
    request = Request(
        request_id=f"{kind}:{plan_sha256}",
        run_id=run_id,
        kind=kind,
        node="buy",
        plan_sha256=plan_sha256,
        principal="human:ann",
        at=clock.now().at,
    )
    post(Home.open(Config.load().home, create=False), request, clock=clock)


def awaited(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return of each commit that reaches the store whether it is awaited; what is not is laid by for an hour."""
    taken: list[bool] = []
    whole = RunStore._flush_in_time

    def noting(store: RunStore, commit: Commit) -> None:
        taken.append(commit.awaited)
        whole(store, commit)

    monkeypatch.setattr("actors.run_store.GATHER", SetTimer(timer=GATHER.timer, seconds=3600))
    monkeypatch.setattr(RunStore, "_flush_in_time", noting)
    return taken


def test_the_sides_of_a_diamond_overlap_and_the_join_starts_after_both():
    """R1: each side waits for the other inside its body, so they end only if they overlap."""
    with Host(jobs=4) as host:
        run = host.submit(diamond)
        assert run.wait(timeout=60).outputs == {"n": 3}
    assert CALLS[0] == "top:1"
    assert sorted(CALLS[1:3]) == ["left:1", "right:1"]
    assert CALLS[3:] == ["join:1"]
    order = [(event.node, event.kind.value, event.data.get("status")) for event in log(run.run_id)]
    begun = next(place for place, (node, kind, _) in enumerate(order) if (node, kind) == ("join", "node-running"))
    assert {("left", "node-status", "completed"), ("right", "node-status", "completed")} <= set(order[:begun])


def test_64_roots_and_one_job_are_planned_once_each_and_cost_commits_and_events_in_proportion():
    """R2."""

    def cost(width: int) -> tuple[int, int]:
        CALLS.clear()
        with Host(jobs=1) as host:
            run = host.submit(roots, width=width)
            assert run.wait(timeout=60).status is RunStatus.COMPLETED
            commits = host.commits
        assert sorted(call for call in CALLS if call.startswith("plan")) == sorted(f"plan {n}" for n in range(width))
        assert len(CALLS) == 2 * width
        return commits, len(log(run.run_id))

    for width in (16, 64):
        commits, events = cost(width)
        # of each node: begun with the plan it was given, completed together with the question for the next one's plan
        assert commits <= 2 * width + 3
        assert events == 5 * width + 5


def test_nobody_waits_for_a_commit_between_pure_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are laid by until the end of the run, which is awaited, as is its start; none is lost by that."""
    taken = awaited(monkeypatch)
    with Host(jobs=1) as host:
        run = host.submit(thinking, length=40)
        assert run.wait(timeout=60).outputs == {"n": 40}
    assert taken == [True, *[False] * 39, True]
    assert set(statuses(run.run_id).values()) == {"completed"}


def test_what_had_an_effect_is_never_laid_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is on the disk as soon as that can be, also where nothing waits for it."""
    taken = awaited(monkeypatch)
    with Host(jobs=2) as host:
        assert host.submit(diamond).wait(timeout=60).outputs == {"n": 3}
    assert len(taken) in (3, 4, 5), "its start, its steps, of which both sides may end together"
    assert all(taken)


def test_a_run_that_no_one_allowed_rests_at_its_preparation_then_at_its_effect_and_is_executed_once():
    """R6: two hosts end in between; each time only the exact grant lets it go on."""
    code = {("test.private", 1): private}
    with Host(release_at_rest=True) as host:
        run = host.submit(buying)
        assert run.wait(timeout=60).status is RunStatus.APPROVAL_REQUIRED
    assert CALLS == [], "nothing was looked at"
    answer(run.run_id, "0" * 64)
    with Host(release_at_rest=True) as host:
        assert host._adopt(run.run_id, code, {}).wait(60).status is RunStatus.APPROVAL_REQUIRED
    assert CALLS == [], "a grant of another plan lets nothing through"
    with reader() as store:
        (node,) = store.nodes(run.run_id)
    answer(run.run_id, node.preparation_sha256)
    with Host(release_at_rest=True) as host:
        assert host._adopt(run.run_id, code, {}).wait(60).status is RunStatus.APPROVAL_REQUIRED
    assert CALLS == ["plan 6"]
    with reader() as store:
        (node,) = store.nodes(run.run_id)
    answer(run.run_id, node.plan_sha256)
    with Host(release_at_rest=True) as host:
        assert host._adopt(run.run_id, code, {}).wait(60).outputs == {"n": 7}
    assert CALLS == ["plan 6", "buy:1"]
    grants = [event.data["action"] for event in log(run.run_id) if event.kind == "grant"]
    assert grants == ["preparation", "effect"]


def test_a_cancelled_run_stops_what_runs_and_starts_nothing_that_queued(tmp_path):
    """R8: one runs, one waits for the machine, one for its dependency; what they held is free at the end."""
    (tmp_path / "config.toml").write_text("[machine.capacity]\nslot = 1\n")
    with Host(jobs=4) as host:
        run = host.submit(queue)
        until(lambda: CALLS and statuses(run.run_id) in ALTERNATIVES)
        run.cancel("enough")
        assert run.wait(timeout=60).status is RunStatus.CANCELLED
        assert statuses(run.run_id) == {"a": "cancelled", "b": "cancelled", "c": "cancelled"}
        assert len(CALLS) == 1
        host.lease({"slot": 1}, wait=0).release()


ALTERNATIVES = (
    {"a": "running", "b": "queued", "c": "pending"},
    {"a": "queued", "b": "running", "c": "pending"},
)
