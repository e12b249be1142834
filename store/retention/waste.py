"""Files in the state folder that belong to nothing: found by looking, taken away under the write lock.

Every program makes a run durable before the folders of the run, and looks inside its own write transaction whether
the large values that it names are there. So what no row names inside a write transaction of ours is nobody's, unless
the store has lost a row: see `strays`.
"""

import contextlib
import os
import re
import secrets
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from hostres.locks import NEW, is_held
from store.archive.importing import INCOMING
from store.home import Home
from store.lazy_dataclass import dataclass
from store.patterns import RUN_ID_PATTERN, SHA256_PATTERN

GONE: Final = ".gone."
"""Prefix of what is out of sight and only still to be removed."""

_OLD_S: Final = 3600.0
"""A half-written file is left alone for so long; one whose writer was merely stopped is missed by nobody but that."""

_RUN: Final = re.compile(rf"({RUN_ID_PATTERN.strip('^$')})(\.log)?")
_SHA256: Final = re.compile(SHA256_PATTERN.strip("^$"))
_IN_FILES: Final = (
    "SELECT 1 FROM bundles WHERE sha256 = ?1 UNION ALL SELECT 1 FROM graph_plans WHERE sha256 = ?1"
    " UNION ALL SELECT 1 FROM node_plans WHERE sha256 = ?1"
    " UNION ALL SELECT 1 FROM outputs WHERE sha256 = ?1 AND content IS NULL"
    " UNION ALL SELECT 1 FROM summaries WHERE sha256 = ?1 AND content IS NULL LIMIT 1"
)
_STAYS: Final = "run NOT IN (SELECT value FROM json_each(?2))"
_BUNDLE_STAYS: Final = f"SELECT 1 FROM runs WHERE bundle_sha256 = ?1 AND {_STAYS}"  # noqa: S608 - names of our own
_CONTENT_STAYS: Final = (
    f"{_BUNDLE_STAYS} UNION ALL SELECT 1 FROM runs WHERE plan_sha256 = ?1 AND {_STAYS}"  # noqa: S608 - likewise
    f" UNION ALL SELECT 1 FROM node_plans WHERE sha256 = ?1 AND {_STAYS}"
    f" UNION ALL SELECT 1 FROM outputs WHERE sha256 = ?1 AND content IS NULL AND {_STAYS}"
    f" UNION ALL SELECT 1 FROM summaries WHERE sha256 = ?1 AND content IS NULL AND {_STAYS} LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Waste:
    """Something that is nobody's.

    Attributes:
        query: Asks with *name* whether somebody wants it after all; None if nobody can.
        without: Asks whether somebody wants it once some runs are gone; None where those take it with them.
        of_run: Whether it is the workspace or the logs of a run; see `strays`.

    """

    path: Path
    query: str | None
    name: str
    without: str | None = None
    of_run: bool = False

    def wanted(self, connection: sqlite3.Connection, *, going: Sequence[int] = ()) -> bool:
        """Say whether a row names it, but for the rows of the runs *going*, and of what only those need."""
        if going and self.without is not None:
            rows = connection.execute(self.without, (self.name, str([*going])))
            return rows.fetchone() is not None
        return self.query is not None and connection.execute(self.query, (self.name,)).fetchone() is not None


def candidates(home: Home, *, now_unix_s: float) -> Iterator[Waste]:
    """Yield what may be nobody's: whoever wants it has a row that was there before it.

    Args:
        home: The state folder.
        now_unix_s: For the age of files that are half-written.

    """
    of_run = "SELECT 1 FROM runs WHERE run_id = ?1 UNION ALL SELECT 1 FROM removals WHERE run_id = ?1"
    for folder, pattern, query, without in (
        (home.staging, _RUN, of_run, None),
        (home.logs, _RUN, of_run, None),
        (home.content, _SHA256, _IN_FILES, _CONTENT_STAYS),
        (home.bundles, _SHA256, "SELECT 1 FROM bundles WHERE sha256 = ?1", _BUNDLE_STAYS),
    ):
        for path in _entries(folder):
            name = path.name
            if name.startswith(GONE) or (name.startswith((NEW, INCOMING)) and _is_old(path, now_unix_s)):
                yield Waste(path, None, name)
            elif match := pattern.fullmatch(name):
                yield Waste(path, query, match[1] if match.groups() else name, without, of_run=pattern is _RUN)
    for path in _entries(home.hosts):
        if path.name.startswith(NEW) and _is_old(path, now_unix_s) and not is_held(path):
            yield Waste(path, None, path.name)


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(folder.iterdir())
    return []


def _is_old(path: Path, now_unix_s: float) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return path.lstat().st_mtime < now_unix_s - _OLD_S
    return False


def put_out_of_sight(waste: Iterable[Waste], connection: sqlite3.Connection) -> list[Path]:
    """Give what is still nobody's a name that nobody looks for, inside a write transaction.

    Returns:
        Where it is now.

    """
    out = []
    for one in waste:
        if one.wanted(connection):
            continue
        place = one.path if one.query is None else one.path.with_name(f"{GONE}{secrets.token_hex(8)}")
        with contextlib.suppress(FileNotFoundError):
            if place != one.path:
                one.path.rename(place)
            out.append(place)
    return out


def size_of(path: Path) -> int:
    """Return how many bytes of the disk a file or a folder takes."""
    total = 0
    with contextlib.suppress(OSError):
        status = path.lstat()
        total = status.st_blocks * 512 if status.st_nlink == 1 or stat.S_ISDIR(status.st_mode) else 0
        if stat.S_ISDIR(status.st_mode):
            total += sum(size_of(inner) for inner in path.iterdir())
    return total


def remove(path: Path) -> int:
    """Remove a file or a folder, links in it not followed; that it is gone already is well.

    Returns:
        How many bytes of the disk it took.

    Raises:
        OSError: It cannot be removed.

    """
    size = size_of(path)
    try:
        if stat.S_ISDIR(path.lstat().st_mode):
            _remove_folder(path)
        else:
            path.unlink()
    except FileNotFoundError:
        pass
    return size


def _remove_folder(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except PermissionError:  # a node's program took our own access away
        for folder, names, _ in os.walk(path):
            for name in (".", *names):
                with contextlib.suppress(OSError):
                    os.chmod(os.path.join(folder, name), 0o700, follow_symlinks=False)  # noqa: PTH101, PTH118
        shutil.rmtree(path)
