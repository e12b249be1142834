"""Who may go of one line: what the queue makes of the tickets in `t/` and of the capacity that there is for them."""

# A plain string, as for the tickets.

import contextlib
import os
from collections.abc import Iterable, Mapping

from hostres.claims import MEMORY
from hostres.clock import boot_ns
from hostres.errors import HostlerError
from hostres.listing import Entry, Line, Listing
from hostres.queue import Demand, decide, fits_beside
from hostres.state import MachineState
from hostres.sweeping import Sweeper
from hostres.tickets import TicketFolder


class Seating:
    """Reads what the tickets of a line claim, under the gate; the dead ones among them are taken out of the listing."""

    def __init__(self, tickets: TicketFolder, sweeper: Sweeper) -> None:
        self._tickets = tickets
        self._sweeper = sweeper

    def has_room(self, demand: Demand, listing: Listing, host: Entry | None, state: MachineState) -> bool:
        """Return whether there is room for a newcomer: without, it waits, whatever else others want.

        Beside the holders the oldest waiter has its place, if it fits there, and no priority stands before it.

        Args:
            demand: What it wants.
            listing: What `t/` holds.
            host: The ticket inside which it asks, None for the machine.
            state: What the processes agree on.

        """
        line = listing.line(host)
        holders = self._demands(line.holding, listing)
        capacity = self._capacity(line, host, state, (demand,))
        if not fits_beside(demand, holders, capacity):
            return False
        if demand.priority or not all(entry.nonce.isalnum() for entry in line.waiting):
            return True
        oldest = self._demands(line.awake[:1], listing)
        first = [entry for entry in oldest if fits_beside(entry, holders, capacity)]
        return not first or fits_beside(demand, [*holders, *first], capacity)

    def who_may_go(
        self,
        listing: Listing,
        host: Entry | None,
        state: MachineState,
        *,
        patience_ns: int,
        newcomer: Demand | None = None,
    ) -> tuple[int, ...]:
        """Return the numbers of those that may go.

        Args:
            listing: What `t/` holds.
            host: The ticket inside which the line stands, None for the machine.
            state: What the processes agree on.
            patience_ns: How long the oldest waiter lets others pass.
            newcomer: Who waits behind all that are there.

        """
        line = listing.line(host)
        while True:
            living = listing.tickets
            holders, waiters = self._demands(line.holding, listing), self._demands(line.waiting, listing)
            if listing.tickets == living:
                break  # else what stood inside a dead one stands here now
        if newcomer is not None:
            waiters.append(newcomer)
        capacity = self._capacity(line, host, state, waiters)
        return decide(holders, waiters, capacity, patience_ns=patience_ns, now_boot_ns=boot_ns()).go

    def _demands(self, entries: Iterable[Entry], listing: Listing) -> list[Demand]:
        return [demand for entry in tuple(entries) if (demand := self._demand(entry, listing))]

    def _demand(self, entry: Entry, listing: Listing) -> Demand | None:
        try:
            return self._tickets.demand(entry)
        except HostlerError:
            if not self._sweeper.dead(entry, listing):
                raise
            return None  # what a dead ticket left behind need not be whole

    def _capacity(
        self, line: Line, host: Entry | None, state: MachineState, waiters: Iterable[Demand]
    ) -> Mapping[str, int]:
        """Return what there is for a line: of memory no more than there really is, if anybody waits for some."""
        if host is not None:
            return self._tickets.demand(host).units
        if not state.real_memory or not any(MEMORY in waiter.units for waiter in waiters):
            return state.capacity
        from hostres.memory import attainable, available_mb  # noqa: PLC0415  few ask for it

        held = []
        for entry in line.holding:
            units = self._tickets.demand(entry).units.get(MEMORY)
            if units is not None:
                with contextlib.suppress(FileNotFoundError):
                    held.append((units, os.lstat(self._tickets.path(entry.name)).st_ctime))
        return attainable(state.capacity, held, available_mb())
