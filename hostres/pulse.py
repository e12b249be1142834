"""Whether somebody looks after a line: who does leaves a sign, which all others see at the price of one `stat`.

A stopped process announces nothing, so somebody must ask for it now and then. The first two of a line do; all
others only see whether these still do, and whoever sees first that they do not looks in their place.
"""

# A plain string, as for the tickets.
# ruff: noqa: PTH116

import contextlib
import os
import time
from typing import Final

BEATS: Final = 1.5
"""A sign that is not renewed for so many of the intervals in which it should be is missed."""

_PHASE: Final = time.monotonic()
"""All waiters of one process see to it in the same moment, those of different processes in different ones."""


class Pulse:
    """The sign of one line, as one waiter in it sees it. Signs are compared, never dated: the wall clock may jump.

    Attributes:
        place: The file whose modification time is the sign.

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
            with contextlib.suppress(OSError):  # then others look too, which does no harm
                os.utime(self.place, follow_symlinks=False)

    def due(self, interval_s: float) -> float:
        """Return the monotonic second at which to see to it.

        Args:
            interval_s: How often the first of the line look at least.

        """
        self._interval_s = BEATS * interval_s
        return _PHASE + ((time.monotonic() - _PHASE) // self._interval_s + 1) * self._interval_s

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
