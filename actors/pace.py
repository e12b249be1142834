"""Progress is advice: a few words a second are enough, and a number that says nothing is unknown."""

import math
import time
from typing import Any, Final

from hostres.arguments import shown

EVERY_S: Final = 0.2


def measured(value: Any, name: str) -> float | None:
    """Return what somebody has measured; None if it is unknown, as what is not finite is.

    Args:
        value: Any number, or None.
        name: What it is called where it was given.

    Raises:
        TypeError: It is neither.

    """
    if value is None:
        return None
    wrong = f"{name} is {shown(value)}, not a number"
    if isinstance(value, str | bytes | bytearray):  # which `float` would read
        raise TypeError(wrong)
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        return None
    except (TypeError, ValueError):
        raise TypeError(wrong) from None
    return number if math.isfinite(number) else None


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
