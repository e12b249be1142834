"""How long a turn takes on average, from asking to release: one line in the file of the gate.

It changes with each hand-over, and every process has that file open, so it is overwritten in place: one write within
a page, of which a process that is killed leaves all or nothing. It is advice: whatever else stands there means that it
is not known. It is read by those who hold the gate, and by those who only show it.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from hostres.folders import open_private
from hostres.gate import Gate
from hostres.queue import Demand

_WEIGHT: Final = 20
"""A new turn counts for one in so many."""
_NAME: Final = b"turnaround_ns"
_LINE: Final = _NAME + b" %020d\n"
_BYTES: Final = len(_LINE % 0)


class Turnaround:
    """Reads and writes the average; who does either must hold the gate."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def read(self) -> int:
        """Return the average in nanoseconds, 0 if it is not known."""
        return _parse(os.pread(self._gate.fd, _BYTES, 0))

    def write(self, turnaround_ns: int) -> None:
        """Replace the average.

        Raises:
            OSError: It cannot be written; the old one stands.

        """
        os.pwrite(self._gate.fd, _LINE % turnaround_ns, 0)


def after_turn(turnaround_ns: int, turn_ns: int) -> int:
    """Return the moving average with one turn more.

    Args:
        turnaround_ns: The average; 0 before the first turn.
        turn_ns: How long the turn took.

    """
    return turnaround_ns + (turn_ns - turnaround_ns) // _WEIGHT if turnaround_ns else turn_ns


def after_turns(turnaround_ns: int, ended: Iterable[Demand], now_boot_ns: int) -> int:
    """Return the moving average after turns that end now.

    Args:
        turnaround_ns: The average; 0 before the first turn.
        ended: What was claimed in them.
        now_boot_ns: The boot-time clock.

    """
    for demand in ended:
        turnaround_ns = after_turn(turnaround_ns, max(1, now_boot_ns - demand.asked_boot_ns))
    return turnaround_ns


def read_turnaround(folder: Path) -> int:
    """Return the average in nanoseconds without holding the gate, 0 if it is not known.

    Raises:
        HostlerError: `unsafe-state`: the file is not private.
        OSError: It cannot be read.

    """
    try:
        fd = open_private(f"{folder}/gate", os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return 0
    try:
        return _parse(os.read(fd, _BYTES))
    finally:
        os.close(fd)


def _parse(line: bytes) -> int:
    number = line[len(_NAME) + 1 : -1]
    whole = len(line) == _BYTES and line.startswith(_NAME + b" ") and line.endswith(b"\n") and number.isdigit()
    return int(number) if whole else 0
