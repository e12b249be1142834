"""How often actors may break before their host gives up."""

from collections import deque
from typing import Final

from store.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """So many deaths within so many seconds are borne.

    Attributes:
        deaths: How many.
        window_s: Within how many seconds.

    """

    deaths: int
    window_s: float


RESTARTS: Final = Budget(deaths=5, window_s=60.0)
"""Of what all runs of a host need."""
OF_A_RUN: Final = Budget(deaths=2, window_s=86_400.0)
"""Of the scheduler of one run: hours may pass until a step has come again to what broke it."""


class Deaths:
    """The latest deaths of a host's actors, against a budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._latest: deque[float] = deque()

    def bear(self, now_s: float) -> bool:
        """Count one more death.

        Args:
            now_s: Monotonic time, seconds.

        Returns:
            Whether it can still be borne.

        """
        self._latest.append(now_s)
        while self._latest[0] <= now_s - self._budget.window_s:
            self._latest.popleft()
        return len(self._latest) <= self._budget.deaths
