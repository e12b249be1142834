"""A look that nothing has prompted, where it finds what the last such look of the same waiter has found.

Whoever looks after a line does so every second or two, mostly to find that nothing has changed. That takes no
decision, and so neither the gate nor the records: the names in `t/` are the same, what the processes agree on is the
same, and everybody whose end would matter is asked for, as at any look that trusts no watch. What comes in that very
moment comes with an event of its own, as ever.
"""

from typing import NamedTuple, Self

from hostres.listing import Entry, Listing
from hostres.locks import is_held, is_locked
from hostres.state import MachineState, StateFile
from hostres.ticket import Ticket
from hostres.tickets import TicketFolder


class Stillness(NamedTuple):
    """What a waiter found that may not go.

    Attributes:
        names: The names in `t/`, in the order in which they were read.
        state: What the processes agreed on.
        before: Those whose end would concern it: who holds, and who waits before it.
        chief: The first of its line that does not doze, None if it is that itself.

    """

    names: list[str]
    state: MachineState
    before: tuple[Entry, ...]
    chief: Entry | None

    @classmethod
    def of(cls, ticket: Ticket, names: list[str], listing: Listing, state: MachineState) -> Self | None:
        """Return what a waiter has found, None if something else may let it go than what is seen here.

        Args:
            ticket: A ticket of this process that looked after its line, and goes on waiting.
            names: The names in `t/`.
            listing: What they told, without the dead.
            state: What the processes agree on.

        """
        if ticket.rank > 1 or ticket.adapts is not None or listing.nested or state.real_memory:
            return None  # memory has no event
        before = (*listing.holding, *(entry for entry in listing.waiting if entry.number < ticket.number))
        return cls(names, state, before, next((entry for entry in listing.awake[:1] if entry.key != ticket.key), None))

    def lasts(self, ticket: Ticket, tickets: TicketFolder, state_file: StateFile) -> bool:
        """Return whether nothing has changed, whatever the watches of *ticket* say."""
        if tickets.names() != self.names or state_file.unchanged() is not self.state:
            return False
        for entry in self.before:
            fd = ticket.watches.get(entry.key)
            if not (is_held(tickets.path(entry.name)) if fd is None else is_locked(fd)):
                return False
        return True
