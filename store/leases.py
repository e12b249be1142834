"""Work that a worker outside has taken: whose it is, and until when. Pure.

A lease lasts by the clock that counts from boot, which never steps back; after a reboot, by what the wall clock leaves
of its last length. Whoever looks at it while it lasts may say so: once it has expired nothing brings it back, so it
does not matter who notices that first.
"""

from typing import Final

from store.amounts import Budget
from store.clock import Stamp, instant, unix_ms
from store.lazy_dataclass import dataclass

SHORTEST_S: Final = 1.0
LONGEST_S: Final = 86_400.0
LONGEST_NAME: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLease:
    """A lease that begins with the transaction that makes it.

    Attributes:
        seconds: How long it lasts.
        budget: What the worker may still spend; None is no limit.

    """

    node: str
    attempt: int
    worker: str
    seconds: float
    budget: Budget | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLease:
    """A lease as the owner of a run finds it.

    Attributes:
        left_s: How long it still lasts, seconds; 0 once it has expired.

    """

    node: str
    attempt: int
    worker: str
    left_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Until when a lease lasts.

    Attributes:
        seconds: The length that it was last given.
        boot_id: The boot in which it was.
        until_boot_ns: When it ends, CLOCK_BOOTTIME of that boot.
        expires_at: When it ends, by the wall clock.

    """

    seconds: float
    boot_id: str
    until_boot_ns: int
    expires_at: str

    @classmethod
    def begin(cls, seconds: float, stamp: Stamp, boot_id: str) -> "Term":
        """Return a term of that length from now."""
        return cls(
            seconds=seconds,
            boot_id=boot_id,
            until_boot_ns=stamp.boot_ns + round(seconds * 1e9),
            expires_at=instant(unix_ms(stamp.at) + round(seconds * 1000)),
        )

    def left_s(self, stamp: Stamp, boot_id: str) -> float:
        """Return how long it still lasts, seconds; 0 once it has expired.

        Args:
            stamp: This moment.
            boot_id: This boot.

        """
        if boot_id == self.boot_id:
            left = (self.until_boot_ns - stamp.boot_ns) / 1e9
        else:
            left = (unix_ms(self.expires_at) - unix_ms(stamp.at)) / 1000
        return max(0.0, min(left, self.seconds))

    def extended(self, seconds: float, stamp: Stamp, boot_id: str) -> "Term":
        """Return it with at least that much from now on."""
        return self if self.left_s(stamp, boot_id) >= seconds else Term.begin(seconds, stamp, boot_id)


def work_key(run_id: str, node: str, attempt: int) -> str:
    """Return the name of an attempt."""
    return f"{run_id}:{node}:{attempt}"
