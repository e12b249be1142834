"""Whether somebody looks after a line: who does leaves a sign, which all others see at the price of one `stat`.

A stopped process announces nothing, so somebody must ask for it now and then. The first two of a line do; all
others only see whether these still do, and whoever sees first that they do not looks in their place. That may also be
because the first two have gone, and those who come after them believe that they still stand further back.

The sign says when it was left. So one process that sees to it in time is enough, and of many each does it less often.
"""

# A plain string, as for the tickets.
# ruff: noqa: PTH104, PTH108, PTH116, PTH119, PTH120

import contextlib
import os
import time
from typing import Final

from hostres.clock import boot_ns
from hostres.errors import HostlerError
from hostres.folders import open_private
from hostres.locks import NEW

BEATS: Final = 1.5
"""A sign that is not renewed for so many of the intervals in which it should be is missed."""

FEW: Final = 4
"""So many see to it that often, each of them; more do it as often altogether."""

SELDOM: Final = 4.0
"""Each does it at least once in so many times as long, as what were many a moment ago may be few."""

_SPREAD: Final = 0.6180339887498949
"""Multiples of it fall evenly between whole numbers."""


FILE: Final = "pulse"
"""In the machine folder: of the machine's own line. Nothing else changes it, so that nothing hides a silence."""


class Pulse:
    """The sign of one line, as one waiter in it sees it: a moment on the boot-time clock, as the wall clock may jump.

    Attributes:
        place: Whose modification time is the sign: `FILE`, or the record of the ticket inside which the line is.

    """

    RENEW_S: Final = 0.5
    """Among many looks, it is left again after so long."""

    def __init__(self) -> None:
        self.place = ""
        self._interval_s = 0.0
        self._seen_ns = 0
        self._left_s = -float("inf")

    def leave(self, *, again: bool = False) -> None:
        """Leave the sign.

        Args:
            again: Even if it was just now.

        """
        now = time.monotonic()
        if again or now - self._left_s >= self.RENEW_S:
            self._left_s = now
            with contextlib.suppress(OSError, HostlerError):  # then others look too, which does no harm
                self._renew()

    def due(self, interval_s: float, waiting: int) -> float:
        """Return the monotonic second at which to see to it.

        Args:
            interval_s: How often whoever looks after the line looks at least.
            waiting: How many there are to see to it.

        """
        self._interval_s = BEATS * interval_s
        period_s = self._interval_s * min(max(1.0, waiting / FEW), SELDOM)
        # all waiters of one process in the same moment, those of different ones, also forked ones, in different ones
        phase_s = os.getpid() * _SPREAD % 1 * period_s
        return phase_s + ((time.monotonic() - phase_s) // period_s + 1) * period_s

    def missed(self) -> bool:
        """Return whether nobody has left the sign for too long."""
        try:
            self._seen_ns = os.stat(self.place, follow_symlinks=False).st_mtime_ns
        except OSError:
            return True  # the folder is gone, or what the line is inside
        return not 0 <= boot_ns() - self._seen_ns < self._interval_s * 1e9  # one of another boot is none

    def renewed(self) -> bool:
        """Return whether somebody has left the sign since it was missed."""
        try:
            return os.stat(self.place, follow_symlinks=False).st_mtime_ns != self._seen_ns
        except OSError:
            return False

    def _renew(self) -> None:
        try:
            _date(self.place)
        except FileNotFoundError:
            if os.path.basename(self.place) != FILE:
                raise  # of a ticket that has gone
            os.close(open_private(self.place, os.O_WRONLY | os.O_CREAT))
            _date(self.place)
        except PermissionError:  # only its owner may date a file, and this is that of another user of a shared folder
            if os.path.basename(self.place) != FILE:
                raise
            self._replace()

    def _replace(self) -> None:
        draft = f"{os.path.dirname(self.place)}/{NEW}{FILE}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        os.close(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        _date(draft)
        os.rename(draft, self.place)


def _date(place: str) -> None:
    now_ns = boot_ns()
    os.utime(place, ns=(now_ns, now_ns), follow_symlinks=False)
