"""Which processes write to the run store or read from it in this moment: their locks on SQLite's shared index.

From `/proc/locks`, without opening the file: closing a second descriptor would drop the locks that this very process
has on it. https://www.sqlite.org/walformat.html names the bytes.
"""

# Read where something waits: plain strings.
# ruff: noqa: PTH123

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from hostres.procfs import command_of

_WRITE: Final = frozenset({120})
_READ: Final = frozenset(range(124, 128))
"""The marks of readers that look into the log; one at byte 123 looks into the file alone and keeps no log."""


def writers(database: Path) -> str:
    """Name the processes that write to *database* now, "" if none can be seen."""
    return ", ".join(_names(database, _WRITE))


def readers(database: Path) -> str:
    """Name the processes that now read a state of *database* whose log must be kept, "" if none can be seen."""
    return ", ".join(_names(database, _READ))


def _names(database: Path, wanted: Collection[int]) -> list[str]:
    try:
        index = os.stat(f"{database}-shm")  # noqa: PTH116
        with open("/proc/locks", encoding="ascii") as file:
            rows = file.read().splitlines()
    except OSError:
        return []
    return [_name(pid) for pid in sorted(set(_pids(rows, index, wanted)))]


def _pids(rows: list[str], index: os.stat_result, wanted: Collection[int]) -> Iterator[int]:
    inode = f"{os.major(index.st_dev):02x}:{os.minor(index.st_dev):02x}:{index.st_ino}"
    for row in rows:
        fields = row.split()
        if "->" in fields or len(fields) < 8 or fields[1] != "POSIX" or fields[5] != inode:
            continue
        first, last = int(fields[6]), fields[7]
        if any(first <= byte and (last == "EOF" or byte <= int(last)) for byte in wanted):
            yield int(fields[4])


def _name(pid: int) -> str:
    if pid == os.getpid():
        return "this program itself"
    if pid <= 0:
        return "a process of another container"
    command = command_of(pid)
    return f"pid {pid} ({command})" if command else f"pid {pid}"
