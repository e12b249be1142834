"""Whoever writes stops before its next write when its files are not those under their names, and spoils nothing then."""

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store.contracts import RequestKind
from store.glance import glimpsed_runs
from store.home import Home
from store.open_files import as_if_in_use
from store.proving import check_file
from store.reader import Reader
from store.requests import post
from store.run_store import RunStore
from tests.store.support import CLOCK, NOTE, Setting, assert_refused, request_of, run_id

FILES = ("runs.db", "runs.db-wal", "runs.db-shm")


def refused(action: Callable[[], object]) -> HostlerError:
    with pytest.raises(HostlerError) as caught:
        action()
    return caught.value


def replaced(path: Path) -> None:
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    copy.replace(path)


def everybody(home: Home) -> tuple[Callable[[], object], ...]:
    return (
        lambda: Reader.open(home),
        lambda: check_file(home),
        lambda: RunStore.open(home, clock=CLOCK),
        lambda: post(home, request_of(run_id(), RequestKind.CANCEL), clock=CLOCK),
    )


def another_program(home: Home, work: str) -> None:
    """Do *work* with a `Setting` of that home in a process that shares nothing with this one."""
    code = f"""
from pathlib import Path
from tests.store.support import Setting
setting = Setting(Path({str(home.root)!r}))
{work}
setting.close()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=Path(__file__).parents[2])


def runs_of(home: Home) -> set[str]:
    with Reader.open(home) as reader:
        return {row.run_id for row in reader.runs()}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("lose", [Path.unlink, replaced], ids=["removed", "replaced"])
def test_nothing_more_is_written_once_a_file_is_not_the_one_under_its_name(
    setting: Setting, name: str, lose: Callable[[Path], None]
) -> None:
    """Also the index of the log: in a new one nobody sees who else writes into the same log."""
    run = setting.created()
    assert setting.store.still_there()
    lose(setting.home.root / name)
    assert not setting.store.still_there()
    assert_refused(refused(setting.created), Code.OWNERSHIP_LOST, "runs.db or its log")
    assert_refused(refused(lambda: setting.store.claim(run, setting.identity)), Code.OWNERSHIP_LOST)


def test_an_emptied_file_is_another_one(setting: Setting) -> None:
    os.truncate(setting.home.database, 0)
    assert not setting.store.still_there()


def test_the_files_stay_the_same_however_often_others_come_and_go_and_the_log_starts_over(setting: Setting) -> None:
    claimed = setting.claimed()
    for mode in ("RESTART", "TRUNCATE"):
        setting.accept(claimed, events=(NOTE,) * 50)
        another_program(setting.home, "pass")
        setting.store._connection.execute(f"PRAGMA wal_checkpoint({mode})")
        assert setting.store.still_there()
    setting.accept(claimed, events=(NOTE,))


@pytest.mark.parametrize("lose", [lambda path: os.truncate(path, 0), Path.unlink], ids=["emptied", "gone"])
def test_a_log_whose_file_was_emptied_or_removed_survives_the_last_program_and_is_named(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    """SQLite would move it into what is there, and throw it away; also the one that has seen the file before knows."""
    setting = Setting(tmp_path / "home")
    setting.accept(setting.claimed(), events=(NOTE,) * 9)
    log = setting.home.root / "runs.db-wal"
    before = log.read_bytes()
    lose(setting.home.database)
    setting.close()
    assert log.read_bytes() == before
    for opens in everybody(setting.home):
        assert_refused(refused(opens), Code.UNSAFE_STATE, "its log")
    assert log.read_bytes() == before


def test_an_old_log_is_not_written_over_what_others_have_written_since(tmp_path: Path) -> None:
    """They came after the log was removed, did their work, and went, before its writer closes."""
    setting = Setting(tmp_path / "home")
    setting.created()
    for name in FILES[1:]:
        (setting.home.root / name).unlink()
    another_program(setting.home, "setting.created()")
    before = setting.home.database.read_bytes()
    setting.close()
    assert setting.home.database.read_bytes() == before
    with closing(sqlite3.connect(setting.home.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("names", [FILES[1:2], FILES[1:]], ids=["log", "log and index"])
def test_what_was_acknowledged_is_saved_when_the_log_was_removed_and_nobody_else_has_come(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    setting = Setting(tmp_path / "home")
    run = setting.created()
    assert setting.store.still_there()
    for name in names:
        (setting.home.root / name).unlink()
    setting.close()
    assert runs_of(setting.home) == {run}


def test_as_if_in_use_keeps_the_log_and_drops_no_lock_of_the_process(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "home")
    run = setting.created()
    reader = Reader.open(setting.home)
    with as_if_in_use(setting.home.database):
        setting.close()
    log = (setting.home.root / "runs.db-wal").read_bytes()
    assert log.strip(b"\0")
    another_program(setting.home, "pass")  # whose last word is not the last one: this process still reads
    assert (setting.home.root / "runs.db-wal").exists()
    assert {row.run_id for row in reader.runs()} == {run}
    reader.close()
    Setting(setting.home.root).close()
    assert not (setting.home.root / "runs.db-wal").exists()


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            listening.bind(path.name)
        finally:
            os.chdir(before)
    path.chmod(0o600)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("kind", "make"),
    [("a FIFO", lambda path: os.mkfifo(path, 0o600)), ("a folder", Path.mkdir), ("a socket", bound_socket)],
    ids=["fifo", "folder", "socket"],
)
def test_what_is_no_file_is_refused_by_everybody_at_once(
    tmp_path: Path, name: str, kind: str, make: Callable[[Path], None]
) -> None:
    """Who opened it would wait for whoever writes into it, or write into a device."""
    home = Home.open(tmp_path / "home", create=True)
    if name != "runs.db":
        Setting(home.root).close()
    make(home.root / name)
    for opens in everybody(home):
        assert_refused(refused(opens), Code.UNSAFE_STATE, str(home.root / name), kind)
    with suppress(sqlite3.Error):  # completion offers nothing then
        assert glimpsed_runs(home.database, "", limit=9) == []
