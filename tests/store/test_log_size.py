"""The write-ahead log stays small whoever reads, and starts over when a reader that kept it is gone."""

import logging
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hostres.errors import Code
from store import database, log_size
from store.contracts import EventKind
from store.database import LOG_BYTES_KEPT, open_writer
from store.database_file import log_bytes
from store.lifecycle import Status
from store.limits import MIB
from store.lock_holders import readers, writers
from store.log_size import LOG_BYTES, LogSize
from store.reader import Reader
from store.schema import SCHEMA_VERSION
from store.transactions import Claimed, NewEvent
from tests.store.support import NOTE, Setting, assert_refused, moved, plan_of, transaction

SLACK = 2 * MIB
"""What one group, and the step between two tries, may add."""

KEEPS_READING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM runs").fetchone()
print("reads", flush=True)
sys.stdin.readline()
"""

WRITES_ON = """
import sys
from pathlib import Path
from store.ids import new_run_id
from tests.store.support import EPOCH_MS, Setting
from tests.store.test_log_size import BIG
setting = Setting(Path(sys.argv[1]))
claimed = setting.claimed(run_id=new_run_id(EPOCH_MS, int(sys.argv[2]).to_bytes(10, "big")))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(120):
    setting.accept(claimed, events=(BIG,))
setting.close()
"""

BIG = NewEvent(kind=EventKind.SPENDING, data={"text": "x" * 60_000})


def transitions(setting: Setting, claimed: Claimed, number: int, *, group: int) -> Iterator[int]:
    """Move the run's nodes to and fro, so many times in all; yield after each commit."""
    nodes = list(claimed.nodes)
    for first in range(0, number, group):
        batch = []
        for index in range(first, first + group):
            place = index % len(nodes)
            status = Status.QUEUED if nodes[place].status is Status.READY else Status.READY
            nodes[place] = moved(nodes[place], status)
            batch.append(transaction(claimed, nodes=(nodes[place],), events=(NOTE,)))
        assert setting.store.write(batch) == [None] * group
        yield first + group


def wide(setting: Setting) -> Claimed:
    return setting.claimed(plan_of({f"n{number}": () for number in range(60)}))


@contextmanager
def other_program(setting: Setting) -> Iterator["subprocess.Popen[str]"]:
    """Let another program, not one of ours, keep a read transaction open."""
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPS_READING, str(setting.home.database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reads\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_ten_thousand_transitions_leave_a_small_log_with_a_reader_that_comes_and_goes(setting: Setting) -> None:
    """It keeps a snapshot for up to 20 commits, then is away for up to 20."""
    claimed, rng, largest, turns, change = wide(setting), random.Random(4), 0, 0, 0
    looking = sqlite3.connect(setting.home.database, isolation_level=None)
    for commit, _ in enumerate(transitions(setting, claimed, 10_000, group=20)):
        if commit == change:
            if looking.in_transaction:
                looking.execute("COMMIT")
            else:
                looking.execute("BEGIN")
                looking.execute("SELECT count(*) FROM events").fetchone()
            turns += 1
            change = commit + rng.randrange(1, 21)
        largest = max(largest, log_bytes(setting.home.database))
    looking.close()
    assert turns > 30
    assert LOG_BYTES_KEPT / 2 < largest <= LOG_BYTES + SLACK
    with Reader.open(setting.home) as reader:
        assert len(list(reader.events(claimed.fence.run_id))) == 10_002


def test_the_log_starts_over_although_one_reader_follows_the_other(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint that does not wait would never find a moment without one; one that waits finds one or soon the next."""
    monkeypatch.setattr(log_size, "_BRIEFLY_MS", 1_000)
    claimed, over = setting.claimed(), threading.Event()
    big = NewEvent(kind=EventKind.LATE_RESULT, data={"text": "x" * 200_000})

    def follow() -> None:
        connections = [sqlite3.connect(setting.home.database, isolation_level=None) for _ in range(2)]
        turn = 0
        while not over.is_set():
            connections[turn % 2].execute("BEGIN")
            connections[turn % 2].execute("SELECT count(*) FROM events").fetchone()
            over.wait(0.003)  # its look takes so long
            turn += 1
            if connections[turn % 2].in_transaction:
                connections[turn % 2].execute("COMMIT")
        for connection in connections:
            connection.close()

    thread = threading.Thread(target=follow)
    thread.start()
    largest = 0
    try:
        for _ in range(120):  # 24 MB
            setting.accept(claimed, events=(big,))
            largest = max(largest, log_bytes(setting.home.database))
    finally:
        over.set()
        thread.join(timeout=60)
    assert largest <= LOG_BYTES + SLACK


def test_the_log_starts_over_while_three_programs_write_without_pause(setting: Setting) -> None:
    """Each of them is about to write whenever another one has a moment for a checkpoint."""
    command = [sys.executable, "-c", WRITES_ON, str(setting.home.root)]
    programs = [
        subprocess.Popen([*command, number], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in ("1", "2", "3")
    ]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()
    largest = 0
    while any(program.poll() is None for program in programs):
        largest = max(largest, log_bytes(setting.home.database))
        time.sleep(0.001)
    for program in programs:
        program.communicate()
        assert program.returncode == 0
    assert LOG_BYTES_KEPT / 2 < largest <= LOG_BYTES_KEPT + SLACK


def test_the_log_of_a_store_that_nobody_reads_is_no_larger_than_what_it_keeps(setting: Setting) -> None:
    for _ in transitions(setting, wide(setting), 2_000, group=4):
        assert log_bytes(setting.home.database) <= LOG_BYTES_KEPT + SLACK


def test_a_program_that_keeps_reading_is_named_and_the_log_starts_over_when_it_is_gone(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    claimed = setting.claimed()
    big = NewEvent(kind=EventKind.LATE_RESULT, data={"text": "x" * 200_000})
    with other_program(setting) as process, caplog.at_level(logging.WARNING, "store"):
        while log_bytes(setting.home.database) < LOG_BYTES + 3 * MIB:
            setting.accept(claimed, events=(big,))
        (record,) = caplog.records
        assert f"pid {process.pid}" in record.getMessage()
        assert f"pid {process.pid}" in readers(setting.home.database)
    for _ in range(12):
        setting.accept(claimed, events=(big,))
    assert log_bytes(setting.home.database) <= LOG_BYTES_KEPT + SLACK
    assert readers(setting.home.database) == ""


def test_a_log_that_can_grow_no_more_is_refused_by_name_before_anything_is_written(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_size, "BUSY_SECONDS", 0.05)
    setting.store._log_size = LogSize(setting.store._connection, setting.home.database, limit=2 * MIB)
    claimed = setting.claimed()
    big = NewEvent(kind=EventKind.LATE_RESULT, data={"text": "x" * 200_000})
    with other_program(setting) as process:
        written = 0
        while (refusal := setting.write(claimed, events=(big,))) is None:
            written += 1
            assert written < 30
        assert_refused(refusal, Code.UNAVAILABLE, "2 MiB", f"pid {process.pid}")
        assert log_bytes(setting.home.database) <= 2 * MIB + SLACK
        with Reader.open(setting.home) as reader:
            assert len(list(reader.events(claimed.fence.run_id))) == 2 + written
    setting.accept(claimed, events=(big,))


def test_a_program_that_writes_is_named_when_waiting_for_it_was_in_vain(setting: Setting) -> None:
    blocker = open_writer(setting.home.database, SCHEMA_VERSION, create=False)
    assert writers(setting.home.database) == ""
    blocker.execute("BEGIN IMMEDIATE")
    assert writers(setting.home.database) == "this program itself"
    blocker.close()


WRITES = KEEPS_READING.replace('"BEGIN"', '"BEGIN IMMEDIATE"')


def test_a_write_that_waited_in_vain_names_the_process_that_writes(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.store.test_log_size.KEEPS_READING", WRITES)
    claimed = setting.claimed()
    monkeypatch.setattr(database.begin_write, "__kwdefaults__", {"busy_seconds": 0.05})
    with other_program(setting) as process:
        assert_refused(setting.write(claimed, events=(NOTE,)), Code.UNAVAILABLE, f"kept busy by pid {process.pid} (")
    setting.accept(claimed, events=(NOTE,))


def test_the_locks_of_another_file_name_nobody(setting: Setting, tmp_path: Path) -> None:
    other = tmp_path / "runs.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE x (y)")
        connection.execute("BEGIN IMMEDIATE")
        assert writers(setting.home.database) == ""
        assert writers(tmp_path / "none.db") == ""
        assert os.path.exists(f"{other}-shm")
