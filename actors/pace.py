"""Progress is advice: a few words a second are enough."""

import time
from typing import Final

EVERY_S: Final = 0.2


class Pace:
    """Says which reports are passed on: a few times a second at most; the end always.

    Args:
        every_s: How far apart they are at least, seconds.

    """

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._told_at = float("-inf")

    def due(self, fraction: float | None) -> bool:
        """Say whether this report is passed on."""
        now = time.monotonic()
        if now - self._told_at < self._every_s and fraction != 1.0:
            return False
        self._told_at = now
        return True
