"""When an attempt last showed that it lives. Beats come on any thread, and are neither events nor stored."""

import time
from collections.abc import Callable

from actors.actions import TakePulse
from actors.messages import PulseTaken


class Pulse:
    """The beats of one attempt, counted from its start.

    Args:
        clock: Monotonic seconds.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_s = self._looked_at_s = clock()
        self._beats = 0

    def beat(self) -> None:
        """Take note of a sign of life."""
        self._last_s = self._clock()
        self._beats += 1

    def taken(self, asked: TakePulse, *, running: bool) -> PulseTaken:
        """Return what was seen so far.

        Args:
            asked: When it was to be looked at.
            running: Whether the attempt is still at work.

        """
        now_s = self._clock()
        late_s = max(0.0, now_s - self._looked_at_s - asked.after_s)
        self._looked_at_s = now_s
        return PulseTaken(
            node=asked.node,
            attempt=asked.attempt,
            beats=self._beats,
            silent_s=now_s - self._last_s,
            late_s=late_s,
            running=running,
        )
