"""What any store of runs promises, asked of the real one and of the model that stands in for it elsewhere."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostres.errors import Code, HostlerError
from store.contracts import EventKind, GrantAction, NodeRecord, RequestKind, Summary
from store.lifecycle import RunStatus, Status
from store.limits import Limits
from store.requests import cancel_id
from store.transactions import Claimed, NewEvent, Output, Transaction
from store.values import Domain, digest
from tests.store.model import MemoryStore
from tests.store.stores import AnyStore, DiskStore
from tests.store.support import (
    CLOCK,
    COMPUTE,
    DIAMOND,
    GATE,
    NOTE,
    STAMP,
    assert_refused,
    grant_of,
    moved,
    node_plan,
    plan_of,
    record_of,
    request_of,
    run_id,
)

ONE = plan_of({"a": []})
LIMITS = Limits(events=60, events_kept=10, value_bytes=4000, bundle_bytes=2000)


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyStore]:
    makers: dict[str, Callable[[], AnyStore]] = {
        "disk": lambda: DiskStore(tmp_path / "home", CLOCK, LIMITS),
        "memory": lambda: MemoryStore(CLOCK, LIMITS),
    }
    one = makers[request.param]()
    yield one
    one.close()


def refusal_of(operation: Any) -> HostlerError:
    with pytest.raises(HostlerError) as caught:
        operation()
    return caught.value


def created(store: AnyStore, plan: Any = DIAMOND, **changes: Any) -> str:
    record = record_of(plan, **changes)
    store.create(record, plan)
    return record.run_id


def claimed(store: AnyStore, plan: Any = DIAMOND) -> Claimed:
    return store.claim(created(store, plan), store.host())


def write(store: AnyStore, claim: Claimed, **parts: Any) -> HostlerError | None:
    return store.write([Transaction(**{"fence": claim.fence, "stamp": STAMP, **parts})])[0]


def accept(store: AnyStore, claim: Claimed, **parts: Any) -> None:
    assert write(store, claim, **parts) is None


def refused(store: AnyStore, claim: Claimed, code: Code, **parts: Any) -> None:
    """Check that a transaction is refused and has changed nothing."""
    before = store.seen(claim.fence.run_id)
    assert_refused(write(store, claim, **parts), code)
    assert store.seen(claim.fence.run_id) == before


def running(record: NodeRecord) -> NodeRecord:
    return moved(record, Status.RUNNING, attempt=record.attempt + 1, started_at=STAMP.at)


def completed(record: NodeRecord, output: Output) -> NodeRecord:
    return moved(record, Status.COMPLETED, output_sha256=output.sha256, finished_at=STAMP.at)


def test_a_new_run_is_seen_as_it_was_given_with_its_roots_ready(store: AnyStore) -> None:
    """S1."""
    run = created(store)
    seen = store.seen(run)
    assert (seen.plan, seen.status, seen.owner, seen.started_at) == (DIAMOND, RunStatus.PLANNED, None, None)
    assert [node.status for node in seen.nodes] == [Status.READY, *[Status.PENDING] * 3]
    assert [event.kind for event in seen.events] == [EventKind.RUN_CREATED]
    assert store.unowned() == store.run_ids() == [run]


def test_what_does_not_hold_together_is_refused_and_not_listed(store: AnyStore) -> None:
    """S2: digest, version, code, order, size; and a run that is there already."""
    for changes in ({"plan_sha256": "1" * 64}, {"workflow_version": 2}, {"bundle_sha256": "1" * 64}):
        record = record_of(DIAMOND, **changes)
        assert_refused(refusal_of(lambda record=record: store.create(record, DIAMOND)), Code.INVALID_DATA)
    for plan in (plan_of({"b": ["a"], "a": []}), plan_of({"a": []}, inputs={"x": "y" * 5000})):
        assert_refused(refusal_of(lambda plan=plan: created(store, plan)), Code.INVALID_DATA)
    large = record_of(ONE, bundle=b"x" * 3000)
    assert_refused(refusal_of(lambda: store.create(large, ONE, bundle=b"x" * 3000)), Code.INVALID_DATA)
    assert store.run_ids() == []
    run = created(store, ONE)
    assert_refused(refusal_of(lambda: created(store, ONE, run_id=run)), Code.CONFLICT)
    assert store.run_ids() == [run]


def test_an_owned_run_is_refused_and_each_claim_has_a_generation_of_its_own(store: AnyStore) -> None:
    """S5, S7."""
    run, first, second = created(store), store.host(), store.host()
    one = store.claim(run, first)
    assert one.fence.generation == 1
    for host in (first, second):
        assert_refused(refusal_of(lambda host=host: store.claim(run, host)), Code.CONFLICT)
    assert store.seen(run).owner == (first, True)
    accept(store, one, release=True)
    assert store.seen(run).owner is None
    assert store.claim(run, second).fence.generation == 2
    store.kill(second)
    assert store.seen(run).owner == (second, False)
    assert store.unowned() == [run]
    third = store.claim(run, first)
    assert third.fence.generation == 3
    assert store.seen(run).events[-1].data == {
        "generation": 3,
        "host": first,
        "dead": second,
        "token_sha256": digest(Domain.RECORD, third.fence.token),
    }
    assert_refused(refusal_of(lambda: store.claim(run_id(), first)), Code.NOT_FOUND)


def test_a_dead_owner_loses_all_its_runs_with_the_first_that_is_taken(store: AnyStore) -> None:
    """S7."""
    dead, living = store.host(), store.host()
    runs = [created(store) for _ in range(3)]
    for run in runs:
        store.claim(run, dead)
    store.kill(dead)
    store.claim(runs[0], living)
    assert [store.seen(run).owner for run in runs] == [(living, True), None, None]


def test_a_stale_fence_writes_nothing_of_any_kind(store: AnyStore) -> None:
    """S6."""
    stale = claimed(store)
    accept(store, stale, release=True)
    live = store.claim(stale.fence.run_id, store.host())
    store.post(request_of(stale.fence.run_id, RequestKind.RETRY, request_id="asked", node="a"))
    output = Output.of("a", 1)
    for parts in (
        {},
        {"started": True},
        {"nodes": (running(stale.nodes[0]),)},
        {"plans": (node_plan(stale.fence.run_id, "a"),)},
        {"nodes": (completed(running(stale.nodes[0]), output),), "outputs": (output,)},
        {"events": (NOTE,)},
        {"grants": (grant_of(stale.fence.run_id, "a", GrantAction.SETTLE),)},
        {"consumed": ("asked",)},
        {"release": True},
    ):
        refused(store, stale, Code.CONFLICT, **parts)
    accept(store, live, events=(NOTE,))


def test_one_refusal_in_a_group_leaves_the_others_whole(store: AnyStore) -> None:
    """S6: a group is durable in one commit, yet each transaction stands for itself."""
    one, other = claimed(store), claimed(store)
    good = Transaction(fence=one.fence, stamp=STAMP, started=True, nodes=(running(one.nodes[0]),), events=(NOTE,))
    bad = Transaction(fence=other.fence, stamp=STAMP, started=True, events=(NOTE,), consumed=("made-up",))
    before = store.seen(other.fence.run_id)
    answers = store.write([good, bad, Transaction(fence=one.fence, stamp=STAMP, events=(NOTE,))])
    assert [answer and answer.code for answer in answers] == [None, Code.CONFLICT, None]
    assert store.seen(other.fence.run_id) == before
    assert [event.kind for event in store.seen(one.fence.run_id).events][-2:] == [NOTE.kind, NOTE.kind]


def test_a_chain_of_nodes_is_worked_off_and_the_next_owner_finds_it_so(store: AnyStore) -> None:
    """Outputs, summary, release; then the same through the file alone."""
    claim = claimed(store, plan_of({"a": [], "b": ["a"]}))
    run, (a, b) = claim.fence.run_id, claim.nodes
    out_a, out_b = Output.of("a", {"n": 1}), Output.of("b", [2.5])
    accept(store, claim, started=True, nodes=(running(a),))
    assert store.seen(run).status is RunStatus.RUNNING
    done = completed(running(a), out_a)
    accept(store, claim, nodes=(done, running(b)), outputs=(out_a,))
    counts = {"cancelled": 0, "completed": 2, "failed": 0, "pending": 0, "resting": 0, "running": 0, "skipped": 0}
    summary = Summary(status=RunStatus.COMPLETED, counts=counts, outputs=[1])
    end = completed(running(b), out_b)
    accept(store, claim, nodes=(end,), outputs=(out_b,), summary=summary, status=RunStatus.COMPLETED, release=True)
    before = store.seen(run)
    store.reopen()
    seen = store.seen(run)
    assert seen == before
    assert (seen.status, seen.summary, seen.finished_at) == (RunStatus.COMPLETED, summary, STAMP.at)
    assert seen.outputs == {"a": {"n": 1}, "b": [2.5]}
    assert store.unowned() == []
    again = store.claim(run, store.host())
    assert (again.nodes, again.outputs, again.started_at) == ((done, end), seen.outputs, seen.started_at)
    accept(store, again, nodes=(done,))  # the identical final record
    refused(store, again, Code.CONFLICT, nodes=(moved(done, Status.COMPLETED, finished_at=None),))
    other = Output.of("a", {"n": 2})
    refused(store, again, Code.CONFLICT, nodes=(completed(running(a), other),), outputs=(other,))


def test_an_output_is_stored_only_with_the_record_that_names_it(store: AnyStore) -> None:
    """An output that took the place of the named one would make the run unreadable once its node completes."""
    claim = claimed(store, ONE)
    first, second = Output.of("a", 1), Output.of("a", 2)
    checked = moved(running(claim.nodes[0]), Status.VERIFYING, output_sha256=first.sha256)
    accept(store, claim, started=True, nodes=(checked,), outputs=(first,))
    refused(store, claim, Code.CONFLICT, outputs=(second,))
    refused(store, claim, Code.CONFLICT, nodes=(completed(checked, first),), outputs=(second,))
    refused(store, claim, Code.CONFLICT, nodes=(completed(checked, second),))
    refused(store, claim, Code.INVALID_DATA, outputs=(Output(node="a", value=1, sha256="1" * 64, data=b"1"),))
    refused(store, claim, Code.INVALID_DATA, outputs=(Output.of("a", "x" * 5000),))
    refused(store, claim, Code.NOT_FOUND, outputs=(Output.of("zz", 1),))
    accept(store, claim, nodes=(completed(checked, first),))
    assert store.seen(claim.fence.run_id).outputs == {"a": 1}


def test_a_summary_agrees_with_the_nodes_and_goes_when_they_are_reopened(store: AnyStore) -> None:
    """What a run ended as is not said of a run that goes on."""
    claim = claimed(store, ONE)
    run = claim.fence.run_id
    counts = {"cancelled": 0, "completed": 0, "failed": 1, "pending": 0, "resting": 0, "running": 0, "skipped": 0}
    failed = moved(claim.nodes[0], Status.FAILED)
    summary = Summary(status=RunStatus.FAILED, counts=counts)
    refused(store, claim, Code.CONFLICT, started=True, summary=summary)
    refused(
        store, claim, Code.CONFLICT, started=True, nodes=(failed,),
        summary=Summary(status=RunStatus.FAILED, counts={**counts, "failed": 2}),
    )  # fmt: skip
    resting = {**counts, "failed": 0, "pending": 1}
    refused(store, claim, Code.CONFLICT, summary=Summary(status=RunStatus.PLANNED, counts=resting))
    accept(store, claim, started=True, nodes=(failed,), summary=summary)
    assert store.seen(run).summary == summary
    accept(store, claim, nodes=(failed,))
    assert store.seen(run).summary == summary
    grant = grant_of(run, "a", GrantAction.RETRY)
    accept(store, claim, nodes=(moved(failed, Status.READY),), grants=(grant,))
    seen = store.seen(run)
    assert (seen.status, seen.summary, seen.finished_at) == (RunStatus.RUNNING, None, None)


def test_a_status_that_the_nodes_do_not_say_is_refused(store: AnyStore) -> None:
    """Only a budget, which is not in the records of nodes, may say more than they do."""
    claim = claimed(store, ONE)
    for status in RunStatus:
        if status is not RunStatus.PLANNED:
            refused(store, claim, Code.CONFLICT, status=status)
    accept(store, claim, started=True, status=RunStatus.BUDGET_EXHAUSTED)
    assert store.seen(claim.fence.run_id).status is RunStatus.BUDGET_EXHAUSTED
    accept(store, claim, status=RunStatus.RUNNING)


def test_requests_are_unique_and_each_is_answered_once(store: AnyStore) -> None:
    """S13: the first writer wins; a cancel of the run is seen until it is answered."""
    claim = claimed(store, ONE)
    run = claim.fence.run_id
    cancel = request_of(run, RequestKind.CANCEL, request_id=cancel_id(run), reason="first")
    assert store.post(cancel)
    assert not store.post(cancel.model_copy(update={"reason": "second"}))
    assert [request.reason for request in store.requests([run])] == ["first"]
    assert store.seen(run).cancel_waits
    refused(store, claim, Code.CONFLICT, consumed=(cancel.request_id, cancel.request_id))
    accept(store, claim, consumed=(cancel.request_id,))
    refused(store, claim, Code.CONFLICT, consumed=(cancel.request_id,))
    assert store.requests([run, run_id()]) == []
    assert not store.seen(run).cancel_waits
    assert [request.request_id for request in store.seen(run).requests] == [cancel.request_id]
    assert_refused(refusal_of(lambda: store.post(request_of(run_id(), RequestKind.RETRY))), Code.NOT_FOUND)
    other = claimed(store, ONE)
    assert not store.post(cancel.model_copy(update={"run_id": other.fence.run_id}))
    refused(store, other, Code.CONFLICT, consumed=(cancel.request_id,))


CODE = b"def double(): ..."


@pytest.mark.parametrize(
    "changes", [{}, {"attempt": 1}, {"attempt": 3}, {"plan_sha256": "1" * 64}, {"compute": "treble"},
                {"bundle_sha256": "1" * 64}, {"allowed": False}, {"action": GrantAction.SETTLE}],
)  # fmt: skip
def test_only_the_exact_replay_grant_starts_interrupted_code_again(store: AnyStore, changes: dict[str, Any]) -> None:
    """S12."""
    record = record_of(ONE, bundle=CODE)
    plan = plan_of({"a": []}, executors={"a": COMPUTE}, bundle_sha256=record.bundle_sha256)
    record = record_of(plan, bundle=CODE)
    store.create(record, plan, bundle=CODE)
    claim = store.claim(record.run_id, store.host())
    frozen = node_plan(record.run_id, "a")
    broken = moved(running(claim.nodes[0]), Status.AMBIGUOUS_CODE, plan_sha256=frozen.sha256)
    accept(store, claim, started=True, plans=(frozen,), nodes=(broken,))
    fields: dict[str, Any] = {
        "action": GrantAction.REPLAY, "attempt": 2, "plan_sha256": frozen.sha256, "compute": "double",
        "bundle_sha256": record.bundle_sha256,
    }  # fmt: skip
    grant = grant_of(record.run_id, "a", **{**fields, **changes})
    parts: dict[str, Any] = {"nodes": (moved(broken, Status.READY),), "grants": (grant,)}
    if changes:
        refused(store, claim, Code.CONFLICT, **parts)
    else:
        accept(store, claim, **parts)
        assert store.seen(record.run_id).grants == (grant,)
        refused(store, claim, Code.CONFLICT, grants=(grant.model_copy(update={"reason": "another"}),))
        other = claimed(store, ONE)
        refused(store, other, Code.CONFLICT, grants=(grant,))


def test_a_gate_is_completed_by_its_grant_alone(store: AnyStore) -> None:
    """A node that runs is not."""
    claim = claimed(store, plan_of({"a": [], "b": []}, executors={"a": GATE}))
    run = claim.fence.run_id
    plans = [node_plan(run, key) for key in ("a", "b")]
    waits = [
        moved(node, Status.APPROVAL_REQUIRED, plan_sha256=plan.sha256)
        for node, plan in zip(claim.nodes, plans, strict=True)
    ]
    accept(store, claim, started=True, plans=tuple(plans), nodes=tuple(waits))
    assert store.seen(run).status is RunStatus.APPROVAL_REQUIRED
    refused(store, claim, Code.CONFLICT, nodes=(moved(waits[1], Status.COMPLETED),))
    refused(store, claim, Code.CONFLICT, grants=(grant_of(run, "a", GrantAction.GATE, plan_sha256=plans[1].sha256),))
    refused(store, claim, Code.NOT_FOUND, grants=(grant_of(run, "zz", GrantAction.GATE),))
    grant = grant_of(run, "a", GrantAction.GATE, plan_sha256=plans[0].sha256)
    accept(store, claim, nodes=(moved(waits[0], Status.COMPLETED),), grants=(grant,))


def test_room_is_kept_for_the_events_that_end_a_run(store: AnyStore) -> None:
    """S9: 60 events in all, 10 and 2 a node kept; the log holds two already."""
    claim = claimed(store, ONE)
    note = NewEvent(kind=EventKind.NODE_STATUS, node="a")
    accept(store, claim, started=True, events=(note,) * 46)
    refused(store, claim, Code.INVALID_DATA, events=(note,))
    refused(store, claim, Code.INVALID_DATA, nodes=(running(claim.nodes[0]),), events=(note,))
    accept(store, claim, nodes=(moved(claim.nodes[0], Status.CANCELLED),), events=(note,) * 11)
    refused(store, claim, Code.INVALID_DATA, events=(note,), release=True)
    accept(store, claim, release=True)
