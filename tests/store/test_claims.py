"""Claims: one living owner, fences, identity verified whole."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostres.errors import Code, HostlerError
from store.contracts import EventKind, GrantAction, RequestKind
from store.hosts import HostIdentity, host_alive, known_hosts
from store.lifecycle import RunStatus, Status
from store.reader import Reader
from store.requests import cancel_id, post
from store.run_list import Owner
from store.run_store import RunStore
from store.values import Domain, digest_bytes
from tests.store.support import (
    CLOCK,
    COMPUTE,
    DIAMOND,
    NOTE,
    Setting,
    assert_refused,
    finish_node,
    grant_of,
    moved,
    node_plan,
    plan_of,
    request_of,
    transaction,
)

OWNER = """
import sys
from pathlib import Path
from store.clock import SystemClock
from store.home import Home
from store.hosts import HostIdentity
from store.run_store import RunStore
from hostres.errors import HostlerError
home = Home.open(Path(sys.argv[1]), create=True)
identity = HostIdentity.register(home)
store = RunStore.open(home, clock=SystemClock())
print("ready", identity.host_id, flush=True)
sys.stdin.readline()
for run_id in sys.argv[2:]:
    try:
        print("owner", store.claim(run_id, identity).fence.generation, flush=True)
    except HostlerError as error:
        print("refused", error.code, flush=True)
sys.stdin.readline()
"""


class Program:
    """Another process that claims runs when it is told to."""

    def __init__(self, home: Path, *run_ids: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(home), *run_ids],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.host_id = self.line().split()[1]

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def programs(number: int, setting: Setting, *run_ids: str) -> Iterator[list[Program]]:
    made: list[Program] = []
    try:
        made.extend(Program(setting.home.root, *run_ids) for _ in range(number))
        yield made
    finally:
        for one in made:
            one.end()


def claim_refused(setting: Setting, run: str) -> HostlerError:
    with pytest.raises(HostlerError) as caught:
        setting.store.claim(run, setting.identity)
    return caught.value


def test_a_claimed_run_cannot_be_claimed_again_and_after_release_the_generation_is_one_higher(
    setting: Setting,
) -> None:
    claimed = setting.claimed()
    assert claimed.fence.generation == 1
    assert_refused(claim_refused(setting, claimed.fence.run_id), Code.CONFLICT, setting.identity.host_id)
    setting.accept(claimed, release=True)
    again = setting.store.claim(claimed.fence.run_id, setting.identity)
    assert again.fence.generation == 2
    assert again.fence.token != claimed.fence.token
    with Reader.open(setting.home) as reader:
        kinds = [event.kind for event in reader.events(claimed.fence.run_id)]
    assert kinds == [
        EventKind.RUN_CREATED,
        EventKind.RUN_CLAIMED,
        EventKind.RUN_RELEASED,
        EventKind.RUN_CLAIMED,
    ]


def test_an_unknown_run_is_not_found(setting: Setting) -> None:
    assert_refused(claim_refused(setting, "run_none"), Code.NOT_FOUND, "run_none")


def test_a_killed_owner_loses_all_its_runs_at_once_and_its_file(setting: Setting) -> None:
    first, second = setting.created(), setting.created()
    with programs(1, setting, first, second) as (program,):
        program.go()
        assert [program.line(), program.line()] == ["owner 1", "owner 1"]
        assert_refused(claim_refused(setting, first), Code.CONFLICT, program.host_id, str(program.process.pid))
        assert setting.store.unowned() == []
        program.process.kill()
        program.process.wait()
        assert setting.store.unowned() == [first, second]
        assert setting.store.claim(first, setting.identity).fence.generation == 2
        assert program.host_id not in known_hosts(setting.home)
        with Reader.open(setting.home) as reader:
            assert reader.run(second).owner is None
        assert setting.store.claim(second, setting.identity).fence.generation == 2


def test_a_stopped_owner_cannot_be_taken_over_and_goes_on_when_continued(setting: Setting) -> None:
    run = setting.created()
    with programs(1, setting, run) as (program,):
        program.go()
        assert program.line() == "owner 1"
        program.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, program.process.pid, os.WSTOPPED | os.WNOWAIT)
        assert_refused(claim_refused(setting, run), Code.CONFLICT, program.host_id)
        assert host_alive(setting.home, program.host_id)
        program.process.send_signal(signal.SIGCONT)
        with Reader.open(setting.home) as reader:
            assert reader.run(run).owner == Owner(host=program.host_id, alive=True)


def test_of_processes_that_claim_one_run_at_once_exactly_one_wins_every_time(setting: Setting) -> None:
    runs = [setting.created() for _ in range(15)]
    with programs(3, setting, *runs) as made:
        for one in made:
            one.go()
        answers = [[one.line() for _ in runs] for one in made]
    for of_one_run in zip(*answers, strict=True):
        assert sorted(of_one_run) == ["owner 1", "refused conflict", "refused conflict"]


def test_what_a_stale_owner_writes_is_refused_of_every_kind_and_hurts_nobody(setting: Setting) -> None:
    run = setting.created()
    gone = HostIdentity.register(setting.home)
    stale = setting.store.claim(run, gone)
    gone._lock.close()
    claimed = setting.store.claim(run, setting.identity)
    ready = claimed.nodes[0]
    plan = node_plan(run, "a")
    with Reader.open(setting.home) as reader:
        before = list(reader.events(run))
        for parts in (
            {"nodes": (moved(ready, Status.QUEUED),)},
            {"plans": (plan,)},
            {"events": (NOTE,)},
            {"status": RunStatus.PLANNED},
            {"started": True},
            {"consumed": ("request-x",)},
            {"release": True},
            {},
        ):
            refusal = setting.write(stale, **parts)
            assert_refused(refusal, Code.CONFLICT, "claim 1", "the last one is 2")
            (other, mine) = setting.store.write([transaction(stale, **parts), transaction(claimed)])
            assert_refused(other, Code.CONFLICT, "claim 1")
            assert mine is None
        assert list(reader.events(run)) == before
        assert reader.run(run).owner == Owner(host=setting.identity.host_id, alive=True)
    assert setting.write(claimed, nodes=(moved(ready, Status.QUEUED),), events=(NOTE,)) is None


@pytest.mark.parametrize("changes", [{"host_id": "host_x"}, {"generation": 2}, {"token": "x"}])
def test_a_fence_that_differs_in_anything_is_refused(setting: Setting, changes: dict[str, Any]) -> None:
    claimed = setting.claimed()
    assert_refused(setting.write(claimed, fence=replace(claimed.fence, **changes)), Code.CONFLICT)


def test_a_new_owner_finds_the_run_as_it_was_left(setting: Setting) -> None:
    claimed = setting.claimed()
    run = claimed.fence.run_id
    assert (claimed.status, claimed.started_at, claimed.outputs) == (RunStatus.PLANNED, None, {})
    done = finish_node(setting, claimed, "a", {"y": [1, 2.5, "é"]})
    ready = [moved(node, Status.READY) for node in claimed.nodes[1:3]]
    setting.accept(claimed, nodes=tuple(ready))
    post(setting.home, request_of(run, RequestKind.CANCEL, request_id=cancel_id(run)), clock=CLOCK)
    setting.accept(claimed, release=True)
    again = setting.store.claim(run, setting.identity)
    assert again.nodes == (done, *ready, claimed.nodes[3])
    assert again.outputs == {"a": {"y": [1, 2.5, "é"]}}
    assert again.status is RunStatus.RUNNING
    assert again.started_at is not None
    assert [request.kind for request in again.requests] == [RequestKind.CANCEL]
    assert (again.record, again.plan) == (claimed.record, DIAMOND)


def change(path: Path, statement: str) -> None:
    """Execute *statement* behind the store's back."""
    with sqlite3.connect(path) as connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()


def changed_byte(table: str, column: str) -> str:
    """Return the statement that changes the last byte of all such values."""
    return f"UPDATE {table} SET {column} = CAST(substr({column}, 1, length({column}) - 1) || X'21' AS BLOB)"


def run_with_everything(setting: Setting) -> str:
    bundle = b"code"
    plan = plan_of({"a": [], "b": ["a"]}, executors={"b": COMPUTE}, bundle_sha256=digest_bytes(Domain.BUNDLE, bundle))
    claimed = setting.claimed(plan, bundle=bundle)
    run = claimed.fence.run_id
    finish_node(setting, claimed, "a", {"large": "x" * 10})
    frozen = node_plan(run, "b", [1])
    setting.accept(
        claimed,
        plans=(frozen,),
        nodes=(moved(claimed.nodes[1], Status.READY, plan_sha256=frozen.sha256),),
        events=(NOTE,),
        release=True,
    )
    return run


def read_everything(reader: Reader, run: str) -> None:
    view = reader.run(run)
    reader.plan(view.record.plan_sha256)
    reader.bundle(view.record.bundle_sha256 or "")
    reader.output(run, "a")
    for node in reader.nodes(run):
        if node.plan_sha256:
            reader.node_plan(node.plan_sha256)
    list(reader.events(run))


@pytest.mark.parametrize(
    ("table", "column", "named"),
    [
        ("bundles", "content", "code bundle"),
        ("graph_plans", "content", "graph plan"),
        ("outputs", "content", "output of node a"),
        ("node_plans", "content", "of node b"),
        ("runs", "record", "record of run"),
        ("nodes", "record", "record of node a"),
        ("events", "event", "event "),
    ],
)
def test_a_changed_byte_is_found_by_the_claim_and_by_reading_and_named(
    setting: Setting, table: str, column: str, named: str
) -> None:
    run = run_with_everything(setting)
    change(setting.home.database, changed_byte(table, column))
    assert_refused(claim_refused(setting, run), Code.INVALID_DATA, named, "damaged")
    with Reader.open(setting.home) as reader:
        assert reader.runs()[0].host is None
        with pytest.raises(HostlerError) as caught:
            read_everything(reader, run)
        assert_refused(caught.value, Code.INVALID_DATA, "damaged")


def test_the_plan_of_the_newest_run_is_taken_as_it_was_given_and_its_stored_bytes_are_verified(
    setting: Setting,
) -> None:
    """A value that reads back otherwise, as 3.0 does, is read from the store all the same."""
    plain, odd = plan_of({"a": []}, inputs={"x": 3}), plan_of({"a": []}, inputs={"x": 3.0})
    assert setting.claimed(plain).plan is plain
    read = setting.claimed(odd).plan
    assert (read, type(read.inputs["x"])) == (odd, int)
    earlier, newest = setting.created(plain), setting.created(DIAMOND)
    again = setting.store.claim(earlier, setting.identity).plan
    assert again == plain
    assert again is not plain
    change(setting.home.database, changed_byte("graph_plans", "content"))
    assert_refused(claim_refused(setting, newest), Code.INVALID_DATA, "graph plan", "damaged")


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE nodes SET status = 'completed' WHERE key = 'b'", "record of node b"),
        ("UPDATE runs SET status = 'completed'", "status of run"),
        ("UPDATE runs SET counts = '{\"ready\":2}'", "count of nodes"),
        ("UPDATE runs SET event_seq = event_seq + 1", "event "),
        ("DELETE FROM nodes WHERE key = 'b'", "set of nodes"),
        ("DELETE FROM outputs", "output of node a"),
        ("DELETE FROM node_plans", "of node b"),
        ("DELETE FROM events", "log of run"),
    ],
)
def test_columns_that_contradict_the_records_are_found_by_the_claim(
    setting: Setting, statement: str, named: str
) -> None:
    run = run_with_everything(setting)
    change(setting.home.database, statement)
    assert_refused(claim_refused(setting, run), Code.INVALID_DATA, named)


def test_a_large_output_lies_in_a_file_and_a_changed_byte_of_it_is_found(setting: Setting) -> None:
    claimed = setting.claimed()
    done = finish_node(setting, claimed, "a", "x" * 300_000)
    setting.accept(claimed, release=True)
    assert done.output_sha256 is not None
    path = setting.home.content / done.output_sha256
    assert path.stat().st_size == 300_002
    again = setting.store.claim(claimed.fence.run_id, setting.identity)
    assert again.outputs == {"a": "x" * 300_000}
    setting.accept(again, release=True)
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"y")
    assert_refused(claim_refused(setting, claimed.fence.run_id), Code.INVALID_DATA, "output of node a")
    path.unlink()
    assert_refused(claim_refused(setting, claimed.fence.run_id), Code.INVALID_DATA, "output of node a")


def test_runs_that_nobody_works_on_are_listed_final_ones_are_not(setting: Setting) -> None:
    waiting, owned, finished = setting.created(), setting.claimed(), setting.claimed(plan_of({"a": []}))
    finish_node(setting, finished, "a", 1)
    setting.accept(finished, release=True)
    assert setting.store.unowned() == [waiting]
    setting.accept(owned, release=True)
    assert setting.store.unowned() == [waiting, owned.fence.run_id]


def test_a_store_opened_twice_in_one_process_is_one_store(setting: Setting) -> None:
    other = RunStore.open(setting.home, clock=CLOCK)
    run = setting.created()
    claimed = other.claim(run, setting.identity)
    setting.accept(claimed, events=(NOTE,))
    other.close()
    setting.accept(claimed, events=(NOTE,))


@pytest.mark.parametrize("table", ["nodes", "grants", "requests"])
def test_a_damaged_run_whose_error_is_kept_does_not_keep_the_host_from_its_other_runs(
    setting: Setting, table: str
) -> None:
    """Rows left half-read would hold an old snapshot, under which SQLite lets nothing more be written."""
    damaged, sound = setting.created(), setting.created()
    claimed = setting.store.claim(damaged, setting.identity)
    setting.accept(
        claimed,
        grants=tuple(grant_of(damaged, "a", GrantAction.SETTLE) for _ in range(2)),
        release=True,
    )
    for _ in range(2):
        post(setting.home, request_of(damaged, RequestKind.RETRY, node="a"), clock=CLOCK)
    first = "run = 1 AND position = 0" if table == "nodes" else f"rowid = (SELECT min(rowid) FROM {table})"
    change(setting.home.database, f"UPDATE {table} SET sha256 = 'x' WHERE {first}")
    kept = []
    for _ in range(2):
        with pytest.raises(HostlerError) as caught:
            setting.store.claim(damaged, setting.identity)
        kept.append(caught.value)
    assert_refused(kept[0], Code.INVALID_DATA)
    post(setting.home, request_of(sound, RequestKind.RETRY, node="a"), clock=CLOCK)
    setting.store.claim(sound, setting.identity)
