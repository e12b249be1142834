"""Heirs: waiters of which it is settled beforehand that they hold as soon as the one before them has held and ended.

A hand-over decided when a slot falls free costs what the decision costs, in a process that has slept and finds nothing
in its caches. Mostly it could have been decided long before. If a waiter wants just what its predecessor holds, or is
to hold before it, and the two fit in no case side by side, then it takes exactly what that one gives back: nobody else
gains or loses by it, whatever they claim, and whatever came or went meanwhile. So it is named the heir of its
predecessor while it asks, under the gate. When that one has gone it gives its FIFO its holding name as a second one,
and holds: no gate, no look at the others, no wake-up of anybody else.

That name is made by `link`, which fails once others have taken the old name away, and which lets nobody who reads the
folder meanwhile miss the ticket, as a `rename` may. Until somebody sweeps both names away under the gate, they say that
the predecessor has ended.

Everything that might let another one go first *disowns* the heirs under the gate, before it counts: a priority, a
ticket inside another, a dozing one that moves again, other rules. They go the long way from then on. An heir is nobody
that looks after others, so whoever waits first and is no heir watches all that hold.
"""

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from hostres import descriptors
from hostres.affinity import CPU, machine_cpus, of_name
from hostres.claims import MEMORY
from hostres.clock import boot_ns
from hostres.listing import HOLDING, WAITING, Entry, Listing, heir_name, name_of
from hostres.locks import WATCH, is_locked, poke
from hostres.queue import Demand, fits, fits_beside
from hostres.state import MachineState
from hostres.sweeping import Sweeper
from hostres.ticket import Inheritance, Ticket, close_watches
from hostres.tickets import TicketFolder
from hostres.turnaround import after_turns


def predecessor(
    listing: Listing,
    heir: Demand,
    demand_of: Callable[[Entry], Demand | None],
    capacity: Mapping[str, int],
    allowed: Callable[[], set[int]],
) -> Entry | None:
    """Return whose heir a waiter may be, None if it must look for itself.

    By induction all that wait before an heir want the same as it, and none of them can hold beside another. So it is
    the only one that may go when its predecessor has held and ended, however long that takes.

    Args:
        listing: What `t/` holds.
        heir: Who waits for the machine.
        demand_of: What a ticket claims, None if that is not known.
        capacity: Resource → units.
        allowed: Numbers of the CPUs that the waiter may use.

    """
    if (
        listing.nested
        or heir.priority
        or not excludes_its_like(heir, capacity)
        or any(not entry.nonce.isalnum() for entry in listing.waiting)
    ):
        return None
    older = [entry for entry in listing.waiting if entry.number < heir.number]
    if older:
        entry = older[-1]
        demand = demand_of(entry) if entry.state == WAITING and (entry.after or len(older) == 1) else None
        others: list[Demand] = []
    else:
        alike = [(entry, demand_of(entry)) for entry in listing.holding]
        found = [(entry, demand) for entry, demand in alike if demand is not None and demand.units == heir.units]
        if len(found) != 1:
            return None
        entry, demand = found[0]
        others = [demand for other, demand in alike if demand is not None and other is not entry]
    if demand is None or demand.units != heir.units or demand.priority:
        return None
    if not fits_beside(heir, others, capacity):
        return None
    if CPU in heir.units and capacity.get(CPU, 0) <= machine_cpus():
        own = of_name(entry.name)
        if not own or not allowed().issuperset(own):
            return None  # it would not get just the CPUs of that one
    return entry


def excludes_its_like(demand: Demand, capacity: Mapping[str, int]) -> bool:
    """Return whether two that claim the same fit in no case side by side."""
    return not fits({resource: 2 * units for resource, units in demand.units.items()}, capacity)


def promised(waiting: Iterable[Entry], number: int) -> list[str]:
    """Return names that tell of the CPUs which heirs are to get, but for a ticket itself and those that follow it.

    Args:
        waiting: Who waits in a line, in order.
        number: Of the ticket.

    """
    behind, names = {number}, []
    for entry in waiting:
        if entry.number == number or entry.after in behind:
            behind.add(entry.number)
        elif entry.after:
            names.append(entry.name)
    return names


class Heirs:
    """Names tickets of this process heirs, and lets them hold when their time has come."""

    def __init__(self, tickets: TicketFolder, sweeper: Sweeper) -> None:
        self._tickets = tickets
        self._sweeper = sweeper
        self._new: deque[tuple[str, dict[str, int]]] = deque()
        """Keys and watches of those that have come to hold since `settle`; they themselves may end before."""
        descriptors.forget_after_fork(self)

    def forget(self) -> None:
        """Forget the tickets of the parent; called in a forked child."""
        self._new.clear()

    def born(
        self, demand: Demand, nonce: str, listing: Listing, state: MachineState
    ) -> tuple[Entry, Inheritance] | None:
        """Return how a waiter is called as the heir of another ticket and what it comes into, None if it is no heir.

        Args:
            demand: What it claims.
            nonce: Its own.
            listing: What `t/` holds; under the gate.
            state: What the processes agree on.

        """
        if state.real_memory and MEMORY in demand.units:
            return None  # what there is of memory the others' claims do not tell
        known, capacity = self._tickets.demand_of_dead, state.capacity
        before = predecessor(listing, demand, known, capacity, lambda: os.sched_getaffinity(0))
        if before is None:
            return None
        number, cpus = demand.number, before.cpus
        name = heir_name(number, nonce, before.number, cpus)
        inheritance = Inheritance(
            key=before.key,
            held=self._tickets.path(name_of(before.number, before.nonce, HOLDING) + cpus),
            place=self._tickets.path(name_of(number, nonce, HOLDING) + cpus),
        )
        return Entry(number, nonce, WAITING, name, after=before.number), inheritance

    def see(self, ticket: Ticket, listing: Listing, state: MachineState) -> None:
        """Make a ticket that goes on waiting the heir of whoever stands before it now, if it can be; under the gate.

        Args:
            ticket: It waits for the machine, and what it claims does not follow the capacity.
            listing: What `t/` holds.
            state: What the processes agree on.

        """
        inheritance = ticket.inheritance
        if inheritance and any(entry.key == inheritance.key for entry in (*listing.holding, *listing.awake)):
            return
        named, inheritance = self.born(ticket.demand, ticket.nonce, listing, state) or (
            ticket.waiting.in_state(WAITING),
            None,
        )
        if named != ticket.waiting:
            for chief in [entry for entry in listing.lookouts if entry.key != ticket.key][:1]:
                poke(self._tickets.path(chief.name), WATCH)  # it may be the first now that looks after the line
            ticket.lock.rename(self._tickets.path(named.name))
            ticket.be_called(named, inheritance)
            if inheritance:
                ticket.unwatch(ticket.watches.keys() - {inheritance.key})
            else:
                poke(ticket.lock.place)  # it looks again, as it has watched but its predecessor

    def turnaround_ns(self, turnaround_ns: int, listing: Listing) -> int:
        """Return the moving average with the turns that have ended since anybody asked, and that heirs followed.

        Args:
            turnaround_ns: The average so far.
            listing: What `t/` holds.

        """
        now_boot_ns, now_ns = boot_ns(), time.time_ns()
        for before, heir in listing.inherited:
            demand = self._tickets.demand_of_dead(before)
            if demand is not None:
                with contextlib.suppress(FileNotFoundError):
                    held_ns = now_ns - os.lstat(self._tickets.path(heir.name)).st_ctime_ns
                    turnaround_ns = after_turns(turnaround_ns, [demand], now_boot_ns - max(0, held_ns))
        return turnaround_ns

    def inherit(self, ticket: Ticket, hung: Collection[str]) -> bool:
        """Admit a waiting ticket without the gate, if it is the heir of one that has held and ended.

        Args:
            ticket: A ticket of this process.
            hung: Keys of watched tickets that hung up.

        Returns:
            Whether it is admitted; if not, it must look.

        """
        inheritance = ticket.inheritance
        if inheritance is None or inheritance.key not in hung:
            return False
        with ticket.mutex:
            if ticket.withdrawn or is_locked(ticket.watches[inheritance.key]):
                return False
            try:
                os.lstat(inheritance.held)  # else it has gone before it held
                os.link(ticket.lock.place, inheritance.place)  # the commit; it fails once the old name is taken away
            except OSError:
                return False
            ticket.lock.place = inheritance.place
            ticket.admitted_boot_ns = boot_ns()
            ticket.holding = True
        self._new.append((ticket.key, ticket.watches))
        return True

    def settle(self) -> None:
        """Do what that has left to do, now that nobody waits for it; under the gate."""
        if self._new:
            for key, watches in self._taken():
                self._sweeper.own(key)
                close_watches(watches, watches)

    def close(self) -> None:
        """Close what they have watched."""
        for _, watches in self._taken():
            close_watches(watches, watches)

    def _taken(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Take out those that are new; another thread may do so in the same moment."""
        while self._new:
            try:
                new = self._new.popleft()
            except IndexError:
                return
            yield new
