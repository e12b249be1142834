"""The state folder and its disk: all that is unsafe, what passes away, and what the figures mean."""

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from hostler.config import Config
from hostler.diagnosis.disk import look_at_disk, told_floor
from hostler.diagnosis.findings import Finding
from store.commit_floor import CommitFloor
from store.home import Home

FLOOR = CommitFloor(
    journal_mode="wal",
    flushes=1.0,
    commit_s=0.001,
    usual_commit_s=0.002,
    flush_s=0.0008,
    write_s=0.000002,
    commits=30,
    clock_ahead_s=0.1,
)


@pytest.fixture
def home() -> Home:
    """Give a state folder that is there."""
    return Home.open(Path(os.environ["HOSTLER_HOME"]), create=True)


def looked() -> dict[str, Finding]:
    return {found.name: found for found in look_at_disk(Config.load(), os.environ)}


def test_a_folder_that_is_not_there_is_not_made() -> None:
    """And so nothing is measured in it."""
    assert list(looked()) == ["home"]
    assert not Path(os.environ["HOSTLER_HOME"]).exists()


def test_it_says_how_full_the_disk_is_and_what_takes_the_room(home: Home) -> None:
    """Field case 27: workspaces of attempts are known and counted."""
    (home.staging / "film").write_bytes(bytes(3_000_000))
    space = looked()["space"]
    assert "workspaces 3.0 MB" in space.said
    assert space.facts is not None
    assert space.facts["used_bytes"]["workspaces"] >= 3_000_000
    assert space.facts["free_bytes"] > 0


def test_little_room_is_noted_with_what_makes_some(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a transcode fills the disk."""
    monkeypatch.setattr("hostler.diagnosis.disk.LEAST_FREE", 1 << 60)
    assert "hostler gc" in looked()["space"].todo


def test_a_total_limit_that_is_passed_is_noted(home: Home) -> None:
    """Field case 27: with what brings it below."""
    (home.staging / "film").write_bytes(bytes(3_000_000))
    config = Path(os.environ["HOSTLER_CONFIG"])
    config.write_text("[retention]\nmost_gigabytes = 0.001\n")
    assert looked()["space"].todo.startswith("`hostler gc` ")
    config.write_text("[retention]\nmost_gigabytes = 0.01\n")
    assert not looked()["space"].todo


def test_everything_unsafe_is_named_at_once_with_its_mend(home: Home) -> None:
    """Not one after the other, each after the last is mended."""
    (home.logs).chmod(0o755)
    (home.staging / "link").symlink_to("/etc")
    (home.root / "odd").write_text("")
    (home.root / "odd").chmod(0o644)
    found = list(look_at_disk(Config.load(), os.environ))
    assert [one.exit_code for one in found] == [73, 73, 73]
    assert {one.todo for one in found} >= {f"chmod 700 {home.logs}", "remove it"}


@pytest.mark.parametrize("kind", ["tmpfs", "overlay"])
def test_a_place_that_passes_away_is_noted(home: Home, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A state folder in memory or in a container's layer is seldom meant."""
    monkeypatch.setattr("hostler.diagnosis.disk.file_system_type", lambda _: kind)
    assert "HOSTLER_HOME" in looked()["home"].todo


def test_a_network_file_system_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case 51."""
    monkeypatch.setattr("hostler.diagnosis.disk.file_system_type", lambda _: "nfs4")
    assert looked()["home"].exit_code == 73


def test_what_was_measured_is_told_with_its_numbers(home: Home) -> None:
    """For people and for programs."""
    found = looked()
    assert found["journal"].said.startswith("wal, synchronous full: a commit waits for ")
    assert found["commit floor"].facts is not None
    assert found["commit floor"].facts["commit_ms"] > 0
    journal, floor = told_floor(FLOOR)
    assert journal.said.endswith("1 flush")
    assert floor.said.startswith("1.00 ms, usually 2.00 ms (30 commits)")
    assert not journal.todo + floor.todo


@pytest.mark.parametrize(
    ("changes", "name", "says"),
    [
        ({"flush_s": 1e-6}, "commit floor", "power cut"),
        ({"usual_commit_s": 0.2}, "commit floor", "faster disk"),
        ({"journal_mode": "delete"}, "journal", "ext4"),
        ({"clock_ahead_s": -7200.0}, "clock", "synchronise"),
    ],
)
def test_what_is_odd_is_noted_with_what_helps(changes: dict[str, object], name: str, says: str) -> None:
    """A disk that only pretends, a slow one, one without shared memory, one with a clock of its own."""
    noted = [found for found in told_floor(replace(FLOOR, **changes)) if found.todo]  # type: ignore[arg-type]
    assert [found.name for found in noted] == [name]
    assert says in noted[0].todo


def test_a_store_in_another_journal_mode_is_noted(home: Home) -> None:
    """Some other program has opened it."""
    from hostler.__main__ import main  # noqa: PLC0415
    from tests.end_to_end.support import command, graph  # noqa: PLC0415

    assert main(["submit", graph(home.root.parent, command("say", "true"))]) == 0
    with sqlite3.connect(home.database) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    noted = [one for one in look_at_disk(Config.load(), os.environ) if one.name == "journal" and one.todo]
    assert "journal mode delete" in noted[0].said
