"""Where a waiting process stands, read without the gate and without a look at other processes."""

# Plain strings, as for the tickets.
# ruff: noqa: PTH115, PTH208

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from hostres.listing import DOZING, HEIR, WAITING
from hostres.survey import survey


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How the wait of a ticket stands.

    Attributes:
        resource: What it is short of, "" if of nothing any more.
        free: Units of it that are left for it.
        capacity: Units of it that there are.
        before: How many wait before it.
        lacks_memory: It is really available memory that it is short of, not what claims leave.

    """

    resource: str
    free: int
    capacity: int
    before: int
    lacks_memory: bool = False

    def __str__(self) -> str:
        left = f"{self.free} really available" if self.lacks_memory else f"{self.free} of {self.capacity} free"
        short = f" for {self.resource} ({left})" if self.resource else ""
        return f"waiting{short}: {self.before} before you"


def place_of_this_process(folder: Path) -> Place | None:
    """Return how this process stands, None if it does not wait.

    Args:
        folder: The machine folder.

    Raises:
        HostlerError: `unsafe-state`.

    """
    number = _own_ticket(f"{folder}/t/")
    found = survey(folder) if number is not None else None
    if found is None:
        return None
    for key, wait in found.waits().items():
        if wait.number == number:
            line, capacity = found.line_of(found.live[key].entry)
            short = next(iter(wait.short), None)
            return Place(
                resource=short.resource if short else "",
                free=short.free if short else 0,
                capacity=capacity.get(short.resource, 1) if short else 0,
                before=sum(entry.number < number for entry in line.awake),
                lacks_memory=short is not None and found.lacks_memory(short),
            )
    return None


def _own_ticket(folder: str) -> int | None:
    """Return the ticket of this process that waits: it has that FIFO open to write, those it watches only to read."""
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError, ValueError):
            name = os.readlink(f"/proc/self/fd/{fd}")
            if not name.startswith(tuple(f"{folder}{letter}." for letter in (WAITING, HEIR, DOZING))):
                continue
            if fcntl.fcntl(int(fd), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR:
                return int(name.removeprefix(folder).split(".")[1])
    return None
