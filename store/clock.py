"""The two clocks whose readings are stored: wall time for people, boot time for durations across processes."""

import functools
import time
from datetime import UTC, datetime
from typing import Protocol

from hostres.clock import boot_ns
from store.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """One moment.

    Attributes:
        at: RFC 3339, UTC, milliseconds, Z; for display only.
        boot_ns: CLOCK_BOOTTIME, nanoseconds.

    """

    at: str
    boot_ns: int


class Clock(Protocol):
    """Whatever says which moment it is."""

    def now(self) -> Stamp:
        """Return this moment."""
        ...


def instant(unix_ms: int) -> str:
    """Write a Unix time.

    Args:
        unix_ms: Milliseconds.

    Returns:
        RFC 3339, UTC, milliseconds, Z.

    """
    seconds, milliseconds = divmod(unix_ms, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@functools.lru_cache(maxsize=2)
def _second(unix_s: int) -> str:
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%dT%H:%M:%S}"


def unix_ms(at: str) -> int:
    """Read what `instant` wrote.

    Returns:
        Unix time, milliseconds.

    """
    moment = datetime.fromisoformat(at)
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> Stamp:
        """Return this moment."""
        return Stamp(at=instant(time.time_ns() // 1_000_000), boot_ns=boot_ns())
