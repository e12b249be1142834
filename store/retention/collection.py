"""Tidying a state folder: old runs, what they alone needed, and what killed hosts left; then the room is given back."""

import contextlib
import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from store.clock import instant
from store.database import open_reader, opened_writer, writing
from store.faults import translated
from store.home import Home
from store.hosts import bury_dead, host_alive, known_hosts
from store.retention.removal import BITE_ROWS, Removal, pause
from store.retention.selection import Ended, ended, making_room, outdated
from store.retention.strays import Doubt, Sorted, Standing, lost_in, sort, standing
from store.retention.waste import Waste, candidates, put_out_of_sight, remove, size_of
from store.room import give_up_reserve, keep_reserve, shortage
from store.schema import SCHEMA_VERSION
from store.snapshots import snapshot
from store.upgrade import upgrade
from store.versions import stored_version

_VACUUM_PAGES: Final = 64
_INCREMENTAL: Final = 2
_SIZES: Final = (
    ("nodes", "length(record)"), ("node_plans", "length(content)"), ("outputs", "length(content)"),
    ("summaries", "length(content)"), ("events", "length(event)"), ("grants", "length(record)"),
    ("requests", "length(record)"),
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Collected:
    """What was taken away, or would be.

    Attributes:
        runs: Ids of the runs: those that go for their age, oldest last; then those that make room, oldest first.
        plans: Number of graph plans.
        bundles: Number of code bundles.
        leftovers: Number of files and folders that belonged to nothing.
        file_bytes: Bytes of the disk that files took.
        database_bytes: By how much the database shrank; in a trial, about how much of it goes.
        reserved_bytes: Bytes in the database that are free and could not be given back now; later runs use them.
        failed: What could not be removed, and why; the next time tries again.
        kept: How many files and folders stay although no row names them, by why.

    """

    runs: list[str] = field(default_factory=list)
    plans: int = 0
    bundles: int = 0
    leftovers: int = 0
    file_bytes: int = 0
    database_bytes: int = 0
    reserved_bytes: int = 0
    failed: list[str] = field(default_factory=list)
    kept: Counter[Doubt] = field(default_factory=Counter)


def preview(home: Home, *, before: str, keep: int, now_unix_s: float, most_bytes: int | None = None) -> Collected:
    """Say what `collect` would take away; nothing is touched. See there for the arguments."""
    found = Collected()
    suspects = list(candidates(home, now_unix_s=now_unix_s))  # before the snapshot: a row is there before its files
    with snapshot(home) as seen:
        if seen is None:
            return _without_store(home, now_unix_s)
        shown = standing(seen.connection)
        begun = seen.connection.execute("SELECT run, run_id FROM removals ORDER BY run").fetchall()
        runs = outdated(ended(seen.connection), before=before, keep=keep, alive=_living(home))
        room = _room(home, most_bytes, runs, keep, now_unix_s)
        runs += _making_room(seen.connection, home, room) if room is not None else []
        going = dict([*begun, *((run.run, run.run_id) for run in runs)])
        for run, run_id in going.items():
            found.runs.append(run_id)
            found.file_bytes += sum(map(size_of, _folders(home, run_id)))
            for table, length in _SIZES:
                row = seen.connection.execute(f"SELECT sum({length}) FROM {table} WHERE run = ?", (run,)).fetchone()  # noqa: S608 - names of our own
                found.database_bytes += row[0] or 0
        told = sort(suspects, seen.connection, shown, before=before, going=[*going])
        found.kept = told.kept
        if lost_in(shown, told.kept) is None:
            found.plans = _left_alone(seen.connection, "graph_plans", "plan_sha256", {*going})
            found.bundles = _left_alone(seen.connection, "bundles", "bundle_sha256", {*going})
        for waste in told.waste:
            found.leftovers += 1
            found.file_bytes += size_of(waste.path)
    return found


def _without_store(home: Home, now_unix_s: float) -> Collected:
    """Say what stays where no store can tell whose it is: all of it."""
    found = Collected()
    unknown = sum(waste.query is not None for waste in candidates(home, now_unix_s=now_unix_s))
    if unknown:
        found.kept[Doubt.NO_RUNS] = unknown
    return found


def _is_a_store(home: Home) -> bool:
    connection = open_reader(home.database, SCHEMA_VERSION) if home.exists else None
    if connection is None:
        return False
    with contextlib.closing(connection), translated(home.database):
        return stored_version(connection) > 0


def _left_alone(connection: sqlite3.Connection, table: str, column: str, going: set[int]) -> int:
    names = {row[0] for row in connection.execute(f"SELECT sha256 FROM {table}")}  # noqa: S608 - names of our own
    rows = connection.execute(f"SELECT run, {column} FROM runs")  # noqa: S608 - likewise
    return len(names - {name for run, name in rows if run not in going})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Room:
    """How much room is to be made, and which runs may go for it."""

    excess: int
    going: frozenset[int]
    keep: int
    now: str


def _room(home: Home, most_bytes: int | None, runs: Iterable[Ended], keep: int, now_unix_s: float) -> _Room | None:
    """Return how much more than *most_bytes* workspaces and logs take once some runs are gone; None without a limit."""
    if most_bytes is None:
        return None
    runs = list(runs)
    freed = sum(size_of(path) for run in runs for path in _folders(home, run.run_id))
    return _Room(
        excess=size_of(home.staging) + size_of(home.logs) - freed - most_bytes,
        going=frozenset(run.run for run in runs),
        keep=keep,
        now=instant(max(0, int(now_unix_s * 1000))),
    )


def _making_room(connection: sqlite3.Connection, home: Home, room: _Room) -> list[Ended]:
    may = outdated(ended(connection), before=room.now, keep=room.keep, alive=_living(home))
    return making_room(
        may,
        excess=room.excess,
        size=lambda run: sum(map(size_of, _folders(home, run.run_id))),
        going=room.going,
    )


def collect(home: Home, *, before: str, keep: int, now_unix_s: float, most_bytes: int | None = None) -> Collected:
    """Take away what is no longer wanted, beside programs that work on the same store.

    Args:
        home: The state folder.
        before: Runs go that ended before this instant; workspaces and logs of unknown runs, that last changed before.
        keep: How many of the newest runs that have ended stay, however old they are.
        now_unix_s: For the age of files that are half-written, and of runs that go to make room.
        most_bytes: What workspaces and logs may take together; above that the oldest runs that may go do so, however
            young. None sets no limit.

    Raises:
        HostlerError: unavailable; unsafe-state; newer-schema. What was done until then stays done.

    """
    full = home.exists and shortage(home) is not None
    if full:  # to remove rows takes room too, before it gives any back
        give_up_reserve(home)
    if not _is_a_store(home):
        return _without_store(home, now_unix_s)
    done = Collected()
    with (
        opened_writer(home.database, SCHEMA_VERSION, create=False) as connection,
        translated(home.database),
    ):
        upgrade(connection, home.database, home.hosts)
        if full:
            connection.execute("PRAGMA wal_autocheckpoint = 1")  # lest the log grow
        removal = Removal(connection, home.database)
        pages, shown = _pages(connection), standing(connection)
        begun = removal.begun()
        done.runs += [run_id for _, run_id in begun]
        _remove_runs(home, removal, begun, done)
        runs = outdated(ended(connection), before=before, keep=keep, alive=_living(home))
        _hide(home, removal, runs, before, done)
        room = _room(home, most_bytes, (), keep, now_unix_s)
        if room is not None:
            _hide(home, removal, _making_room(connection, home, room), room.now, done)
        if lost_in(shown, _suspects(home, connection, shown, before, now_unix_s).kept) is None:
            gone = removal.unreferenced()
            done.plans, done.bundles = gone["graph_plans"], gone["bundles"]
        told = _suspects(home, connection, shown, before, now_unix_s)
        done.kept = told.kept
        _remove_waste(home, connection, told.waste, done)
        removal.forget_hosts(_living(home))
        bury_dead(home)
        _give_back(home, connection, done)
        done.database_bytes = max(0, pages - _pages(connection))
    keep_reserve(home)
    return done


def _hide(home: Home, removal: Removal, runs: Sequence[Ended], before: str, done: Collected) -> None:
    for hidden in removal.hide(runs, before=before, alive=_living(home)):
        done.runs += [run.run_id for run in hidden]
        _remove_runs(home, removal, [(run.run, run.run_id) for run in hidden], done)


def _living(home: Home) -> Callable[[str], bool]:
    return lambda host_id: host_alive(home, host_id)


def _folders(home: Home, run_id: str) -> list[Path]:
    logs = home.logs_of_run(run_id)
    return [home.staging / run_id, logs, logs.with_name(f"{run_id}.log")]


def _remove_runs(home: Home, removal: Removal, runs: list[tuple[int, str]], done: Collected) -> None:
    """Remove the files, then the rows; a run whose files resist keeps its note."""
    whole = []
    for run, run_id in runs:
        failures = len(done.failed)
        for path in _folders(home, run_id):
            _try_to_remove(path, done)
        if len(done.failed) == failures:
            whole.append(run)
    removal.rows(whole)


def _try_to_remove(path: Path, done: Collected) -> None:
    try:
        done.file_bytes += remove(path)
    except OSError as error:
        done.failed.append(f"{path}: {error.strerror}")


def _suspects(home: Home, connection: sqlite3.Connection, shown: Standing, before: str, now_unix_s: float) -> Sorted:
    return sort(list(candidates(home, now_unix_s=now_unix_s)), connection, shown, before=before)


def _remove_waste(home: Home, connection: sqlite3.Connection, waste: Iterable[Waste], done: Collected) -> None:
    found = iter(waste)
    while bite := list(itertools.islice(found, BITE_ROWS)):
        with writing(connection, home.database):
            out = put_out_of_sight(bite, connection)
        done.leftovers += len(out)
        for path in out:
            _try_to_remove(path, done)


def _give_back(home: Home, connection: sqlite3.Connection, done: Collected) -> None:
    """Let the file shrink by its free pages, some at a time; a file of an old make is written anew, if it is idle."""
    if _pragma(connection, "auto_vacuum") != _INCREMENTAL and not any(map(_living(home), known_hosts(home))):
        with contextlib.suppress(sqlite3.OperationalError):  # somebody has begun to use it, or the disk is full
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    free = _pragma(connection, "freelist_count")
    while free and _pragma(connection, "auto_vacuum") == _INCREMENTAL:
        with writing(connection, home.database):
            for _ in range(min(free, _VACUUM_PAGES)):  # one a call: Python does not step through more
                connection.execute("PRAGMA incremental_vacuum(1)")
        before, free = free, _pragma(connection, "freelist_count")
        if free >= before:
            break  # others free more than is given back
        pause()
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # only then the file itself is shorter
    done.reserved_bytes = free * _pragma(connection, "page_size")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _pages(connection: sqlite3.Connection) -> int:
    return _pragma(connection, "page_count") * _pragma(connection, "page_size")
