"""Whom a waiter watches: nobody's end is missed, and no end wakes more than a few.

The first of a line that is no heir, its chief, watches all that hold there; every other one watches whoever stands
before it, and, if that one dozes, also the next before that, and so does a chief behind heirs. Who stands inside
another ticket watches that too.
"""

from collections.abc import Callable, Collection, Mapping

from hostres.listing import DOZING, WAITING, Entry, Line, Listing, entry_of
from hostres.locks import is_locked
from hostres.queue import Demand
from hostres.sweeping import Sweeper
from hostres.ticket import Ticket
from hostres.tickets import TicketFolder


class Watcher:
    """Opens the watches of this process's tickets, under the gate."""

    def __init__(self, tickets: TicketFolder, sweeper: Sweeper) -> None:
        self._tickets = tickets
        self._sweeper = sweeper

    def watch(
        self, ticket: Ticket, listing: Listing, hung: Collection[str], *, unprompted: bool
    ) -> Mapping[Entry, Demand | None]:
        """Watch whom *ticket* waits for.

        Args:
            ticket: A ticket of this process that waits.
            listing: What `t/` holds; the dead are removed from it.
            hung: Keys of watched tickets that hung up.
            unprompted: Trust no watch, probe everybody.

        Returns:
            The dead, with what they claimed if they had hung up.

        """
        swept: dict[Entry, Demand | None] = {}

        def alive(entry: Entry) -> bool:
            key = entry.key
            fd = ticket.watches.get(key)
            if fd is not None and not unprompted and (key not in hung or is_locked(fd)):
                return True
            if fd is None or unprompted:
                ticket.unwatch([key])
                fd = self._tickets.watch(entry)
                if fd is not None:
                    ticket.watches[key] = fd
                    self._tickets.demand(entry)  # read now, it need not be read when its end makes haste
                    return True
            swept[entry] = self._tickets.demand_of_dead(entry) if key in hung else None
            self._sweeper.bury(entry, listing)
            return False

        while True:  # once more if somebody was dead: who stood inside stands elsewhere now
            dead = len(swept)
            wanted = self._wanted(ticket, listing, alive, everybody=unprompted)
            if len(swept) == dead:
                break
        ticket.unwatch(ticket.watches.keys() - wanted)
        return swept

    def begins(self, ticket: Ticket, name: str) -> bool:
        """Watch one more ticket, which holds; return whether it lives.

        What it claims, or claimed, is known then, if it can be.

        Args:
            ticket: A ticket of this process that waits, and stands first.
            name: Of that one.

        """
        entry = entry_of(name)
        if entry is None:
            return False
        fd = self._tickets.watch(entry)
        if fd is None:
            self._tickets.demand_of_dead(entry)
            return False
        ticket.watches[entry.key] = fd
        self._tickets.demand(entry)
        return True

    def _wanted(self, ticket: Ticket, listing: Listing, alive: Callable[[Entry], bool], *, everybody: bool) -> set[str]:
        host = listing.host(ticket.waiting)
        wanted = {host} if host is not None and alive(host) else set()
        line = listing.line(listing.host(ticket.waiting))
        before = self._predecessor(ticket, line)
        if before is not None and not alive(before):
            before = None
        if before is not None and not everybody:
            return {before.key}
        older = [entry for entry in line.waiting if entry.number < ticket.number]
        chief = not ticket.waiting.after and all(entry.after or entry.state == DOZING for entry in older)
        while older:
            if alive(older[-1]):
                wanted.add(older[-1])
                if older[-1].state == WAITING:
                    break
            older.pop()
        if everybody:
            older = [entry for entry in older if alive(entry)]
        if not older or everybody or chief:
            holding = [entry for entry in tuple(line.holding) if alive(entry)]
            if not older or chief:
                wanted.update(holding)
        return {entry.key for entry in wanted} if before is None else {before.key}

    def _predecessor(self, ticket: Ticket, line: Line) -> Entry | None:
        """Return whose heir *ticket* is, None if it is nobody's, or if that one dozes."""
        after = ticket.waiting.after
        if not after:
            return None
        there = (*line.waiting, *line.holding)
        return next((entry for entry in there if entry.number == after and entry.state != DOZING), None)
