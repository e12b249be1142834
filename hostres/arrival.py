"""The short way of an ask: whoever comes back to a machine that holds nothing but what it left itself goes at once.

Nobody holds, waits or watches there, so that nobody need be counted, thought of or told. What was left, the FIFO and
its record, becomes the next ticket's, as making files is most of what an ask costs. Whether it is really left is for
its lock to say: a child may have a copy of the descriptor.
"""

from collections.abc import Collection
from typing import NamedTuple, Self

from hostres.listing import RECORD
from hostres.ticket import Ticket


class Left(NamedTuple):
    """What this process left in `t/` when it gave a ticket back.

    Attributes:
        number: Of the ticket.
        name: Of its FIFO.
        record: Name of its record.
        identity: Device and inode of the FIFO.

    """

    number: int
    name: str
    record: str
    identity: tuple[int, int]

    @classmethod
    def by(cls, ticket: Ticket) -> Self:
        """Return what is left of a ticket that held."""
        lock = ticket.lock
        return cls(ticket.number, lock.place.rpartition("/")[2], f"{ticket.number}{RECORD}", lock.identity)

    def is_all(self, names: Collection[str]) -> bool:
        """Return whether there is nothing else among the names in `t/`."""
        return len(names) == 2 and self.name in names and self.record in names
