"""Versions of the file: newer refused untouched, older brought up to date with a copy kept."""

import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store.contracts import RequestKind
from store.database import open_writer
from store.database_file import APPLICATION_ID
from store.home import Home
from store.reader import Reader
from store.requests import post
from store.run_store import RunStore
from store.schema import MIGRATIONS, RELEASES, SCHEMA_VERSION
from store.upgrade import kept_copy, upgrade
from store.versions import stored_version
from tests.store import schema_sample
from tests.store.support import CLOCK, Setting, assert_refused, request_of, run_id

LOOK = """
import sys
from collections.abc import Callable
from pathlib import Path
from hostres.errors import HostlerError
from store.clock import SystemClock
from store.home import Home
from store.reader import Reader
from store.run_store import RunStore
home = Home.open(Path(sys.argv[1]), create=True)
for opens in (lambda: RunStore.open(home, clock=SystemClock()), lambda: Reader.open(home)):
    try:
        opens()
        print("opened")
    except HostlerError as error:
        print(error.code, error.what)
"""
NEXT = (*MIGRATIONS, ("CREATE TABLE later (x INTEGER) STRICT", "ALTER TABLE runs ADD COLUMN extra TEXT"))
NEXT_RELEASES = (*RELEASES, "9.9.9")
CUT_SHORT = """
import os, signal, sys
from pathlib import Path
from store.database import open_writer
from store.schema import MIGRATIONS, RELEASES
from store.upgrade import upgrade
database = Path(sys.argv[1])
connection = open_writer(database, 9, create=False)
connection.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
upgrade(connection, database, database.parent / "hosts",
        (*MIGRATIONS, ("CREATE TABLE later (x INTEGER) STRICT", "SELECT die()")), (*RELEASES, "9.9.9"))
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def filled(folder: Path) -> tuple[Home, str]:
    setting = Setting(folder)
    run = setting.created()
    setting.close()
    return setting.home, run


def of_newer_version(folder: Path) -> tuple[Home, str]:
    home, run = filled(folder)
    connection = sqlite3.connect(home.database)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    return home, run


def of_newer_version_in_its_log(folder: Path) -> tuple[Home, str]:
    """Return what a newer program leaves that is killed before its log is moved into the file."""
    home, run = filled(folder)
    connection = sqlite3.connect(home.database)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    left = Home.open(folder.with_name("left"), create=True)
    for name in ("runs.db", "runs.db-wal"):
        shutil.copy(home.root / name, left.root / name)
    connection.close()
    return left, run


@pytest.mark.parametrize("make", [of_newer_version, of_newer_version_in_its_log])
def test_a_newer_file_is_refused_untouched_naming_both_versions(
    tmp_path: Path, make: Callable[[Path], tuple[Home, str]]
) -> None:
    """S15, field case 53."""
    home, run = make(tmp_path / "home")
    before = contents(home.root)
    done = subprocess.run([sys.executable, "-c", LOOK, str(home.root)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        assert line.startswith("newer-schema ")
        assert f"version {SCHEMA_VERSION + 1}" in line
        assert f"up to {SCHEMA_VERSION}" in line
    for opens in (
        lambda: RunStore.open(home, clock=CLOCK),
        lambda: Reader.open(home),
        lambda: post(home, request_of(run, RequestKind.CANCEL), clock=CLOCK),
    ):
        with pytest.raises(HostlerError) as caught:
            opens()
        assert_refused(caught.value, Code.NEWER_SCHEMA)
    after = contents(home.root)
    if make is of_newer_version_in_its_log:
        del after["runs.db-shm"]  # only an index of the log, which reading it rebuilds
    assert after == before


def test_a_file_of_another_program_and_one_that_is_no_database_are_refused(tmp_path: Path) -> None:
    for name, content in (("text", b"hello" * 100), ("short", b"SQLite format 3\0"), ("other", b"")):
        home = Home.open(tmp_path / name, create=True)
        home.database.touch(0o600)
        home.database.write_bytes(content)
        if name == "other":
            with sqlite3.connect(home.database) as connection:
                connection.execute("PRAGMA user_version = 1")
                connection.execute("PRAGMA application_id = 7")
            connection.close()
        for opens in (lambda home=home: RunStore.open(home, clock=CLOCK), lambda home=home: Reader.open(home)):
            with pytest.raises(HostlerError) as caught:
                opens()
            assert_refused(caught.value, Code.UNSAFE_STATE, "runs.db")


def test_a_new_file_says_what_it_is(setting: Setting) -> None:
    connection = setting.store._connection
    pragmas = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in (
            "application_id",
            "user_version",
            "journal_mode",
            "synchronous",
            "foreign_keys",
            "fullfsync",
            "auto_vacuum",
        )
    }
    assert pragmas == {
        "application_id": APPLICATION_ID,
        "user_version": SCHEMA_VERSION,
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "fullfsync": 1,
        "auto_vacuum": 2,
    }
    tables = connection.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'").fetchall()
    assert {name for name, strict in tables if not strict} <= {"sqlite_schema", "sqlite_sequence"}


def test_an_older_file_is_brought_up_to_date_and_a_copy_is_kept(tmp_path: Path) -> None:
    """S15."""
    home, run = filled(tmp_path / "home")
    connection = open_writer(home.database, 9, create=False)
    upgrade(connection, home.database, home.hosts, NEXT, NEXT_RELEASES)
    assert stored_version(connection) == SCHEMA_VERSION + 1
    assert connection.execute("SELECT run_id, extra FROM runs").fetchall() == [(run, None)]
    connection.close()
    copy = kept_copy(home.database, SCHEMA_VERSION)
    assert copy.stat().st_mode & 0o777 == 0o600
    old = sqlite3.connect(copy)
    assert old.execute("SELECT run_id FROM runs").fetchall() == [(run,)]
    assert old.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    old.close()
    assert Home.open(home.root, create=True).exists


def test_a_migration_that_is_killed_half_way_leaves_the_old_version_and_the_next_start_finishes(
    tmp_path: Path,
) -> None:
    """S15."""
    home, run = filled(tmp_path / "home")
    done = subprocess.run([sys.executable, "-c", CUT_SHORT, str(home.database)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Reader.open(home) as reader:
        assert [row.run_id for row in reader.runs()] == [run]
    assert kept_copy(home.database, SCHEMA_VERSION).exists()
    connection = open_writer(home.database, 9, create=False)
    upgrade(connection, home.database, home.hosts, NEXT, NEXT_RELEASES)
    assert connection.execute("SELECT count(*) FROM later").fetchone() == (0,)
    upgrade(connection, home.database, home.hosts, NEXT, NEXT_RELEASES)
    connection.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    home, run = filled(tmp_path / "home")
    connection = open_writer(home.database, 9, create=False)
    with pytest.raises(HostlerError):
        upgrade(
            connection, home.database, home.hosts, (*MIGRATIONS, ("CREATE TABLE later (x)", "NONSENSE")), NEXT_RELEASES
        )
    assert stored_version(connection) == SCHEMA_VERSION
    connection.close()
    with Reader.open(home) as reader:
        assert [row.run_id for row in reader.runs()] == [run]


def test_a_file_that_an_older_program_still_works_with_is_not_migrated(setting: Setting) -> None:
    connection = open_writer(setting.home.database, 9, create=False)
    with pytest.raises(HostlerError) as caught:
        upgrade(connection, setting.home.database, setting.home.hosts, NEXT, NEXT_RELEASES)
    assert_refused(caught.value, Code.UNAVAILABLE, setting.identity.host_id)
    connection.close()


def test_an_older_file_is_not_looked_into_or_posted_to_before_it_is_up_to_date(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "home", create=True)
    schema_sample.restore(1, home)
    for action in (
        lambda: Reader.open(home),
        lambda: post(home, request_of(run_id(), RequestKind.CANCEL), clock=CLOCK),
    ):
        with pytest.raises(HostlerError) as caught:
            action()
        assert_refused(caught.value, Code.UNAVAILABLE, "version 1")


def test_many_programs_can_start_on_an_empty_folder_at_once(tmp_path: Path) -> None:
    program = LOOK.replace("opens()", "opens().close()")
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "home")], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert [one.communicate(timeout=60)[0] for one in started] == ["opened\nopened\n"] * 6


def test_the_file_can_have_any_name_that_a_path_can_have(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"odd %41 ?mode=ro#x \xff \n name")
    setting = Setting(odd)
    run = setting.created()
    with Reader.open(setting.home) as reader:
        assert reader.find("-") == run
    setting.close()
    assert {path.name for path in odd.iterdir() if path.is_file()} == {"runs.db", "writers.lock", "reserve"}
    assert run_id() != run


def test_a_file_whose_making_was_cut_short_holds_nothing_and_is_made_anew(tmp_path: Path) -> None:
    """The power fails while SQLite makes the first page; its journal takes that back, which who only looks cannot do."""
    home = Home.open(tmp_path / "home", create=True)
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("CREATE TABLE x (y)")
        connection.execute("DROP TABLE x")
    journal = home.root / "runs.db-journal"
    journal.write_bytes(struct.pack(">8s5I", bytes.fromhex("d9d505f920a163d7"), 0, 1, 0, 512, 4096).ljust(512, b"\0"))
    for file in (home.database, journal):
        file.chmod(0o600)
    with Reader.open(home) as reader:
        assert reader.runs() == []
    with pytest.raises(HostlerError) as caught:
        post(home, request_of(run_id(), RequestKind.CANCEL), clock=CLOCK)
    assert_refused(caught.value, Code.NOT_FOUND)
    setting = Setting(home.root)
    setting.claimed()
    assert not journal.exists()
    setting.close()
