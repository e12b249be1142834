"""The boot-time clock: it never steps back and counts the time a laptop sleeps."""

import functools
import time
from pathlib import Path


def boot_ns() -> int:
    """Return nanoseconds since boot (CLOCK_BOOTTIME)."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@functools.cache
def boot_id() -> str:
    """Return the kernel's identity of this boot; times of another boot mean nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
