"""CPUs of a lease's own: chosen among those that the asker may use and no living ticket was given.

Chosen under the gate at the moment a ticket is admitted, they stand in its name as a hexadecimal mask, so that
whoever is admitted next sees them without reading anything else.
"""

import contextlib
import functools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from hostres.listing import HEIR, HOLDING, INSIDE

CPU: Final = "cpu"
"""The resource whose units are CPUs."""

_PARTS: Final = {HOLDING: 4, INSIDE: 5, HEIR: 5}
"""How many parts the name of a ticket with a mask has."""


def choose(wanted: int, *, allowed: Iterable[int], taken: Collection[int]) -> tuple[int, ...]:
    """Return *wanted* CPUs of the *allowed* that are not *taken*, or none if there are too few.

    Args:
        wanted: How many.
        allowed: Numbers of the CPUs that the asker may use.
        taken: Numbers of those that others were given.

    """
    free = sorted(set(allowed) - set(taken))
    return tuple(free[:wanted]) if 0 < wanted <= len(free) else ()


def suffix(
    claims: Mapping[str, int], names: Iterable[str], capacity: Mapping[str, int], *, within: Collection[int] = ()
) -> str:
    """Return what the name of a ticket gets when it is admitted: its CPUs as `.<mask>`, or nothing.

    Args:
        claims: What it claims, resource → units.
        names: Names of the tickets that hold in the same line, or are heirs to CPUs in it.
        capacity: Resource → units, of the profile in force. More CPU units than the machine has CPUs mean that CPUs
            are shared on purpose.
        within: Numbers of the CPUs of the ticket inside which it is admitted, if that has any.

    """
    wanted = claims.get(CPU)
    if wanted is None or capacity.get(CPU, 0) > machine_cpus():
        return ""
    taken = {cpu for name in names for cpu in of_name(name)}
    allowed = os.sched_getaffinity(0)
    cpus = choose(wanted, allowed=allowed.intersection(within) if within else allowed, taken=taken)
    return f".{sum(1 << cpu for cpu in cpus):x}" if cpus else ""


def of_name(name: str) -> tuple[int, ...]:
    """Return the CPUs that the name of a ticket tells, also of an heir that is to get them; none without a mask."""
    parts = name.split(".")
    if len(parts) != _PARTS.get(parts[0]):
        return ()
    try:
        mask = int(parts[-1], 16)
    except ValueError:
        return ()
    return tuple(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1)


@functools.cache
def machine_cpus() -> int:
    """Return how many CPUs the machine has, whether or not this process may use them."""
    return os.cpu_count() or 1


@contextlib.contextmanager
def pinned(cpus: Collection[int]) -> Iterator[None]:
    """Let what this thread starts meanwhile run on *cpus* alone, from its first instruction.

    A child inherits the affinity of the thread that starts it, and Linux keeps one for each thread: so nothing races
    with the child, and no other thread is touched.

    Args:
        cpus: Numbers of CPUs; none changes nothing.

    """
    before: Collection[int] = ()
    if cpus:
        with contextlib.suppress(OSError):  # they were taken from us since: better anywhere than not at all
            before = os.sched_getaffinity(0)
            os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        if before:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, before)
