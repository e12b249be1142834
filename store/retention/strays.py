"""Workspaces and logs of runs that the store does not know: whether they are left over, or the store has lost the run.

A run is durable before its folders are made, so hardly anything but a loss makes such a folder. It is therefore taken
for a leftover only where the store shows that it is the one in which the run was, and is whole.
"""

import contextlib
import os
import sqlite3
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from store.clock import unix_ms
from store.orphans import orphans
from store.retention.waste import Waste


class Doubt(StrEnum):
    """Why something that no row names stays; stable, scripts may rely on them."""

    YOUNG = "young"
    NO_RUNS = "no-runs"
    OLDER_THAN_STORE = "older-than-store"
    ROWS_LOST = "rows-lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a store shows of itself.

    Attributes:
        since_s: When the oldest run in it was made here, Unix seconds; None if there is none.
        empty: Whether there is no run in it.
        unused: Whether there never was one.
        torn: Whether it has rows of runs that are not there.

    """

    since_s: float | None
    empty: bool
    unused: bool
    torn: bool


@dataclass(slots=True, kw_only=True)
class Sorted:
    """Suspects, told apart.

    Attributes:
        waste: What may go.
        kept: How many stay, by why.

    """

    waste: list[Waste] = field(default_factory=list)
    kept: Counter[Doubt] = field(default_factory=Counter)


def standing(connection: sqlite3.Connection) -> Standing:
    """Return what the store shows; asked before anything is removed from it."""
    # an imported run was made elsewhere, before this store perhaps
    since = connection.execute("SELECT min(created_at) FROM runs WHERE imported_sha256 IS NULL").fetchone()[0]
    return Standing(
        since_s=None if since is None else unix_ms(since) / 1000,
        empty=connection.execute("SELECT 1 FROM runs LIMIT 1").fetchone() is None,
        unused=connection.execute("SELECT 1 FROM sqlite_sequence WHERE name = 'runs'").fetchone() is None,
        torn=bool(orphans(connection)),
    )


def doubt(shown: Standing, *, newest_s: float, before: str) -> Doubt | None:
    """Say why a folder of an unknown run stays, None if it may go.

    Args:
        shown: What the store shows of itself.
        newest_s: When something in the folder last changed, Unix seconds.
        before: The instant before which that must be.

    """
    if shown.torn:
        return Doubt.ROWS_LOST
    if shown.empty:
        return Doubt.NO_RUNS
    if shown.since_s is None or newest_s < shown.since_s:
        return Doubt.OLDER_THAN_STORE
    return Doubt.YOUNG if newest_s * 1000 >= unix_ms(before) else None


def sort(
    suspects: Iterable[Waste],
    connection: sqlite3.Connection,
    shown: Standing,
    *,
    before: str,
    going: Sequence[int] = (),
) -> Sorted:
    """Tell what may go from what stays; what a row names is neither.

    Where the store is not known to be the one in which a run was, large values and code stay, too: they may be that
    run's.

    Args:
        suspects: From `waste.candidates`.
        connection: To the store.
        shown: What it shows of itself.
        before: See `doubt`.
        going: Numbers of runs to take for gone.

    """
    done = Sorted()
    unwanted = [waste for waste in suspects if not waste.wanted(connection, going=going)]
    for waste in unwanted:
        if not waste.of_run:
            continue
        newest_s = newest(waste.path)
        if newest_s is None:
            continue  # somebody else took it
        why = doubt(shown, newest_s=newest_s, before=before)
        if why is None:
            done.waste.append(waste)
        else:
            done.kept[why] += 1
    lost = lost_in(shown, done.kept)
    for waste in unwanted:
        if waste.query is None or (lost is None and not waste.of_run):
            done.waste.append(waste)
        elif lost is not None and not waste.of_run:
            done.kept[lost] += 1
    return done


def lost_in(shown: Standing, kept: Counter[Doubt]) -> Doubt | None:
    """Say why the store may have lost a run whose plan, code and values are still there, None if it has not."""
    if shown.torn:
        return Doubt.ROWS_LOST
    if shown.unused:
        return Doubt.NO_RUNS
    return next((why for why in (Doubt.NO_RUNS, Doubt.OLDER_THAN_STORE) if kept[why]), None)


def newest(path: Path) -> float | None:
    """Return when a file, or anything in a folder, last changed, Unix seconds; None if it is gone."""
    found: float | None = None
    with contextlib.suppress(OSError):
        status = path.lstat()
        found = status.st_mtime
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(path) as entries:
                inner = [newest(Path(entry.path)) for entry in entries]
            found = max([found, *(one for one in inner if one is not None)])
    return found
