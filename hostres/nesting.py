"""Asking under a lease: a unit of work gets parts of what it holds, and never waits for the machine.

Who runs under a lease and waited for the machine could wait for itself, or in a circle with others. So an ask
under a living lease is for a part of it: it stands in the line inside that ticket, is counted inside it while
it lives, and by itself afterwards. What the lease does not hold is refused at once, and so is what would make
a unit of work wait while it holds such a part.
"""

import contextlib
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

from hostres import descriptors
from hostres.claims import describe
from hostres.errors import Code, HostlerError
from hostres.listing import Entry, Listing
from hostres.queue import KEY, Demand
from hostres.ticket import Ticket
from hostres.tickets import TicketFolder

LEASE: Final = "HOSTLER_LEASE"
"""Tells a process under which lease it runs: `<ticket>.<nonce>.<descriptor>`."""

MAX_DEPTH: Final = 16


class Parent(NamedTuple):
    """A lease under which somebody asks, if it still lives.

    Attributes:
        number: Its ticket.
        nonce: The nonce in its ticket's name.
        fd: A descriptor that holds it, if nobody has closed it on the way.

    """

    number: int
    nonce: str
    fd: int = -1

    @classmethod
    def of_environment(cls, environ: Mapping[str, str]) -> Self | None:
        """Return the lease that `HOSTLER_LEASE` names, None if it names none."""
        parts = environ.get(LEASE, "").split(".")
        if len(parts) not in (2, 3) or not (parts[0].isdecimal() and parts[1]):
            return None
        return cls(number=int(parts[0]), nonce=parts[1], fd=int(parts[2]) if parts[2:] and parts[2].isdecimal() else -1)

    def entry(self, listing: Listing, tickets: TicketFolder) -> Entry | None:
        """Return its ticket, None if it lives no more.

        Raises:
            HostlerError: `unsafe-state`.

        """
        entry = listing.find(self.number, self.nonce)
        if entry is not None and (self._is_open(tickets.path(entry.name)) or tickets.is_live(entry)):
            return entry
        return None

    def _is_open(self, place: str) -> bool:
        """Return whether the descriptor is this ticket's, which then lives by it."""
        if self.fd >= 0:
            with contextlib.suppress(OSError):
                return os.path.samestat(os.fstat(self.fd), os.lstat(place))
        return False


class Asker(NamedTuple):
    """Who asks.

    Attributes:
        parents: The leases under which it may run; the first that lives counts.
        unit: The thread that asks.
        blocks: That thread is the unit of work: it has what it gets until it gives it back.

    """

    parents: Sequence[Parent] = ()
    unit: int = 0
    blocks: bool = False

    def host(self, listing: Listing, tickets: TicketFolder) -> Entry | None:
        """Return the ticket inside which it asks, None for the machine.

        A lease that claims nothing has no parts, and waiting under it is waiting while holding nothing.

        Raises:
            HostlerError: `unsafe-state`.

        """
        living = (parent.entry(listing, tickets) for parent in self.parents)
        entry = next((entry for entry in living if entry is not None), None)
        while entry is not None and not tickets.demand(entry).units:
            entry = listing.host(entry)
        return entry


ALONE: Final = Asker()
"""Whoever runs under no lease."""

_parts: Final[weakref.WeakSet[Ticket]] = weakref.WeakSet()
"""What the threads of this process have inside tickets; guarded as descriptors are, so that a fork finds it whole."""


def took_part(ticket: Ticket, asker: Asker) -> None:
    """Take note that a thread of this process holds a part of a ticket."""
    if asker.blocks and ticket.parents:
        with descriptors.guard:
            ticket.unit = asker.unit
            _parts.add(ticket)


def room_of(capacity: Mapping[str, int], held: Demand) -> Mapping[str, int]:
    """Return what may be claimed at most: what a lease holds it goes on holding, however little there is by now.

    Args:
        capacity: Resource → units, of the machine.
        held: What the lease holds under which it is claimed.

    """
    more = {name: units for name, units in held.units.items() if name[0] != KEY and units > capacity.get(name, 0)}
    return {**capacity, **more}


def check_part(demand: Demand, host: Entry, held: Demand) -> None:
    """Refuse what a lease does not hold.

    Args:
        demand: What is asked for.
        host: The ticket of the lease.
        held: What that one holds.

    Raises:
        HostlerError: `invalid-claims`.

    """
    for resource, wanted in sorted(demand.units.items()):
        units = held.units.get(resource, 0)
        if wanted > units:
            what = "an exclusive key" if resource[0] == KEY else f"{resource}={wanted}"
            has = f" but only {resource}={units}" if units else ""
            raise HostlerError(
                Code.INVALID_CLAIMS,
                f"this runs under ticket {host.number}, which does not hold {what}{has}",
                f"claim {what} when the outer lease is asked for: under it nobody waits for the machine",
            )
    if len(host.parents) + 1 >= MAX_DEPTH:
        raise HostlerError(Code.INVALID_CLAIMS, f"{MAX_DEPTH} leases are inside each other", "ask further out")


def check_wait(asker: Asker, host: Entry, place: str) -> None:
    """Refuse to let a unit of work wait for a part of a ticket while it holds another.

    Args:
        asker: Who would wait.
        host: The ticket.
        place: The folder of the tickets.

    Raises:
        HostlerError: `conflict`.

    """
    with descriptors.guard:
        mine = [ticket for ticket in _parts if ticket.unit == asker.unit and ticket.holding and ticket.lock.fd >= 0]
    for ticket in mine:
        if ticket.demand.units and ticket.parents[:1] == (host.number,) and os.path.dirname(ticket.lock.place) == place:  # noqa: PTH120
            raise HostlerError(
                Code.CONFLICT,
                f"this unit of work has {describe(ticket.record.claims)} of ticket {host.number} already, as ticket "
                f"{ticket.number}, and must not wait for more of it",
                "use that lease, or give it back first",
            )
