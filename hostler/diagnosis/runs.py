"""The runs that are stored, what dead hosts left of them, and the background service."""

import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from hostler.config import Config
from hostler.diagnosis.findings import Finding, wrong
from hostler.service_installation import place_of, usual_manager
from hostler.service_record import ServiceRecord
from hostler.views.sizes import bytes_text
from hostres.errors import HostlerError
from hostres.leftovers import find_leftovers
from store.home import Home
from store.lifecycle import RUN_FINAL, RUN_RESTING
from store.reader import Reader
from store.retention.waste import candidates, size_of
from store.run_list import RunRow
from store.service import service_alive

MOST: Final = 5
"""So many are named; the rest is counted."""
SKEW_S: Final = 60.0
"""By so much the newest run may be ahead of the clock."""


def look_at_runs(config: Config) -> Iterator[Finding]:
    """Look at what is stored, and at what outlived its host.

    Args:
        config: Names the state folder.

    Raises:
        HostlerError: The store cannot be read.

    """
    home = Home.open(config.home, create=False)
    if not home.exists:
        return
    with Reader.open(home) as reader:
        rows = reader.runs()
        problem = reader.damage or reader.examine()
    if problem is not None:
        yield wrong("store", problem)
    unfinished = [row for row in rows if row.status not in RUN_FINAL and not row.imported]
    yield Finding(name="runs", said=f"{len(rows)} stored, {len(unfinished)} not finished")
    yield from _of_dead_hosts([row for row in unfinished if not row.alive])
    yield from _half_written(home)
    yield from ahead_of_clock(rows, datetime.now(tz=UTC))


def _of_dead_hosts(rows: Sequence[RunRow]) -> Iterator[Finding]:
    for row in rows:
        for leftover in find_leftovers(row.run_id):
            yield Finding(
                name="leftover",
                said=f"pid {leftover.pid} of node {leftover.node} of {row.run_id}: {' '.join(leftover.command)}",
                todo=f"`hostler resume {row.run_id}` ends it and goes on",
            )
    left = [row for row in rows if row.host is not None and row.status not in RUN_RESTING]
    for row in left[:MOST]:
        yield Finding(
            name="left",
            said=f"{row.run_id} ({row.workflow}) was left by a host that has died",
            todo=f"`hostler resume {row.run_id}` goes on with it, and so does `hostler serve`",
        )
    if left[MOST:]:
        yield Finding(
            name="left", said=f"{len(left) - MOST} more were", todo="`hostler serve` goes on with all of them"
        )


def _half_written(home: Home) -> Iterator[Finding]:
    try:
        paths = [one.path for one in candidates(home, now_unix_s=time.time()) if one.query is None]
        size = bytes_text(sum(map(size_of, paths)))
    except OSError:  # whoever looks at the state folder says what cannot be looked into
        return
    if paths:
        what = f"{len(paths)} files or folders that killed programs left half-written or half-removed ({size})"
        yield Finding(name="leftover", said=what, todo="`hostler gc` removes them")


def ahead_of_clock(rows: Sequence[RunRow], now: datetime) -> Iterator[Finding]:
    """Tell of runs that are later than now.

    Args:
        rows: Of the store.
        now: What the wall clock says.

    """
    stamps = [stamp for row in rows for stamp in (row.created_at, row.started_at, row.finished_at) if stamp]
    if not stamps:
        return
    newest = datetime.fromisoformat(max(stamps))
    ahead_s = (newest - now).total_seconds()
    if ahead_s > SKEW_S:
        yield Finding(
            name="clock",
            said=f"the newest run is of {max(stamps)}, which is {ahead_s:.0f} s ahead: the clock was set back",
            todo="set it right (`timedatectl set-ntp true`); durations do not go by it, dates and `gc` do",
        )


def look_at_service(config: Config) -> Iterator[Finding]:
    """Look at the background service.

    Args:
        config: Names the state folder.

    Raises:
        HostlerError: That cannot be used.

    """
    home = Home.open(config.home, create=False)
    record = ServiceRecord.read(home) if service_alive(home) else None
    if record is not None:
        yield Finding(name="service", said=f"runs, pid {record.pid}, since {record.since}")
        return
    manager = usual_manager()
    try:
        unit = place_of(manager, os.environ)
        installed = unit.exists()
    except (OSError, HostlerError):  # also of a user who has no home for one
        installed = False
    if installed:
        todo = f"`hostler service install --manager {manager}` says how to start it"
        yield Finding(name="service", said=f"does not run, though {unit} is there", todo=todo)
    else:
        yield Finding(name="service", said="none runs; none is needed")
