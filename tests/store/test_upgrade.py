"""Upgrades under way: killed at every step, started many times at once, with a copy that is exactly what was."""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store import schema
from store.contracts import RequestKind
from store.database import close_writer, open_writer
from store.home import Home
from store.hosts import HostIdentity
from store.reader import Reader
from store.requests import post
from store.retention.removal import Removal
from store.run_store import RunStore
from store.schema import MIGRATIONS, RELEASES, SCHEMA_VERSION
from store.upgrade import kept_copy, upgrade
from store.versions import stored_version
from tests.store import schema_sample
from tests.store.support import CLOCK, Setting, assert_refused, request_of

NEXT = (*MIGRATIONS, ("CREATE TABLE later (x INTEGER) STRICT", "INSERT INTO later VALUES (1)"))
NEXT_RELEASES = (*RELEASES, "9.9.9")
KNOWN = SCHEMA_VERSION + 1

MOVED = ("nodes", "node_plans", "outputs", "events")
"""Tables that version 5 stores anew."""


def filled(folder: Path) -> tuple[Home, str]:
    setting = Setting(folder)
    run = setting.created()
    setting.close()
    return setting.home, run


def bring_up(home: Home, watch: Callable[[sqlite3.Connection], None] | None = None) -> None:
    connection = open_writer(home.database, KNOWN, create=False)
    try:
        if watch is not None:
            watch(connection)
        upgrade(connection, home.database, home.hosts, NEXT, NEXT_RELEASES)
    finally:
        close_writer(connection, home.database)


def in_child(work: Callable[[], None]) -> int:
    """Run *work* in a forked child; return how that ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def versions(path: Path) -> tuple[int, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE name = 'later'")]
        return stored_version(connection), tables


def test_an_upgrade_killed_at_any_step_leaves_the_old_version_and_the_next_start_does_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is an SQL statement, a sync, a rename or the making of a file."""
    home, run = filled(tmp_path / "home")
    original = {name: (home.root / name).read_bytes() for name in ("runs.db",)}
    step = 0
    done = False
    while not done:
        step += 1
        left = step

        def passed(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def watched(name: str, module: object) -> None:
            real = getattr(module, name)

            def counting(*given: object, **named: object) -> object:
                passed()
                return real(*given, **named)

            monkeypatch.setattr(module, name, counting)

        def work() -> None:
            for name, module in (("fsync", os), ("open", os), ("rename", Path), ("unlink", Path)):
                watched(name, module)
            bring_up(home, lambda connection: connection.set_trace_callback(passed))

        how = in_child(work)
        done = how == 0
        assert done or how == -signal.SIGKILL
        version, tables = versions(home.database)
        assert (version, tables) in ((SCHEMA_VERSION, []), (KNOWN, ["later"]))
        if version == SCHEMA_VERSION:
            with Reader.open(home) as reader:
                assert reader.find("-") == run
            bring_up(home)
        assert versions(home.database) == (KNOWN, ["later"])
        assert versions(kept_copy(home.database, SCHEMA_VERSION)) == (SCHEMA_VERSION, [])
        assert sorted(path.name for path in home.root.glob("*runs.db*")) == [
            "runs.db",
            f"runs.db.v{SCHEMA_VERSION}",
        ]
        with suppress(FileNotFoundError):
            (home.root / "runs.db-wal").unlink()
        for name, content in original.items():
            (home.root / name).write_bytes(content)
    assert step > 12


def test_programs_that_start_at_once_upgrade_once(tmp_path: Path) -> None:
    """The hosts that were first are there when those that waited go on."""
    home, run = filled(tmp_path / "home")
    gates = [os.pipe() for _ in range(3)]  # go; each one's byte when it is done; may end
    (go, start), (done, finished), (end, finish) = gates
    children = []
    for _ in range(5):
        child = os.fork()
        if child == 0:
            os.close(start)
            os.close(finish)
            os.read(go, 1)
            with suppress(HostlerError):
                bring_up(home)
                HostIdentity.register(home)
                os.write(finished, b"y")
                os.read(end, 1)
            os.write(finished, b"n")
            os._exit(0)
        children.append(child)
    os.close(start)
    os.close(finished)
    answers = b""
    while len(answers) < 5:
        answers += os.read(done, 5)
    os.close(finish)
    for child in children:
        os.waitpid(child, 0)
    for descriptor in (go, done, end):
        os.close(descriptor)
    assert answers == b"yyyyy"
    copies = [path.name for path in home.root.iterdir() if path.name.startswith("runs.db.v")]
    assert copies == [kept_copy(home.database, SCHEMA_VERSION).name]
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("SELECT count(*) FROM later").fetchone() == (1,)
        assert connection.execute("SELECT run_id FROM runs").fetchall() == [(run,)]
        rows = connection.execute("SELECT version, release FROM schema_versions ORDER BY version").fetchall()
    assert rows == [*enumerate(RELEASES, 1), (KNOWN, "9.9.9")]


def test_the_copy_is_of_the_file_as_it_was_upgraded_also_if_an_older_one_lies_there(tmp_path: Path) -> None:
    """A file that came back from its copy and was worked with is another one than was copied before."""
    home, _ = filled(tmp_path / "home")
    copy = kept_copy(home.database, SCHEMA_VERSION)
    copy.write_bytes(home.database.read_bytes())
    copy.chmod(0o600)
    setting = Setting(home.root)
    later = setting.created()
    setting.close()
    bring_up(home)
    with closing(sqlite3.connect(copy)) as connection:
        runs = {row[0] for row in connection.execute("SELECT run_id FROM runs")}
    assert later in runs
    assert copy.stat().st_mode & 0o777 == 0o600


def test_the_copy_can_take_the_place_of_the_file_again(tmp_path: Path) -> None:
    home, run = filled(tmp_path / "home")
    bring_up(home)
    kept_copy(home.database, SCHEMA_VERSION).replace(home.database)
    setting = Setting(home.root)
    assert setting.store.claim(run, setting.identity).fence.generation == 1
    setting.close()


def test_nothing_is_upgraded_where_there_is_no_room_for_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = filled(tmp_path / "home")
    before = home.database.read_bytes()

    def no_room(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(HostlerError) as caught:
        bring_up(home)
    assert_refused(caught.value, Code.UNAVAILABLE, "no copy of", "no space left")
    assert home.database.read_bytes() == before
    assert [path.name for path in home.root.glob("*runs.db*")] == ["runs.db"]


def test_a_second_start_makes_no_second_copy(tmp_path: Path) -> None:
    home, _ = filled(tmp_path / "home")
    bring_up(home)
    copy = kept_copy(home.database, SCHEMA_VERSION)
    before = copy.stat()
    bring_up(home)
    assert (copy.stat().st_ino, copy.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_store_opened_before_somebody_upgraded_the_file_writes_nothing_more(tmp_path: Path) -> None:
    """Between opening the file and showing itself as a host, a program cannot be seen by the one that upgrades."""
    home, run = filled(tmp_path / "home")
    store = RunStore.open(home, clock=CLOCK)
    bring_up(home)
    identity = HostIdentity.register(home)
    with pytest.raises(HostlerError) as caught:
        store.claim(run, identity)
    assert_refused(caught.value, Code.NEWER_SCHEMA, f"version {KNOWN}")
    assert "Hostler 9.9.9 or newer" in caught.value.todo
    with pytest.raises(HostlerError) as caught:
        post(home, request_of(run, RequestKind.CANCEL), clock=CLOCK)
    assert_refused(caught.value, Code.NEWER_SCHEMA)
    identity.close()
    store.close()


def test_a_newer_file_names_the_hostler_that_is_needed_and_nothing_is_made_beside_it(tmp_path: Path) -> None:
    home, _ = filled(tmp_path / "home")
    bring_up(home)
    before = {path.name: path.read_bytes() for path in home.root.iterdir() if path.is_file()}
    said = []

    def look() -> None:
        from store import database_file  # noqa: PLC0415

        database_file._opened.clear()  # as in a program that has not opened it before
        for opens in (lambda: Reader.open(home), lambda: RunStore.open(home, clock=CLOCK)):
            with pytest.raises(HostlerError) as caught:
                opens()
            said.append(caught.value.todo)
        assert all("Hostler 9.9.9 or newer" in todo for todo in said), said

    assert in_child(look) == 0
    assert {path.name: path.read_bytes() for path in home.root.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_a_file_of_every_released_version_can_be_opened_and_worked_with(tmp_path: Path, version: int) -> None:
    home = Home.open(tmp_path / "home", create=True)
    schema_sample.restore(version, home)
    setting = Setting(home.root)
    with Reader.open(home) as reader:
        runs = {row.workflow: row for row in reader.runs()}
        assert set(runs) == {"finished", "interrupted"}
        finished = runs["finished"].run_id
        assert reader.output(finished, "a") == schema_sample.VALUE
        assert reader.run(finished).summary is not None
        for run in runs.values():
            seen = list(reader.events(run.run_id))
            assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
            view = reader.run(run.run_id)
            reader.plan(view.record.plan_sha256)
    claimed = setting.store.claim(runs["interrupted"].run_id, setting.identity)
    assert [request.kind for request in claimed.requests] == [RequestKind.CANCEL]
    assert claimed.fence.generation == 2
    assert len(claimed.grants) == 1
    assert claimed.outputs == {"a": schema_sample.VALUE}
    connection = setting.store._connection
    assert stored_version(connection) == SCHEMA_VERSION
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert kept_copy(home.database, version).exists() == (version < SCHEMA_VERSION)
    setting.close()


def test_rows_of_runs_that_are_being_removed_come_along(tmp_path: Path) -> None:
    """Between the bites of a removal a run has rows and is not there itself; its rows still go after the upgrade."""
    home = Home.open(tmp_path / "home", create=True)
    schema_sample.restore(4, home)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("INSERT INTO removals (run, run_id) SELECT run, run_id FROM runs WHERE run = 1")
        connection.execute("DELETE FROM runs WHERE run = 1")
        before = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in MOVED]
    RunStore.open(home, clock=CLOCK).close()
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        assert [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in MOVED] == before
        removal = Removal(connection, home.database)
        removal.rows([run for run, _ in removal.begun()])
        assert all(
            connection.execute(f"SELECT DISTINCT run FROM {table}").fetchall() in ([], [(2,)]) for table in MOVED
        )
        assert removal.begun() == []


def test_every_schema_version_names_its_release() -> None:
    assert len(schema.RELEASES) == len(schema.MIGRATIONS)
