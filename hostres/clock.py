"""The boot-time clock: it never steps back and counts the time a laptop sleeps.

A container may have a time namespace, in which the clock is shifted; the shift is taken out, so that all that share a
machine folder mean the same moment.
"""

import contextlib
import functools
import time
from pathlib import Path


def boot_ns() -> int:
    """Return nanoseconds since boot (CLOCK_BOOTTIME), the same for all processes of the machine."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - _shift_ns()


@functools.cache
def _shift_ns() -> int:
    """Return by how much the clock of our time namespace is ahead, see time_namespaces(7)."""
    with contextlib.suppress(OSError):  # a kernel without such namespaces
        for row in Path("/proc/self/timens_offsets").read_text(encoding="ascii").splitlines():
            match row.split():
                case ["boottime", seconds, nanoseconds]:
                    return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return 0


@functools.cache
def boot_id() -> str:
    """Return the kernel's identity of this boot; times of another boot mean nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
