"""Whom a waiter has told something, and who of them does not move."""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

from hostres.listing import Entry


class Summons:
    """Kept by one waiter, on its own monotonic clock.

    Attributes:
        told: Since when those have known it who had not moved, by key.

    """

    SILENCE_S: Final = 2.0
    """Who has not moved for so long although it was told is passed over until it moves."""

    SLOW_S: Final = 0.25
    """After so long those behind it are asked for a sign of life too, so that many in a row cost little more."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.told: dict[str, float] = {}
        self._hasty = True

    def __contains__(self, entry: Entry) -> bool:
        """Return whether *entry* was told and had not moved."""
        return entry.key in self.told

    def silent(self, expected: Iterable[Entry]) -> list[Entry]:
        """Return those of *expected* that were told long ago."""
        return self._told_before(expected, self.SILENCE_S)

    def slow(self, expected: Iterable[Entry]) -> list[Entry]:
        """Return those of *expected* that should have moved by now."""
        return self._told_before(expected, self.SLOW_S)

    def note(self, expected: Iterable[Entry], told: Collection[Entry], *, hasty: bool = True) -> None:
        """Take note of who is expected to move now.

        Args:
            expected: Those that have not moved; all others are forgotten.
            told: Those that have just been told something.
            hasty: See already who is slow, not only who is silent.

        """
        before, now, self._hasty = self.told, self._clock(), hasty
        self.told = {
            entry.key: before.get(entry.key, now) for entry in expected if entry.key in before or entry in told
        }

    def note_again(self, entry: Entry) -> None:
        """Take note that *entry* alone is expected to move, and was told just now."""
        self.told, self._hasty = {entry.key: self._clock()}, False

    def due(self) -> float | None:
        """Return the monotonic second at which to look for those told, None if there are none."""
        now = self._clock()
        patience_s = [
            since + (self.SLOW_S if self._hasty and now < since + self.SLOW_S else self.SILENCE_S)
            for since in self.told.values()
        ]
        return min(patience_s, default=None)

    def _told_before(self, expected: Iterable[Entry], patience_s: float) -> list[Entry]:
        now = self._clock()
        return [entry for entry in expected if now - self.told.get(entry.key, now) >= patience_s]
