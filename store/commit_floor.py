"""What one durable commit really costs on the disk of a state folder: measured, with the settings of the run store."""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hostres.errors import unavailable
from hostres.locks import NEW
from store.database import begin_write, close_writer, grow_wal, open_writer
from store.home import Home
from store.schema import SCHEMA_VERSION
from store.sync_count import counted_flushes

COMMITS: Final = 30
MOST_S: Final = 1.0
"""A slow disk is tried less often."""
_BODY: Final = bytes(512)
_PAGE: Final = bytes(4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFloor:
    """What was measured.

    Attributes:
        journal_mode: SQLite's own word for it, `wal` as asked for.
        flushes: How many flushes one commit waits for; None where SQLite cannot be asked.
        commit_s: The fastest commit of one small row, seconds.
        usual_commit_s: The median.
        flush_s: The median of writing a page and flushing it, without SQLite.
        write_s: The median of writing it alone.
        commits: How many were made.
        clock_ahead_s: By how much the clock of the file system is ahead of this program's.

    """

    journal_mode: str
    flushes: float | None
    commit_s: float
    usual_commit_s: float
    flush_s: float
    write_s: float
    commits: int
    clock_ahead_s: float


def measure(home: Home, *, clock: Callable[[], float] = time.perf_counter) -> CommitFloor:
    """Measure on the disk of a state folder that is there; what is made for it is removed again.

    Should this program be killed meanwhile, what it made goes with the next `hostler gc`.

    Args:
        home: The state folder.
        clock: Seconds, steady.

    Raises:
        HostlerError: unavailable: it cannot be written; or what opening a run store says.

    """
    try:
        with _place(home) as place:
            flush_s, write_s, ahead_s = _flushes(place / "page", clock)
            return _commits(place / "runs.db", clock, flush_s, write_s, ahead_s)
    except OSError as error:
        raise unavailable(f"{home.root} cannot be written", error) from error


@contextmanager
def _place(home: Home) -> Iterator[Path]:
    folder = home.staging if home.staging.is_dir() else home.root
    place = Path(tempfile.mkdtemp(prefix=f"{NEW}measured.", dir=folder))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _flushes(path: Path, clock: Callable[[], float]) -> tuple[float, float, float]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        ahead_s = os.fstat(descriptor).st_mtime - time.time()
        os.pwrite(descriptor, _PAGE * COMMITS, 0)
        os.fsync(descriptor)
        written = _times(lambda number: os.pwrite(descriptor, _PAGE, number * len(_PAGE)), clock)

        def flush(number: int) -> None:
            os.pwrite(descriptor, _PAGE, number * len(_PAGE))
            os.fdatasync(descriptor)

        os.fsync(descriptor)
        flushed = _times(flush, clock)
    finally:
        os.close(descriptor)
    return statistics.median(flushed), statistics.median(written), ahead_s


def _commits(path: Path, clock: Callable[[], float], flush_s: float, write_s: float, ahead_s: float) -> CommitFloor:
    with counted_flushes() as count:
        connection = open_writer(path, SCHEMA_VERSION, create=True)
        try:
            connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, body BLOB)")
            grow_wal(connection, path)
            before = count.flushes if count is not None else 0

            def commit(_: int) -> None:
                begin_write(connection)
                connection.execute("INSERT INTO rows (body) VALUES (?)", (_BODY,))
                connection.execute("COMMIT")

            taken = _times(commit, clock)
            flushes = None if count is None else (count.flushes - before) / len(taken)
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        finally:
            close_writer(connection, path)
    return CommitFloor(
        journal_mode=mode,
        flushes=flushes,
        commit_s=min(taken),
        usual_commit_s=statistics.median(taken),
        flush_s=flush_s,
        write_s=write_s,
        commits=len(taken),
        clock_ahead_s=ahead_s,
    )


def _times(act: Callable[[int], object], clock: Callable[[], float]) -> list[float]:
    """Return how long each of several calls took; fewer of them where they are slow."""
    taken: list[float] = []
    while len(taken) < COMMITS and (len(taken) < 3 or sum(taken) < MOST_S):
        before = clock()
        act(len(taken))
        taken.append(clock() - before)
    return taken
