"""Writes: all of a transaction or nothing, each in its own savepoint, the log without gaps, within bounds."""

import threading
from pathlib import Path
from typing import Any

import pytest

from hostres.errors import Code, HostlerError
from store import chain
from store.contracts import EventKind, Summary
from store.lifecycle import RunStatus, Status, counts
from store.limits import Limits
from store.reader import Reader
from store.run_store import RunStore
from store.transactions import NewEvent, Output
from tests.store.support import (
    CLOCK,
    DIAMOND,
    NOTE,
    STAMP,
    Setting,
    assert_refused,
    finish_node,
    moved,
    node_plan,
    plan_of,
    transaction,
)


def test_a_group_is_one_commit_and_a_refusal_in_it_does_not_hurt_the_others(setting: Setting) -> None:
    one, other = setting.claimed(), setting.claimed()
    commits = setting.store.commits
    queued = moved(one.nodes[0], Status.QUEUED)
    illegal = moved(other.nodes[0], Status.PENDING)
    answers = setting.store.write(
        [
            transaction(one, started=True, nodes=(queued,), events=(NOTE,)),
            transaction(other, started=True, nodes=(moved(other.nodes[0], Status.QUEUED), illegal), events=(NOTE,)),
            transaction(other, events=(NOTE,)),
        ]
    )
    assert setting.store.commits == commits + 1
    assert answers[0] is None
    assert_refused(answers[1], Code.CONFLICT, "node a")
    assert answers[2] is None
    with Reader.open(setting.home) as reader:
        assert reader.nodes(one.fence.run_id)[0] == queued
        assert reader.nodes(other.fence.run_id)[0] == other.nodes[0]
        assert [event.seq for event in reader.events(other.fence.run_id)] == [1, 2, 3]


def test_a_group_of_refusals_is_no_commit(setting: Setting) -> None:
    claimed = setting.claimed()
    commits = setting.store.commits
    wrong = transaction(claimed, nodes=(moved(claimed.nodes[0], Status.PENDING),))
    large = Output(node="a", value=1, sha256="0" * 64, data=b"1")
    answers = setting.store.write([wrong, transaction(claimed, outputs=(large,))])
    assert_refused(answers[0], Code.CONFLICT)
    assert_refused(answers[1], Code.INVALID_DATA, "the output of node a")
    assert setting.store.write([transaction(claimed, outputs=(large,))]) != [None]
    assert setting.store.commits == commits
    assert setting.store.write([]) == []


def test_creating_claiming_and_releasing_are_one_commit_each(setting: Setting) -> None:
    before = setting.store.commits
    claimed = setting.claimed()
    assert setting.store.commits == before + 2
    setting.accept(claimed, release=True)
    assert setting.store.commits == before + 3


def test_a_whole_pass_of_a_node_can_be_one_transaction(setting: Setting) -> None:
    claimed = setting.claimed(DIAMOND)
    run, record = claimed.fence.run_id, claimed.nodes[0]
    plan, output = node_plan(run, "a", {"x": 1}), Output.of("a", {"y": 2})
    done = moved(
        record,
        Status.COMPLETED,
        attempt=1,
        plan_sha256=plan.sha256,
        output_sha256=output.sha256,
        started_at=STAMP.at,
        finished_at=STAMP.at,
    )
    released = tuple(moved(node, Status.READY) for node in claimed.nodes[1:3])
    setting.accept(claimed, started=True, plans=(plan,), outputs=(output,), nodes=(done, *released), events=(NOTE,))
    with Reader.open(setting.home) as reader:
        assert reader.nodes(run)[0] == done
        assert reader.node_plan(plan.sha256) == plan.plan
        assert reader.output(run, "a") == {"y": 2}
        assert reader.run(run).status is RunStatus.RUNNING


def test_a_run_that_ends_has_a_summary_that_agrees_with_its_nodes(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    run = claimed.fence.run_id
    output = Output.of("a", 1)
    done = moved(claimed.nodes[0], Status.COMPLETED, attempt=1, output_sha256=output.sha256, finished_at=STAMP.at)
    right = Summary(status=RunStatus.COMPLETED, counts=counts({Status.COMPLETED: 1}), outputs={"y": [1]})
    parts: dict[str, Any] = {"started": True, "nodes": (done,), "outputs": (output,)}
    for wrong in (
        {"summary": right.model_copy(update={"status": RunStatus.PARTIAL})},
        {"summary": right.model_copy(update={"counts": counts({Status.FAILED: 1})})},
        {"status": RunStatus.FAILED},
        {"status": RunStatus.BUDGET_EXHAUSTED},
    ):
        assert_refused(setting.write(claimed, **{**parts, **wrong}), Code.CONFLICT, run)
    setting.accept(claimed, **parts, status=RunStatus.COMPLETED, summary=right, release=True)
    with Reader.open(setting.home) as reader:
        view = reader.run(run)
    assert (view.status, view.summary, view.owner) == (RunStatus.COMPLETED, right, None)
    assert view.started_at is not None
    assert view.finished_at is not None


def test_a_run_can_rest_for_its_budget_which_only_its_scheduler_knows(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    setting.accept(claimed, started=True, status=RunStatus.BUDGET_EXHAUSTED, release=True)
    assert setting.store.claim(claimed.fence.run_id, setting.identity).status is RunStatus.BUDGET_EXHAUSTED


def test_a_completed_node_has_the_output_that_it_names(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    output, other = Output.of("a", 1), Output.of("a", 2)
    done = moved(claimed.nodes[0], Status.COMPLETED, attempt=1, output_sha256=output.sha256)
    assert_refused(setting.write(claimed, started=True, nodes=(done,)), Code.CONFLICT, "is not stored")
    wrong = setting.write(claimed, started=True, nodes=(done,), outputs=(other,))
    assert_refused(wrong, Code.CONFLICT, "its output is another one")
    none = moved(done, Status.COMPLETED, output_sha256=None)
    assert_refused(setting.write(claimed, started=True, nodes=(none,)), Code.CONFLICT, "it has no output")
    setting.accept(claimed, started=True, nodes=(done,), outputs=(output,))
    assert_refused(setting.write(claimed, outputs=(other,)), Code.CONFLICT, "completed for ever")
    setting.accept(claimed, outputs=(output,))


def test_a_journaled_result_is_kept_while_it_is_verified(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    output = Output.of("a", 1)
    verifying = moved(claimed.nodes[0], Status.VERIFYING, attempt=1, output_sha256=output.sha256)
    setting.accept(claimed, started=True, nodes=(verifying,), outputs=(output,))
    setting.accept(claimed, nodes=(moved(verifying, Status.COMPLETED),))


def test_what_names_no_node_of_the_run_is_refused(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    stray = moved(claimed.nodes[0], Status.QUEUED).model_copy(update={"key": "zz"})
    for parts in ({"nodes": (stray,)}, {"outputs": (Output.of("zz", 1),)}):
        assert_refused(setting.write(claimed, **parts), Code.NOT_FOUND, "zz")


def test_the_log_is_a_chain_that_starts_at_creation(setting: Setting) -> None:
    claimed = setting.claimed()
    rich = NewEvent(
        kind=EventKind.NODE_RUNNING,
        node="a",
        attempt=1,
        principal="agent:x",
        data={"ticket": 7, "claims": {"cpu": 1}, "admitted_boot_ns": 2**60 + 1, "speed": 1.5},
    )
    setting.accept(claimed, events=(NOTE, rich), release=True)
    with Reader.open(setting.home) as reader:
        events = list(reader.events(claimed.fence.run_id))
        later = list(reader.events(claimed.fence.run_id, after=3))
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert events[0].prev_sha256 == "0" * 64
    assert [event.prev_sha256 for event in events[1:]] == [event.sha256 for event in events[:-1]]
    assert later == events[3:]
    assert events[3].data["admitted_boot_ns"] == 2**60 + 1
    for event in events:
        chain.check_digest(event)
        with pytest.raises(HostlerError, match=f"event {event.seq} "):
            chain.check_digest(event.model_copy(update={"boot_ns": event.boot_ns + 1}))
    assert set(chain.event_document(events[0])) == {
        "run_id", "seq", "at", "boot_ns", "kind", "principal", "data", "prev_sha256", "sha256",
    }  # fmt: skip


def test_threads_with_a_connection_each_append_under_one_fence_without_a_gap(setting: Setting) -> None:
    """S8."""
    claimed = setting.claimed()
    stores = [RunStore.open(setting.home, clock=CLOCK) for _ in range(2)]
    barrier = threading.Barrier(24)
    answers: list[HostlerError | None] = []

    def append(number: int) -> None:
        event = NewEvent(kind=EventKind.LATE_RESULT, node="a", data={"number": number})
        barrier.wait(timeout=60)
        answers.extend(stores[number % 2].write([transaction(claimed, events=(event,))]))

    threads = [threading.Thread(target=append, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for store in stores:
        store.close()
    assert answers == [None] * 24
    with Reader.open(setting.home) as reader:
        events = list(reader.events(claimed.fence.run_id))
    assert [event.seq for event in events] == list(range(1, 27))
    assert {event.data["number"] for event in events[2:]} == set(range(24))


def test_what_exceeds_a_limit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """S9, V1: the size is that of the value alone, without what its digest begins with."""
    setting = Setting(tmp_path / "home", limits=Limits(value_bytes=400_000, entry_bytes=2000))
    claimed = setting.claimed(plan_of({"a": []}))
    large = "x" * 400_000
    before = setting.store.commits
    assert_refused(setting.write(claimed, outputs=(Output.of("a", large),)), Code.INVALID_DATA, "400002 bytes, 400000")
    assert_refused(
        setting.write(claimed, plans=(node_plan(claimed.fence.run_id, "a", large),)),
        Code.INVALID_DATA,
        "plan of node a",
    )
    entry = NewEvent(kind=EventKind.LATE_RESULT, data={"text": "x" * 2000})
    assert_refused(
        setting.write(claimed, events=(NOTE, entry)), Code.INVALID_DATA, "event late-result", "2000 are allowed"
    )
    infinite = NewEvent(kind=EventKind.LATE_RESULT, data={"loudness": float("-inf")})
    assert_refused(setting.write(claimed, events=(infinite,)), Code.INVALID_DATA, "$.data.loudness")
    outputs = Summary(status=RunStatus.PLANNED, counts={}, outputs=large)
    assert_refused(setting.write(claimed, summary=outputs), Code.INVALID_DATA, "outputs of the run")
    assert setting.store.commits == before
    assert list(setting.home.content.iterdir()) == []
    with Reader.open(setting.home) as reader:
        assert len(list(reader.events(claimed.fence.run_id))) == 2
    setting.accept(claimed, events=(NOTE,))
    setting.close()


def test_a_full_log_still_takes_the_events_that_end_the_run(tmp_path: Path) -> None:
    """S9."""
    setting = Setting(tmp_path / "home", limits=Limits(events=20, events_kept=5))
    claimed = setting.claimed(plan_of({"a": []}))
    queued = moved(claimed.nodes[0], Status.QUEUED)
    written = 2
    while setting.write(claimed, events=(NOTE,)) is None:
        written += 1
    assert written == 20 - 5 - 2
    refusal = setting.write(claimed, started=True, nodes=(queued,), events=(NOTE,))
    assert_refused(refusal, Code.INVALID_DATA, "20 are allowed")
    failed = moved(claimed.nodes[0], Status.FAILED, finished_at=STAMP.at)
    summary = Summary(status=RunStatus.FAILED, counts=counts({Status.FAILED: 1}))
    setting.accept(claimed, started=True, nodes=(failed,), events=(NOTE, NOTE))
    setting.accept(claimed, summary=summary, events=(NOTE,), release=True)
    too_many = setting.store.claim(claimed.fence.run_id, setting.identity)
    assert_refused(setting.write(too_many, events=(NOTE,) * 9, release=True), Code.INVALID_DATA)
    setting.accept(too_many, release=True)
    setting.close()


def test_the_cost_of_a_write_does_not_grow_with_the_run(setting: Setting) -> None:
    """Rows read and written are counted, not seconds."""
    costs = []
    for size in (10, 2000):
        claimed = setting.claimed(plan_of({f"n{number}": () for number in range(size)}))
        setting.accept(claimed, started=True)
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        setting.store._connection.set_progress_handler(count, 1)
        setting.accept(claimed, nodes=(moved(claimed.nodes[-1], Status.QUEUED),), events=(NOTE,))
        setting.store._connection.set_progress_handler(None, 1)
        costs.append(steps)
    assert costs[1] <= costs[0] * 1.1, costs


def test_a_bug_in_one_transaction_leaves_nothing_of_the_group(setting: Setting) -> None:
    claimed = setting.claimed()
    broken = transaction(claimed, nodes=(None,))
    with pytest.raises(AttributeError):
        setting.store.write([transaction(claimed, events=(NOTE,)), broken])
    with Reader.open(setting.home) as reader:
        assert len(list(reader.events(claimed.fence.run_id))) == 2
    setting.accept(claimed, events=(NOTE,))


def test_a_chain_of_nodes_is_run_with_two_commits_a_node_here_and_every_output_is_kept(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": [], "b": ["a"]}))
    before = setting.store.commits
    finish_node(setting, claimed, "a", 1)
    setting.accept(claimed, nodes=(moved(claimed.nodes[1], Status.READY),))
    finish_node(setting, claimed, "b", 2)
    assert setting.store.commits == before + 5
    setting.accept(claimed, release=True)
    assert setting.store.claim(claimed.fence.run_id, setting.identity).outputs == {"a": 1, "b": 2}
