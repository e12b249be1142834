"""Every ordered pair of statuses, through the writer, against the table."""

import itertools

import pytest

from hostres.errors import Code
from store.contracts import Grant, GrantAction, NodeRecord
from store.lifecycle import IMMUTABLE, MOVES, RunStatus, Status
from store.reader import Reader
from store.shapes import Shape, is_granted
from store.transitions import refusal
from tests.store.stores import seen_by
from tests.store.support import (
    COMPUTE,
    GATE,
    OPERATION,
    STAMP,
    Setting,
    assert_refused,
    grant_of,
    moved,
    node_plan,
    plan_of,
)

OPENED_BY_GRANT = {
    (Status.FAILED, Status.READY),
    (Status.SKIPPED, Status.PENDING),
    (Status.AMBIGUOUS, Status.COMPLETED),
    (Status.AMBIGUOUS, Status.FAILED),
    (Status.AMBIGUOUS, Status.READY),
    (Status.AMBIGUOUS, Status.CANCELLED),
    (Status.AMBIGUOUS_CODE, Status.READY),
}
PAIRS = list(itertools.product(Status, Status))


def ends(before: Status, *, gate: bool, granted: bool) -> set[tuple[Status, int]]:
    """Walk the table: return every status that legal moves reach, with how often they start the node on the way."""
    seen: set[tuple[Status, int]] = set()
    todo = [(before, 0, True)]
    while todo:
        here, starts, first = todo.pop()
        for there in MOVES[here]:
            if (here, there) in OPENED_BY_GRANT and not (granted and first):
                continue
            if (here, there) == (Status.APPROVAL_REQUIRED, Status.COMPLETED) and not gate:
                continue
            count = starts + ((here, there) == (Status.QUEUED, Status.RUNNING))
            if count < 2 and (there, count) not in seen:
                seen.add((there, count))
                todo.append((there, count, False))
    return seen


def test_exactly_the_moves_of_the_table_are_taken() -> None:
    for before, after, gate, granted in itertools.product(Status, Status, (False, True), (False, True)):
        reached = ends(before, gate=gate, granted=granted)
        for rise in (0, 1, 2):
            allowed = (after, rise) in reached
            if rise == 0 and before is after and before not in IMMUTABLE | {Status.FAILED, Status.SKIPPED}:
                allowed = True  # other fields of the record change
            said = refusal(
                NodeRecord(key="a", status=before, attempt=3),
                NodeRecord(key="a", status=after, attempt=3 + rise),
                gate=gate,
                granted=granted,
            )
            assert (said is None) is allowed, (before, after, rise, said)


def test_every_single_move_of_the_table_is_taken_and_immutable_records_never_change() -> None:
    for before, after in PAIRS:
        start = (before, after) == (Status.QUEUED, Status.RUNNING)
        said = refusal(
            NodeRecord(key="a", status=before, attempt=1),
            NodeRecord(key="a", status=after, attempt=1 + start),
            gate=True,
            granted=True,
        )
        if after in MOVES[before]:
            assert said is None, (before, after)
        if before in IMMUTABLE:
            assert said is not None, (before, after)


@pytest.mark.parametrize("before", Status)
def test_the_writer_takes_and_refuses_every_pair_as_the_table_says(setting: Setting, before: Status) -> None:
    """S10."""
    nodes = {f"n{number}": () for number in range(len(Status))}
    claimed = setting.claimed(plan_of(nodes, executors=dict.fromkeys(nodes, COMPUTE), bundle_sha256=None))
    setting.store._connection.execute("UPDATE runs SET started_at = ?", (STAMP.at,))
    for record, after in zip(claimed.nodes, Status, strict=True):
        stored = moved(record, before, attempt=1, started_at=STAMP.at)
        plant(setting, claimed.fence.run_id, record, stored)
        for rise in (0, 1):
            target = moved(stored, after, attempt=1 + rise, **({"failure": None} if rise else {}))
            expected = refusal(stored, target, gate=False, granted=False)
            got = setting.write(claimed, nodes=(target,))
            if target == stored:
                assert got is None
            elif expected is None and after in (Status.COMPLETED, Status.VERIFYING):
                assert_refused(got, Code.CONFLICT, "it has no output")
            elif expected is None:
                assert got is None, (before, after, got)
                plant(setting, claimed.fence.run_id, target, stored)
            else:
                assert_refused(got, Code.CONFLICT, f"node {record.key}", expected)


def plant(setting: Setting, run: str, now: NodeRecord, wanted: NodeRecord) -> None:
    """Put a record into the store past the writer's checks."""
    from store.heads import counts_text, read_head  # noqa: PLC0415
    from store.records import encode  # noqa: PLC0415
    from store.values import Domain, digest_bytes  # noqa: PLC0415

    connection = setting.store._connection
    head = read_head(connection, run)
    data = encode(wanted)
    connection.execute(
        "UPDATE nodes SET status = ?, record = ?, sha256 = ? WHERE run = ? AND key = ?",
        (wanted.status.value, data, digest_bytes(Domain.RECORD, data), head.run, wanted.key),
    )
    head.counts[now.status] -= 1
    head.counts[wanted.status] = head.counts.get(wanted.status, 0) + 1
    connection.execute("UPDATE runs SET counts = ? WHERE run = ?", (counts_text(head.counts), head.run))


def test_an_identical_rewrite_of_a_final_record_is_taken_and_writes_no_row(setting: Setting) -> None:
    """S10."""
    claimed = setting.claimed(plan_of({"a": [], "b": []}))
    for status in (Status.COMPLETED, Status.CANCELLED, Status.INCOMPATIBLE, Status.FAILED, Status.SKIPPED):
        record = moved(claimed.nodes[0], status, finished_at=STAMP.at)
        stored = claimed.nodes[0]
        plant(setting, claimed.fence.run_id, stored, record)
        setting.accept(claimed, started=True, nodes=(record,))
        other = moved(record, status, finished_at="2024-01-01T00:00:00.000Z")
        assert_refused(setting.write(claimed, nodes=(other,)), Code.CONFLICT, "node a")
        plant(setting, claimed.fence.run_id, record, stored)


@pytest.mark.parametrize(
    ("stored", "changes", "why"),
    [
        ({"status": Status.RUNNING, "attempt": 1}, {"attempt": 3}, "its attempt is 1"),
        ({"status": Status.RUNNING, "attempt": 1}, {"attempt": 0}, "its attempt is 1"),
        (
            {"status": Status.RUNNING, "attempt": 1, "started_at": STAMP.at},
            {"started_at": "2024-01-01T00:00:00.000Z"},
            "it started at",
        ),
        ({"status": Status.RUNNING, "attempt": 1, "started_at": STAMP.at}, {"started_at": None}, "it started at"),
        ({"status": Status.READY, "plan_sha256": "1" * 64}, {"plan_sha256": "2" * 64}, "is frozen"),
        ({"status": Status.READY, "plan_sha256": "1" * 64}, {"plan_sha256": None}, "is frozen"),
        ({"status": Status.RUNNING, "attempt": 1, "gate_passed": True}, {"gate_passed": False}, "gate was passed"),
    ],
)
def test_an_attempt_a_start_time_and_a_frozen_plan_do_not_change(
    setting: Setting, stored: dict[str, object], changes: dict[str, object], why: str
) -> None:
    """S11."""
    claimed = setting.claimed(plan_of({"a": []}))
    record = NodeRecord(key="a", **stored)  # type: ignore[arg-type]
    plant(setting, claimed.fence.run_id, claimed.nodes[0], record)
    setting.store._connection.execute("UPDATE runs SET started_at = ?", (STAMP.at,))
    after = moved(record, record.status, **changes)
    assert_refused(setting.write(claimed, nodes=(after,)), Code.CONFLICT, "node a", why)


def test_an_interrupted_attempt_may_forget_when_it_started(setting: Setting) -> None:
    before = NodeRecord(key="a", status=Status.RUNNING, attempt=1, started_at=STAMP.at)
    assert refusal(before, NodeRecord(key="a", status=Status.READY, attempt=1), gate=False, granted=False) is None


def test_a_plan_must_be_stored_for_this_very_node_before_a_record_names_it(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": [], "b": []}))
    run = claimed.fence.run_id
    plan = node_plan(run, "b")
    ready = moved(claimed.nodes[0], Status.READY, plan_sha256=plan.sha256)
    assert_refused(setting.write(claimed, nodes=(ready,)), Code.CONFLICT, "is not stored")
    assert_refused(setting.write(claimed, nodes=(ready,), plans=(plan,)), Code.CONFLICT, "is not stored")
    own = node_plan(run, "a")
    setting.accept(claimed, plans=(own,), nodes=(moved(ready, Status.READY, plan_sha256=own.sha256),))
    assert_refused(setting.write(claimed, plans=(node_plan(run, "zz"),)), Code.CONFLICT, "node zz")
    other = setting.claimed(plan_of({"a": []}))
    assert_refused(setting.write(other, plans=(own,)), Code.CONFLICT, f"run {run}")


def test_only_a_pure_gate_completes_without_ever_running(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": [], "b": []}, executors={"a": GATE, "b": OPERATION}))
    run = claimed.fence.run_id
    for record in claimed.nodes:
        plan = node_plan(run, record.key)
        waits = moved(record, Status.APPROVAL_REQUIRED, plan_sha256=plan.sha256)
        setting.accept(claimed, started=True, plans=(plan,), nodes=(waits,))
        answer = setting.write(
            claimed,
            nodes=(moved(waits, Status.COMPLETED),),
            grants=(grant_of(run, record.key, GrantAction.GATE, plan_sha256=plan.sha256),),
        )
        if record.key == "a":
            assert answer is None
        else:
            assert_refused(answer, Code.CONFLICT, "node b")


RUNS = {
    RunStatus.PLANNED: (Status.READY, Status.READY),
    RunStatus.RUNNING: (Status.RUNNING, Status.READY),
    RunStatus.APPROVAL_REQUIRED: (Status.APPROVAL_REQUIRED, Status.FAILED),
    RunStatus.AMBIGUOUS_CODE: (Status.AMBIGUOUS_CODE, Status.FAILED),
    RunStatus.AMBIGUOUS: (Status.AMBIGUOUS, Status.FAILED),
    RunStatus.BLOCKED: (Status.BLOCKED, Status.FAILED),
    RunStatus.BUDGET_EXHAUSTED: (Status.READY, Status.FAILED),
    RunStatus.CANCELLED: (Status.CANCELLED, Status.FAILED),
    RunStatus.COMPLETED: (Status.COMPLETED, Status.COMPLETED),
    RunStatus.INCOMPATIBLE: (Status.INCOMPATIBLE, Status.FAILED),
    RunStatus.PARTIAL: (Status.COMPLETED, Status.FAILED),
    RunStatus.FAILED: (Status.FAILED, Status.SKIPPED),
}
"""Two nodes that make a run of that status."""


@pytest.mark.parametrize("before", RunStatus)
def test_every_pair_of_run_statuses_is_written_where_the_nodes_may_go_and_refused_with_nothing_changed(
    setting: Setting, before: RunStatus
) -> None:
    """S10: once with the nodes that say so, once without a change of theirs."""
    claimed = setting.claimed(plan_of({"a": [], "b": []}, executors=dict.fromkeys("ab", GATE)))
    run = claimed.fence.run_id
    now = list(claimed.nodes)
    connection = setting.store._connection

    def wanted(status: RunStatus, attempts: tuple[int, ...] = (1, 1)) -> list[NodeRecord]:
        if status is RunStatus.PLANNED:
            attempts = (0, 0)
        pairs = zip(claimed.nodes, RUNS[status], attempts, strict=True)
        return [moved(node, one, attempt=attempt) for node, one, attempt in pairs]

    def put(records: list[NodeRecord]) -> None:
        for index, record in enumerate(records):
            plant(setting, run, now[index], record)
            now[index] = record
        started = None if before is RunStatus.PLANNED else STAMP.at
        connection.execute("UPDATE runs SET status = ?, started_at = ?", (before.value, started))

    with Reader.open(setting.home) as reader:
        for after in RunStatus:
            put(wanted(before))
            seen = seen_by(reader, run)
            derived = RunStatus.RUNNING if before is RunStatus.BUDGET_EXHAUSTED else before
            refused = setting.write(claimed, status=after)
            if after is derived or (before, after) == (RunStatus.BUDGET_EXHAUSTED, RunStatus.BUDGET_EXHAUSTED):
                assert refused is None, after
            else:
                assert_refused(refused, Code.CONFLICT, f"cannot become {after}", derived)
                assert seen_by(reader, run) == seen
            put(wanted(before))
            seen = seen_by(reader, run)
            nodes = wanted(after, tuple(record.attempt for record in now))
            grants = () if after is before else tuple(grants_that_open(run, record) for record in now)
            moves = [(one, other) for one, other in zip(now, nodes, strict=True) if one != other]
            granted = {record.key for record in now if is_granted(record, SHAPE, grants)}
            legal = after is not RunStatus.PLANNED or before is RunStatus.PLANNED
            legal &= all(refusal(one, other, gate=True, granted=one.key in granted) is None for one, other in moves)
            refused = setting.write(
                claimed, status=after, started=after is not RunStatus.PLANNED, nodes=tuple(nodes), grants=grants
            )
            if legal:
                assert refused is None, (after, refused)
                assert reader.run(run).status is after
                now[:] = nodes
            else:
                assert_refused(refused, Code.CONFLICT)
                assert seen_by(reader, run) == seen


SHAPE = Shape({"a": 0, "b": 1}, frozenset("ab"), {}, None)


def grants_that_open(run: str, record: NodeRecord) -> Grant:
    action = {Status.AMBIGUOUS: GrantAction.SETTLE}.get(record.status, GrantAction.RETRY)
    return grant_of(run, record.key, action, attempt=record.attempt)
