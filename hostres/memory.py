"""Memory that is really there: claims of memory-mb against what the system says is available.

Claims are promises to each other; other programs make none. Where the configuration asks for it, memory-mb is
admitted only as far as the system could really give it. What was admitted a moment ago may not have taken its memory
yet, so for a while it counts as if it had not. No event tells that memory is there: who waits for it looks when
anything else happens, and else as often as the safety net.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping
from typing import Final

from hostres.claims import MEMORY
from hostres.errors import Code, HostlerError

SETTLING_S: Final = 10.0
"""For so long after its admission what a ticket claims counts as not yet taken."""

MEMINFO: str = "/proc/meminfo"


def available_mb() -> int:
    """Return how many mebibytes the system could give to programs without swapping (`MemAvailable`, see proc(5)).

    Raises:
        HostlerError: `unavailable`: the system does not say.

    """
    with contextlib.suppress(OSError), open(MEMINFO, "rb") as file:  # noqa: PTH123  plain, as it is often read
        for line in file:
            if line.startswith(b"MemAvailable:"):
                return int(line.split()[1]) // 1024
    raise HostlerError(
        Code.UNAVAILABLE,
        f"{MEMINFO} does not say how much memory is available",
        'mount /proc, or write memory = "claimed" under [machine] in the configuration',
    )


def memory_mb() -> tuple[int, int] | None:
    """Return how many mebibytes programs have in use, and how many there are; None if the system does not say."""
    found: dict[bytes, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError), open(MEMINFO, "rb") as file:  # noqa: PTH123  as above
        for line in file:
            name, _, rest = line.partition(b":")
            if name in (b"MemTotal", b"MemAvailable"):
                found[name] = int(rest.split()[0]) // 1024
            if len(found) == 2:
                total = found[b"MemTotal"]
                return max(0, total - found[b"MemAvailable"]), total
    return None


def attainable(
    capacity: Mapping[str, int], held: Iterable[tuple[int, float]], available: int, *, now_unix_s: float | None = None
) -> Mapping[str, int]:
    """Return the capacity with as much memory as our tickets and what is available make together.

    A waiter that wants more than that waits for other programs, so nothing is kept for it: no ticket's end would help.

    Args:
        capacity: Resource → units.
        held: For each ticket that holds memory: how many mebibytes, and the Unix second of its admission.
        available: Mebibytes that are available.
        now_unix_s: The Unix second; now by default.

    """
    now_unix_s = time.time() if now_unix_s is None else now_unix_s
    held = tuple(held)
    promised = sum(units for units, since_s in held if 0 <= now_unix_s - since_s < SETTLING_S)
    most = max(0, available - promised) + sum(units for units, _ in held)
    return {**capacity, MEMORY: min(capacity.get(MEMORY, 0), most)}
