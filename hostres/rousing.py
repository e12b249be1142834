"""Who does not move: asked for a sign of life, and passed over if there is none.

A stopped process announces nothing. So a waiter takes note of those that it has told that they may go, which shows when
they do, and of those that it has asked for a sign of life, which is that they take the byte out of their FIFO.
"""

from collections.abc import Collection, Iterable, Sequence

from hostres.listing import DOZING, Entry, Line, Listing
from hostres.locks import ALIVE, has_unread, is_unread, poke
from hostres.ticket import Ticket
from hostres.tickets import TicketFolder


class Rouser:
    """Finds them for the tickets of this process, under the gate."""

    def __init__(self, tickets: TicketFolder) -> None:
        self._tickets = tickets

    def let_doze(self, ticket: Ticket, listing: Listing, line: Line, may_go: Collection[int]) -> set[Entry]:
        """Let those doze that may go or were roused, and do not move.

        Args:
            ticket: Who has told and roused them.
            listing: What `t/` holds.
            line: Where it stands.
            may_go: Numbers of those that may go.

        Returns:
            Them and whoever stands behind them, who must know.

        """
        concerned: set[Entry] = set()
        if not (ticket.summons.told or ticket.roused.told):
            return concerned
        silent = ticket.summons.silent([entry for entry in line.awake if entry.number in may_go])
        for entry in {*silent, *ticket.roused.silent(self._deaf(ticket, line.awake))}:
            if entry.key != ticket.key:
                asleep = self._tickets.put(entry, DOZING, listing)
                if asleep is None:
                    continue  # it holds meanwhile
                concerned.add(asleep)  # once it moves, it looks
                concerned.update([behind for behind in line.awake if behind.number > entry.number][:1])
        return {entry for entry in concerned if entry in line.waiting}

    def to_rouse(
        self, ticket: Ticket, awake: Sequence[Entry], going: Collection[Entry], *, unprompted: bool
    ) -> list[Entry]:
        """Return whom a waiter must ask for a sign of life now; it takes note of that.

        Args:
            ticket: Who asks.
            awake: Those of its line that do not doze.
            going: Those of them that may go.
            unprompted: Nothing has woken it: then whoever is first is asked, as it may be for want of that one.

        """
        if not (unprompted or ticket.summons.told or ticket.roused.told):
            return []
        deaf = self._deaf(ticket, awake)
        ticket.roused.note(deaf, ())  # who has heard it and is roused again has heard nothing yet
        slow = [*ticket.summons.slow(going), *ticket.roused.slow(deaf)]
        roused = to_rouse(awake, ticket.waiting, slow, chief=unprompted and awake[0] != ticket.waiting)
        ticket.roused.note({*deaf, *roused}, roused, hasty=bool(slow) or ticket.rank > 1)
        return roused

    def all_move(self, ticket: Ticket, chief: Entry | None) -> bool:
        """Return whether nobody is expected to move but who has; then the first of the line is asked once more.

        Args:
            ticket: Who asks.
            chief: Who is asked, None if that is itself the first.

        """
        if ticket.summons.told or any(key != (chief and chief.key) for key in ticket.roused.told):
            return False
        if chief is None:
            return True
        fd = ticket.watches.get(chief.key)
        if fd is None or has_unread(fd) or not poke(self._tickets.path(chief.name), ALIVE):
            return False
        ticket.roused.note_again(chief)
        return True

    def _deaf(self, ticket: Ticket, awake: Iterable[Entry]) -> list[Entry]:
        """Return those that *ticket* has roused and that have not heard it."""
        if not ticket.roused.told:
            return []
        roused = [entry for entry in awake if entry in ticket.roused]
        return [entry for entry in roused if is_unread(self._tickets.path(entry.name))]


def to_rouse(awake: Sequence[Entry], me: Entry, slow: Collection[Entry], *, chief: bool) -> list[Entry]:
    """Return whom to ask for a sign of life: behind slow ones as many as are slow, so that their number doubles.

    Args:
        awake: Those that wait and do not doze.
        me: Who asks.
        slow: Those of them that should have moved by now.
        chief: The first of them is to be asked in any case.

    """
    asked = [] if not chief or awake[0] in slow else [awake[0]]
    room, behind = len(slow), False
    for entry in awake:
        if entry in slow:
            behind = True
        elif entry == me:
            behind = False
        elif behind and room and entry not in asked:
            asked.append(entry)
            room -= 1
    return asked
