"""Whether somebody looks after a line: who does leaves a sign, which all others see at the price of one `stat`.

A stopped process announces nothing, so somebody must ask for it now and then. The first two of a line do; all
others only see whether these still do, and whoever sees first that they do not looks in their place. That may also be
because the first two have gone, and those who come after them believe that they still stand further back.
"""

# A plain string, as for the tickets.
# ruff: noqa: PTH116, PTH119

import contextlib
import os
import time
from typing import Final

from hostres.errors import HostlerError
from hostres.folders import open_private

BEATS: Final = 1.5
"""A sign that is not renewed for so many of the intervals in which it should be is missed."""

_SPREAD: Final = 0.6180339887498949
"""Multiples of it fall evenly between whole numbers."""


FILE: Final = "pulse"
"""In the machine folder: of the machine's own line. Nothing else changes it, so that nothing hides a silence."""


class Pulse:
    """The sign of one line, as one waiter in it sees it. Signs are compared, never dated: the wall clock may jump.

    Attributes:
        place: Whose modification time is the sign: `FILE`, or the record of the ticket inside which the line is.

    """

    RENEW_S: Final = 0.5
    """Among many looks, it is left again after so long."""

    def __init__(self) -> None:
        self.place = ""
        self._interval_s = 0.0
        self._seen_ns = 0
        self._seen_s = self._left_s = -float("inf")

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

    def due(self, interval_s: float) -> float:
        """Return the monotonic second at which to see to it.

        Args:
            interval_s: How often whoever looks after the line looks at least.

        """
        self._interval_s = BEATS * interval_s
        # all waiters of one process in the same moment, those of different ones, also forked ones, in different ones
        phase_s = os.getpid() * _SPREAD % 1 * self._interval_s
        return phase_s + ((time.monotonic() - phase_s) // self._interval_s + 1) * self._interval_s

    def missed(self) -> bool:
        """Return whether nobody has left the sign since this was asked last."""
        now = time.monotonic()
        if now - self._seen_s < self._interval_s / BEATS:
            return False  # one was stopped itself, and has only just seen to it
        try:
            sign_ns = os.stat(self.place, follow_symlinks=False).st_mtime_ns
        except OSError:
            return True  # the folder is gone, or what the line is inside
        missed, self._seen_ns, self._seen_s = sign_ns == self._seen_ns, sign_ns, now
        return missed

    def renewed(self) -> bool:
        """Return whether somebody has left the sign since it was missed."""
        try:
            return os.stat(self.place, follow_symlinks=False).st_mtime_ns != self._seen_ns
        except OSError:
            return False

    def _renew(self) -> None:
        try:
            os.utime(self.place, follow_symlinks=False)
        except FileNotFoundError:
            if os.path.basename(self.place) != FILE:
                raise  # of a ticket that has gone
            os.close(open_private(self.place, os.O_WRONLY | os.O_CREAT))
