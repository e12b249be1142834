"""What a commit costs: counted and timed on the disk of the state folder, of which nothing stays."""

import itertools
import sqlite3
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store.commit_floor import COMMITS, measure
from store.home import Home
from store.sync_count import counted_flushes


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Give a state folder that is there."""
    return Home.open(tmp_path / "home", create=True)


def test_a_commit_of_the_run_store_waits_for_one_flush(home: Home) -> None:
    """In the journal mode and with the settings that the store itself uses."""
    floor = measure(home)
    assert floor.journal_mode == "wal"
    assert floor.flushes in (1.0, None)
    assert 0 < floor.commit_s <= floor.usual_commit_s
    assert floor.flush_s > 0 < floor.write_s
    assert floor.commits == COMMITS
    assert abs(floor.clock_ahead_s) < 60


def test_nothing_of_it_stays(home: Home) -> None:
    """Neither a file nor a connection."""
    before = sorted(home.root.rglob("*"))
    measure(home)
    assert sorted(home.root.rglob("*")) == before


def test_a_slow_disk_is_tried_less_often(home: Home) -> None:
    """Nobody waits for half a minute to hear that."""
    ticks = itertools.count()
    assert measure(home, clock=lambda: float(next(ticks))).commits == 3


def test_a_folder_that_cannot_be_written_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason, as a disk that is read-only."""

    def refuse(**_: object) -> str:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("store.commit_floor.tempfile.mkdtemp", refuse)
    with pytest.raises(HostlerError) as caught:
        measure(home)
    assert caught.value.code is Code.UNAVAILABLE
    assert str(home.root) in caught.value.what


@pytest.mark.parametrize(
    ("mode", "synchronous", "flushes"), [("wal", "FULL", 1), ("wal", "OFF", 0), ("delete", "FULL", 3)]
)
def test_flushes_are_counted_not_looked_up(tmp_path: Path, mode: str, synchronous: str, flushes: int) -> None:
    """A rollback journal needs more, and who asks for none gets none."""
    with counted_flushes() as count:
        if count is None:
            pytest.skip("SQLite is a part of this Python")
        connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE x (y)")
        before = count.flushes
        connection.execute("INSERT INTO x VALUES (1)")
        assert count.flushes - before == flushes
        connection.close()
    with sqlite3.connect(tmp_path / "x.db") as after:
        assert after.execute("SELECT y FROM x").fetchall() == [(1,)]
    after.close()
