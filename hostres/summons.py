"""Whom a waiter has told that they may go, and who of them does not move."""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

from hostres.listing import Entry


class Summons:
    """Kept by one waiter, on its own monotonic clock."""

    SILENCE_S: Final = 2.0
    """Who has not moved for so long although it may go is passed over until it moves."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def silent(self, may_go: Iterable[Entry]) -> list[Entry]:
        """Return those of *may_go* that were told long ago."""
        now = self._clock()
        return [entry for entry in may_go if now - self._since.get(entry.key, now) >= self.SILENCE_S]

    def note(self, may_go: Iterable[Entry], told: Collection[Entry]) -> None:
        """Take note of who may go now.

        Args:
            may_go: Those that wait and may go; all others are forgotten.
            told: Those that have just been told something.

        """
        before, now = self._since, self._clock()
        self._since = {
            entry.key: before.get(entry.key, now) for entry in may_go if entry.key in before or entry in told
        }

    def due(self) -> float | None:
        """Return the monotonic second at which somebody will have been silent for too long, None if nobody can be."""
        return min(self._since.values()) + self.SILENCE_S if self._since else None
