"""The short way of an ask: whoever comes back to a machine that holds nothing but what it left itself goes at once.

Nobody holds, waits or watches there, so that nobody need be counted, thought of or told. What was left becomes the
next ticket's, as making files is most of what an ask costs: the FIFO of the last ticket, and the record of the one
before. So the rename of the FIFO is the commit, and whatever name it has, the record of that is there. Whether it is
really left is for its lock to say: a child may have a copy of the descriptor.
"""

from collections.abc import Collection
from typing import NamedTuple, Self

from hostres.listing import RECORD, is_number
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

    def spare(self, names: Collection[str]) -> str | None:
        """Return which older record, without a FIFO and so nobody's, is there beside it.

        Args:
            names: The names in `t/`.

        Returns:
            "" if there is nothing else; None if there is more, or this is not what is there.

        """
        if len(names) > 3 or self.name not in names or self.record not in names:
            return None
        for name in names:
            if name not in (self.name, self.record):
                number = name.removesuffix(RECORD)
                return name if number != name and is_number(number) and int(number) < self.number else None
        return ""
