"""Runs that dead hosts left, and what killed programs left on the disk."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from hostler.config import Config
from hostler.diagnosis.runs import ahead_of_clock, look_at_runs
from store.home import Home
from store.lifecycle import RunStatus
from store.run_list import RunRow


def row(created_at: str) -> RunRow:
    return RunRow(
        run_id="run_x",
        workflow="w",
        status=RunStatus.PLANNED,
        created_at=created_at,
        started_at=None,
        finished_at=None,
        host=None,
        alive=False,
        imported=False,
    )


def test_runs_of_the_future_show_that_the_clock_was_set_back() -> None:
    """Field case 73: `gc` and people go by the dates."""
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert not list(ahead_of_clock([row("2026-05-01T12:00:30.000Z"), row("2025-01-01T00:00:00.000Z")], now))
    (found,) = ahead_of_clock([row("2026-05-01T14:00:00.000Z")], now)
    assert "7200 s ahead" in found.said
    assert found.todo


def test_what_killed_programs_left_half_written_is_counted_with_what_removes_it() -> None:
    """Not what somebody may still be writing."""
    home = Home.open(Path(os.environ["HOSTLER_HOME"]), create=True)
    for name, age_s in ((".new.old", 7200), (".new.fresh", 0), (".gone.x", 0)):
        (home.staging / name).mkdir(mode=0o700)
        then = time.time() - age_s
        os.utime(home.staging / name, (then, then))
    (found,) = (one for one in look_at_runs(Config.load()) if one.name == "leftover")
    assert found.said.startswith("2 files or folders")
    assert "hostler gc" in found.todo
