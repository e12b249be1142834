"""When each event of a run happened, in seconds since its first one, although no single clock knows. Pure.

The boot clock is exact and never steps, but starts anew with the machine; the wall clock goes on and may step. Only a
new claim can come from another boot: whoever owns a run dies with the machine.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from store.clock import unix_ms

SAME_BOOT_S: Final = 2.0
"""How far the two clocks may disagree about one stretch of time and yet be of one boot."""

_NS: Final = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the clocks showed.

    Attributes:
        at: The wall clock, RFC 3339.
        boot_ns: The boot clock, nanoseconds.
        claims: Whether another process, after a reboot perhaps, may have read them than the one before.

    """

    at: str
    boot_ns: int
    claims: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A place on the time axis.

    Attributes:
        s: Seconds since the first moment; never less than that of an earlier one.
        boot_ns: What the boot clock showed then.

    """

    s: float
    boot_ns: int

    def when(self, boot_ns: int) -> float:
        """Return the seconds at which the boot clock showed *boot_ns*, in the same boot; never less than 0."""
        return max(self.s + (boot_ns - self.boot_ns) / _NS, 0.0)


def moments(readings: Iterable[Reading]) -> Iterator[Moment]:
    """Yield the moment of each reading.

    Args:
        readings: In the order in which they were taken.

    """
    before: Reading | None = None
    s = 0.0
    for reading in readings:
        if before is not None:
            s += _between(before, reading)
        before = reading
        yield Moment(s=s, boot_ns=reading.boot_ns)


def _between(before: Reading, after: Reading) -> float:
    by_boot = (after.boot_ns - before.boot_ns) / _NS
    if not after.claims:
        return max(by_boot, 0.0)
    by_wall = (unix_ms(after.at) - unix_ms(before.at)) / 1000
    same_boot = by_boot >= 0 and abs(by_wall - by_boot) <= SAME_BOOT_S
    return by_boot if same_boot else max(by_wall, 0.0)
