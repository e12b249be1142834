"""Who goes next: a pure function of the tickets and the capacity.

In order of their numbers, each waiter that fits into what holders and the older waiters that fit have
left may go. So nothing idles while somebody could use it, nobody is admitted past the capacity, and of
two equal claims the older goes first. An older waiter that does not fit reserves nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

KEY: Final = "="
"""First character of an exclusive key among the units, which no resource name has; its capacity is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one ticket wants or holds.

    Attributes:
        number: Its place in the order of arrival.
        units: Resource → units, and `KEY` + digest → 1 for each exclusive key.
        asked_boot_ns: When it was asked for, on the boot-time clock.
        priority: From -10 to 10; the higher goes first.

    """

    number: int
    units: Mapping[str, int]
    asked_boot_ns: int = 0
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Who may go.

    Attributes:
        go: Numbers of the waiters that may go now, in order.
        free: What is left beside the holders and those.

    """

    go: tuple[int, ...]
    free: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """One reason why a ticket waits.

    Attributes:
        resource: The resource, or `KEY` + digest.
        wanted: Units it asks for.
        free: Units that are left for it.
        held_by: Tickets that have the rest: holders, and older waiters that go first.

    """

    resource: str
    wanted: int
    free: int
    held_by: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why a ticket waits.

    Attributes:
        number: The ticket.
        waited_ns: How long it has waited.
        short: What it is short of; empty if it may go.

    """

    number: int
    waited_ns: int
    short: tuple[Shortage, ...]


def decide(holders: Iterable[Demand], waiters: Iterable[Demand], capacity: Mapping[str, int]) -> Decision:
    """Return who may go now.

    Args:
        holders: Live tickets that are admitted.
        waiters: Live tickets that wait, in order of their numbers.
        capacity: Resource → units.

    """
    free = dict(capacity)
    for holder in holders:
        _take(free, holder.units)
    go = []
    for waiter in waiters:
        if fits(waiter.units, free):
            go.append(waiter.number)
            _take(free, waiter.units)
    return Decision(go=tuple(go), free=free)


def explain(
    holders: Iterable[Demand], waiters: Iterable[Demand], capacity: Mapping[str, int], *, now_boot_ns: int
) -> tuple[Wait, ...]:
    """Return for each waiter why it waits.

    Args:
        holders: As for `decide`.
        waiters: As for `decide`.
        capacity: As for `decide`.
        now_boot_ns: The boot-time clock.

    """
    free = dict(capacity)
    users: dict[str, list[int]] = {}

    def seat(demand: Demand) -> None:
        _take(free, demand.units)
        for resource in demand.units:
            users.setdefault(resource, []).append(demand.number)

    for holder in holders:
        seat(holder)
    waits = []
    for waiter in waiters:
        short = tuple(
            Shortage(
                resource=resource,
                wanted=units,
                free=max(0, _left(free, resource)),
                held_by=tuple(users.get(resource, ())),
            )
            for resource, units in sorted(waiter.units.items())
            if units > _left(free, resource)
        )
        if not short:
            seat(waiter)
        waited = max(0, now_boot_ns - waiter.asked_boot_ns)
        waits.append(Wait(number=waiter.number, waited_ns=waited, short=short))
    return tuple(waits)


def fits(units: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Return whether *units* fit into what is *free*."""
    return all(wanted <= _left(free, resource) for resource, wanted in units.items())


def _take(free: dict[str, int], units: Mapping[str, int]) -> None:
    for resource, wanted in units.items():
        free[resource] = _left(free, resource) - wanted


def _left(free: Mapping[str, int], resource: str) -> int:
    left = free.get(resource)
    if left is None:
        return 1 if resource[0] == KEY else 0
    return left
