"""What the writer holds of a claimed run spares it reading, and never stands for what is stored."""

import pytest

from hostres.errors import Code
from store.lifecycle import RunStatus, Status
from store.reader import Reader
from store.records import encode
from store.transactions import Output
from store.values import Domain, digest_bytes
from tests.store.support import (
    NOTE,
    STAMP,
    Setting,
    assert_refused,
    moved,
    node_plan,
    plan_of,
    transaction,
)


def test_a_step_of_a_claimed_run_reads_nothing_and_is_six_statements_in_one_commit(setting: Setting) -> None:
    """Completing a node and starting the next: plan, output, run, both nodes, three events."""
    claimed = setting.claimed(plan_of({"a": [], "b": ["a"]}))
    running = moved(claimed.nodes[0], Status.RUNNING, attempt=1, started_at=STAMP.at)
    setting.accept(claimed, started=True, nodes=(running,), events=(NOTE,))
    output, plan = Output.of("a", 1), node_plan(claimed.fence.run_id, "b")
    done = moved(running, Status.COMPLETED, output_sha256=output.sha256)
    after = moved(claimed.nodes[1], Status.QUEUED)
    statements: list[str] = []
    setting.store._connection.set_trace_callback(statements.append)
    setting.accept(claimed, nodes=(done, after), plans=(plan,), outputs=(output,), events=(NOTE, NOTE, NOTE))
    setting.store._connection.set_trace_callback(None)
    words = [statement.split()[0] for statement in statements]
    assert words == ["BEGIN", "INSERT", "INSERT", "UPDATE", "UPDATE", "UPDATE", *["INSERT"] * 3, "COMMIT"]


def test_a_group_writes_each_node_and_run_once_and_tells_of_every_step(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    output = Output.of("a", 1)
    running = moved(claimed.nodes[0], Status.RUNNING, attempt=1, started_at=STAMP.at)
    done = moved(running, Status.COMPLETED, output_sha256=output.sha256)
    statements: list[str] = []
    setting.store._connection.set_trace_callback(statements.append)
    group = [
        transaction(claimed, started=True, nodes=(running,), events=(NOTE,)),
        transaction(claimed, nodes=(done,), outputs=(output,), events=(NOTE,)),
    ]
    assert setting.store.write(group) == [None, None]
    setting.store._connection.set_trace_callback(None)
    assert sum(statement.startswith("UPDATE nodes") for statement in statements) == 1
    assert sum(statement.startswith("UPDATE runs SET started_at") for statement in statements) == 1
    with Reader.open(setting.home) as reader:
        assert list(reader.nodes(claimed.fence.run_id)) == [done]
        assert reader.run(claimed.fence.run_id).status is RunStatus.COMPLETED
        assert len(list(reader.events(claimed.fence.run_id))) == 4


def test_a_node_that_changed_under_the_writer_is_judged_as_it_is_stored(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    queued = moved(claimed.nodes[0], Status.QUEUED)
    setting.accept(claimed, started=True, nodes=(queued,))
    final = encode(moved(queued, Status.CANCELLED))
    setting.store._connection.execute(
        "UPDATE nodes SET record = ?, sha256 = ?", (final, digest_bytes(Domain.RECORD, final))
    )
    ready = moved(queued, Status.READY)
    assert_refused(setting.write(claimed, nodes=(ready,)), Code.CONFLICT, "it is cancelled for ever")


@pytest.mark.parametrize(
    "change", ["token = 'other'", "generation = generation + 1", "host_id = NULL, token = NULL", "counts = '{}'"]
)
def test_a_run_that_changed_under_the_writer_is_not_written_as_it_was_held(setting: Setting, change: str) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    setting.accept(claimed, started=True, events=(NOTE,))
    setting.store._connection.execute(f"UPDATE runs SET {change}")
    refusal = setting.write(claimed, events=(NOTE,))
    with Reader.open(setting.home) as reader:
        events = len(list(reader.events(claimed.fence.run_id)))
    if change.startswith("counts"):  # what is stored now is what counts
        assert refusal is None
        assert events == 4
    else:
        assert_refused(refusal, Code.CONFLICT, "is no longer in force")
        assert events == 3


def test_a_run_given_back_in_a_group_takes_nothing_more_in_it(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    answers = setting.store.write(
        [
            transaction(claimed, started=True, events=(NOTE,)),
            transaction(claimed, release=True),
            transaction(claimed, events=(NOTE,)),
        ]
    )
    assert answers[:2] == [None, None]
    assert_refused(answers[2], Code.CONFLICT, "is no longer in force")


def test_a_refusal_and_a_failed_commit_leave_nothing_behind_in_what_is_held(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    queued = moved(claimed.nodes[0], Status.QUEUED)
    illegal = moved(claimed.nodes[0], Status.PENDING)
    assert_refused(setting.write(claimed, started=True, nodes=(queued, illegal)), Code.CONFLICT, "node a")
    connection = setting.store._connection
    connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
    large = Output.of("a", "x" * 100_000)
    running = moved(queued, Status.RUNNING, attempt=1, started_at=STAMP.at)
    done = moved(running, Status.COMPLETED, output_sha256=large.sha256, finished_at=STAMP.at)
    refusal = setting.write(claimed, started=True, nodes=(done,), outputs=(large,))
    assert_refused(refusal, Code.UNAVAILABLE, "the disk is full")
    connection.execute("PRAGMA max_page_count = 1000000")
    setting.accept(claimed, started=True, nodes=(done,), outputs=(large,), events=(NOTE,))
    setting.accept(claimed, release=True)
    assert setting.store.claim(claimed.fence.run_id, setting.identity).nodes == (done,)
