"""Who goes next: a pure function of the tickets, the capacity and the time.

In order of their numbers, each waiter that fits into what holders and the older waiters that fit have
left may go. So nothing idles while somebody could use it, nobody is admitted past the capacity, and of
two equal claims the older goes first. Priorities shift that order.

An older waiter that does not fit reserves nothing, until the oldest has waited for so long that it is
*patient*: from then on no priority stands before it, and what it needs is kept for it where it is short.
A younger one may still go, if for each resource that both name the patient one, all that can stay beside
it and the younger one fit together. So it starts as soon as what cannot stay has ended, whatever arrives
meanwhile, and nothing idles for its sake that it could not use anyway.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

KEY: Final = "="
"""First character of an exclusive key among the units, which no resource name has; its capacity is one."""


class Demand(NamedTuple):
    """What one ticket wants or holds.

    Attributes:
        number: Its place in the order of arrival.
        units: Resource → units, and `KEY` + digest → 1 for each exclusive key.
        asked_boot_ns: When it was asked for, on the boot-time clock.
        priority: From -10 to 10; the higher goes first, within the patience of the oldest.
        dozing: It waits, but its process does not move: it is passed over until it does.

    """

    number: int
    units: Mapping[str, int]
    asked_boot_ns: int = 0
    priority: int = 0
    dozing: bool = False


class Decision(NamedTuple):
    """Who may go.

    Attributes:
        go: Numbers of the waiters that may go now, in the order in which they were seated.
        free: What is left beside the holders and those.
        reserved: What of it is kept for the patient one, resource → units.
        reserved_for: The patient one's number, None if nobody is patient and waits.

    """

    go: tuple[int, ...]
    free: Mapping[str, int]
    reserved: Mapping[str, int]
    reserved_for: int | None


class Shortage(NamedTuple):
    """One reason why a ticket waits.

    Attributes:
        resource: The resource, or `KEY` + digest.
        wanted: Units it asks for.
        free: Units that are left for it.
        held_by: Tickets that have the rest: holders, waiters that go first, and the one it is kept for.
        reserved_for: The patient one for which what is free is kept, None if that is not the reason.

    """

    resource: str
    wanted: int
    free: int
    held_by: tuple[int, ...]
    reserved_for: int | None = None


class Wait(NamedTuple):
    """Why a ticket waits.

    Attributes:
        number: The ticket.
        waited_ns: How long it has waited.
        short: What it is short of; empty if it may go, or might if it did not doze.
        patient: What it needs is kept for it.
        dozing: Its process does not move.

    """

    number: int
    waited_ns: int
    short: tuple[Shortage, ...]
    patient: bool = False
    dozing: bool = False


def decide(
    holders: Iterable[Demand],
    waiters: Iterable[Demand],
    capacity: Mapping[str, int],
    *,
    patience_ns: int | None = None,
    now_boot_ns: int = 0,
) -> Decision:
    """Return who may go now.

    Args:
        holders: Live tickets that are admitted.
        waiters: Live tickets that wait, in order of their numbers.
        capacity: Resource → units.
        patience_ns: After so long the oldest waiter is patient; None for never.
        now_boot_ns: The boot-time clock.

    """
    room = _Room(holders, capacity)
    for _ in _unseated(room, waiters, patience_ns, now_boot_ns):
        pass
    return Decision(
        go=tuple(demand.number for demand in room.seated),
        free=room.free,
        reserved=room.reserved(),
        reserved_for=room.head.number if room.head else None,
    )


def explain(
    holders: Iterable[Demand],
    waiters: Iterable[Demand],
    capacity: Mapping[str, int],
    *,
    now_boot_ns: int,
    patience_ns: int | None = None,
) -> tuple[Wait, ...]:
    """Return for each waiter why it waits, in the order they were given.

    Args:
        holders: As for `decide`.
        waiters: As for `decide`.
        capacity: As for `decide`.
        now_boot_ns: The boot-time clock.
        patience_ns: As for `decide`.

    """
    holders, waiters = tuple(holders), tuple(waiters)
    room = _Room(holders, capacity)
    short = {waiter.number: room.short_of(waiter) for waiter in _unseated(room, waiters, patience_ns, now_boot_ns)}
    short.update({waiter.number: room.short_of(waiter) for waiter in waiters if waiter.dozing})
    return tuple(
        Wait(
            number=waiter.number,
            waited_ns=_waited(waiter, now_boot_ns),
            short=short.get(waiter.number, ()),
            patient=waiter is room.head,
            dozing=waiter.dozing,
        )
        for waiter in waiters
    )


def fits(units: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Return whether *units* fit into what is *free*."""
    for resource, wanted in units.items():
        if wanted > free.get(resource, 0) and wanted > _left(free, resource):
            return False
    return True


def fits_beside(demand: Demand, holders: Iterable[Demand], capacity: Mapping[str, int]) -> bool:
    """Return whether there is room beside the holders; who finds none does not go, whatever other waiters want.

    Args:
        demand: What is wanted.
        holders: As for `decide`.
        capacity: As for `decide`.

    """
    free = dict(capacity)
    for holder in holders:
        _take(free, holder.units)
    return fits(demand.units, free)


def succeeds(
    heir: Demand,
    dead: Iterable[Demand],
    holders: Iterable[Demand],
    capacity: Mapping[str, int],
    *,
    patience_ns: int,
    now_boot_ns: int,
) -> bool:
    """Return whether the oldest waiter may go and nobody else who might not before, whatever the others want.

    It takes all that has come free, and nothing was kept for it: so for the others there is no more than before.

    Args:
        heir: The oldest waiter. Nobody dozes before it, and no waiter has a priority.
        dead: The holders that have gone since it was last settled who may go.
        holders: The others.
        capacity: As for `decide`.
        patience_ns: As for `decide`; the least of what was in force since then.
        now_boot_ns: The boot-time clock.

    """
    left: dict[str, int] = {}
    for demand in dead:
        for resource, units in demand.units.items():
            left[resource] = left.get(resource, 0) + units
    for resource, units in left.items():
        if heir.units.get(resource, 0) < units:
            return False
    return fits_beside(heir, holders, capacity) and now_boot_ns - heir.asked_boot_ns <= patience_ns


class _Room:
    """What is left, as one waiter after the other is seated.

    Attributes:
        free: Resource → units beside the holders and the seated.
        seated: The waiters that may go.
        head: The patient one that waits.

    """

    __slots__ = ("_beside", "_capacity", "_holders", "free", "head", "seated")

    def __init__(self, holders: Iterable[Demand], capacity: Mapping[str, int]) -> None:
        self._capacity = capacity
        self._holders = tuple(holders)
        self._beside: dict[str, int] = {}
        self.free = dict(capacity)
        self.seated: list[Demand] = []
        self.head: Demand | None = None
        for holder in self._holders:
            _take(self.free, holder.units)

    def seat(self, waiter: Demand) -> bool:
        """Seat a waiter if it fits and leaves alone what is kept."""
        units, beside = waiter.units, self._beside
        if not fits(units, self.free):
            return False
        if beside and any(wanted > beside[resource] for resource, wanted in units.items() if resource in beside):
            return False
        _take(self.free, units)
        for resource in units.keys() & beside.keys():
            beside[resource] -= units[resource]
        self.seated.append(waiter)
        return True

    def keep_for(self, head: Demand) -> bool:
        """Keep what *head* needs; False if it can never fit, so that nothing is kept."""
        if not fits(head.units, self._capacity):
            return False
        self.head = head
        self._beside = {resource: _left(self._capacity, resource) - wanted for resource, wanted in head.units.items()}
        for other in (*self._holders, *self.seated):
            together = {resource: wanted + head.units.get(resource, 0) for resource, wanted in other.units.items()}
            if fits(together, self._capacity):
                for resource in other.units.keys() & self._beside.keys():
                    self._beside[resource] -= other.units[resource]
        return True

    def reserved(self) -> dict[str, int]:
        """Return what of the free is kept."""
        kept = {
            resource: _left(self.free, resource) - max(0, beside) for resource, beside in sorted(self._beside.items())
        }
        return {resource: units for resource, units in kept.items() if units > 0}

    def short_of(self, waiter: Demand) -> tuple[Shortage, ...]:
        """Return what a waiter that is not seated is short of."""
        shortages = []
        for resource, wanted in sorted(waiter.units.items()):
            free = _left(self.free, resource)
            kept_from = None
            if self.head is not None and self.head is not waiter and self._beside.get(resource, wanted) < wanted:
                free, kept_from = min(free, self._beside[resource]), self.head.number
            if wanted > free:
                users = [demand.number for demand in (*self._holders, *self.seated) if resource in demand.units]
                if kept_from is not None:
                    users.append(kept_from)
                shortages.append(
                    Shortage(
                        resource=resource,
                        wanted=wanted,
                        free=max(0, free),
                        held_by=tuple(users),
                        reserved_for=kept_from,
                    )
                )
        return tuple(shortages)


def _unseated(room: _Room, waiters: Iterable[Demand], patience_ns: int | None, now_boot_ns: int) -> Iterator[Demand]:
    """Seat whoever may go; yield each other waiter that is awake, at the moment of its turn."""
    rest = [waiter for waiter in waiters if not waiter.dozing]
    turn = 0
    while turn < len(rest) and patience_ns is not None and _waited(rest[turn], now_boot_ns) > patience_ns:
        oldest = rest[turn]  # patient: its turn comes before anybody's priority
        turn += 1
        if not room.seat(oldest):
            yield oldest
            if room.keep_for(oldest):
                break
    for waiter in _by_priority(rest[turn:]):
        if not room.seat(waiter):
            yield waiter


def _by_priority(waiters: Sequence[Demand]) -> Sequence[Demand]:
    if any(waiter.priority for waiter in waiters):
        return sorted(waiters, key=lambda waiter: (-waiter.priority, waiter.number))
    return waiters


def _waited(waiter: Demand, now_boot_ns: int) -> int:
    return max(0, now_boot_ns - waiter.asked_boot_ns)


def _take(free: dict[str, int], units: Mapping[str, int]) -> None:
    for resource, wanted in units.items():
        free[resource] = _left(free, resource) - wanted


def _left(free: Mapping[str, int], resource: str) -> int:
    left = free.get(resource)
    if left is None:
        return 1 if resource[0] == KEY else 0
    return left
