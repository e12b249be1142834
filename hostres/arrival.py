"""The short ways of an ask: to a machine that holds nothing but what one left there, and behind one's equals.

Whoever comes back to a machine that holds nothing but what it left goes at once. Nobody holds, waits or watches there,
so that nobody need be counted, thought of or told. What was left becomes the next ticket's, as making files is most of
what an ask costs: the FIFO of the last ticket, and the record of the one before. So the rename of the FIFO is the
commit, and whatever name it has, the record of that is there. Whether it is really left is for its lock to say: a child
may have a copy of the descriptor.

Whoever wants the same as the last of those that wait goes after it in any case, as equal claims go in order of arrival.
So it watches that one, and need not know what anybody holds.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple, Self

from hostres import affinity, descriptors
from hostres.claims import MEMORY
from hostres.heirs import excludes_its_like
from hostres.issuing import Issuer
from hostres.listing import HOLDING, MAX_NUMBER, RECORD, WAITING, Entry, is_number, name_of, nonce_of
from hostres.locks import FifoLock
from hostres.state import MachineState, StateFile
from hostres.ticket import Ticket
from hostres.tickets import MAX_TICKETS, Record, TicketFolder
from hostres.usher import Usher

MAX_WAITING: Final = MAX_TICKETS // 2
"""Where more wait, a newcomer counts all tickets."""


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


class Tail(NamedTuple):
    """The end of a line in which everybody waits for the machine, without a priority, and looks for itself.

    Attributes:
        last: Who came last.
        waiting: How many wait.
        highest: The highest number in use.

    """

    last: Entry
    waiting: int
    highest: int


def tail(names: Iterable[str]) -> Tail | None:
    """Return who would stand before a newcomer, None if that is not plain, or if there is something to tidy up.

    Args:
        names: The names in `t/`.

    """
    holding = waiting = records = highest = last = 0
    last_name = ""
    for name in names:
        if name.endswith(RECORD):
            number = name[: -len(RECORD)]
            records += 1
        else:
            parts = name.split(".")
            number = parts[1] if len(parts) in (3, 4) else ""
            if parts[0] == WAITING and len(parts) == 3 and parts[2].isalnum():
                waiting += 1
                if is_number(number) and int(number) > last:
                    last, last_name = int(number), name
            elif parts[0] == HOLDING:
                holding += 1
            else:
                return None
        if not is_number(number):
            return None
        highest = max(highest, int(number))
    if not waiting or records > holding + waiting + 1:
        return None
    return Tail(Entry(last, last_name.split(".")[2], WAITING, last_name), waiting, highest)


class Arrivals:
    """Makes tickets of one process the short ways, under the gate.

    Attributes:
        left: What this process left when it last gave a ticket back, until that is used again.
        settled: The rules in force when it was last seen that they are what this process sets of them.

    """

    def __init__(self, tickets: TicketFolder, state_file: StateFile, issuer: Issuer, usher: Usher) -> None:
        self.left: Left | None = None
        self.settled: MachineState | None = None
        self._tickets = tickets
        self._state_file = state_file
        self._issuer = issuer
        self._usher = usher

    def by_a_short_way(self, names: Collection[str], record: Record, *, alone: bool) -> Ticket | None:
        """Return the ticket of a newcomer that goes at once or waits in any case, None if that is not plain.

        Args:
            names: The names in `t/`.
            record: What it claims, and for whom.
            alone: It asks for nothing inside another ticket.

        Raises:
            HostlerError: `invalid-claims`.
            OSError: A file cannot be made; nothing is left.

        """
        ticket, left = None, self.left
        spare = left.spare(names) if left is not None else None
        if left is not None and spare is not None:
            self.left = None  # whoever is interrupted may leave a descriptor open: then it is not to be used again
            ticket = self._come_back(left, spare, record)
        if ticket is None and alone and not record.priority:
            ticket = self._join(names, record)
        return ticket

    def _come_back(self, left: Left, spare: str, record: Record) -> Ticket | None:
        """Admit a newcomer the short way to a machine that holds nothing but what this process left, if it really did.

        Args:
            left: That.
            spare: Name of a record that is nobody's, or "".
            record: As for `ask`.

        """
        state = self._state_file.unchanged()
        if (
            left.number >= MAX_NUMBER
            or state is None
            or state is not self.settled
            or (state.real_memory and MEMORY in record.claims)
        ):
            return None
        asked, record = record, self._issuer.taken(record, state)
        place = self._tickets.place
        lock = FifoLock.taken_again(f"{place}/{left.name}", left.identity)
        if lock is None:
            return None
        try:
            demand = record.demand(max(left.number + 1, state.next_ticket))
            nonce = nonce_of(record.priority)
            name = name_of(demand.number, nonce, HOLDING) + affinity.suffix(record.claims, (), state.capacity)
            if spare:
                self._tickets.write_over(spare, demand.number, record)
            else:
                self._tickets.write(demand.number, record)
            lock.rename(f"{place}/{name}")  # the commit
        except BaseException:
            lock.discard()
            raise
        ticket = self._issuer.made(demand, nonce, lock, record, asked)
        self._usher.hold(ticket)
        return ticket

    def _join(self, names: Collection[str], record: Record) -> Ticket | None:
        """Let a newcomer wait the short way behind one that wants the same, if the machine is such that it must.

        Args:
            names: The names in `t/`.
            record: As for `ask`; without a priority.

        """
        end = tail(names)
        state = self._state_file.unchanged()
        if end is None or state is None or state is not self.settled or self._issuer.adapts(record):
            return None
        if end.waiting >= MAX_WAITING or self._tickets.remembers_too_much(names):
            return None
        asked, record = record, self._issuer.taken(record, state)
        demand = record.demand(max(end.highest + 1, state.next_ticket))
        if state.real_memory and MEMORY in demand.units:
            return None
        if excludes_its_like(demand, state.capacity) or demand.number > MAX_NUMBER:
            return None  # it may be an heir
        before = self._tickets.demand_of_dead(end.last)
        if before is None or before.units != demand.units:
            return None
        fd = self._tickets.watch(end.last)
        if fd is None:
            return None
        ticket = None
        try:
            nonce = nonce_of(record.priority)
            ticket = self._issuer.issue(demand, nonce, name_of(demand.number, nonce, WAITING), record, asked)
            self._usher.take_place(ticket, None, end.waiting, unprompted=False)
        except BaseException:
            if ticket is not None:
                ticket.withdraw()
            descriptors.close(fd)
            raise
        ticket.watches[end.last.key] = fd
        return ticket
