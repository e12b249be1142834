"""The short ways of an ask: in beside those that hold where nobody waits, and behind one's equals where somebody does.

Where nobody waits, and there is room beside all that hold, whoever asks goes: nobody need be thought of or told. What
others claim was read when this process last looked at all. It looks so again at a name that it does not know, if there
is no room, as somebody may have ended, and every now and then, as that removes what the dead have left.

What this process left when it last gave a ticket back becomes the next one's, as making files is most of what an ask
costs: the FIFO of the last ticket, and the record of the one before. So the rename of the FIFO is the commit, and
whatever name it has, the record of that is there. Whether it is really left is for its lock to say: a child may have a
copy of the descriptor.

Whoever wants the same as the last of those that wait goes after it in any case, as equal claims go in order of arrival.
So it watches that one, and need not know what anybody holds.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, Self

from hostres import affinity, descriptors
from hostres.claims import MEMORY
from hostres.heirs import excludes_its_like
from hostres.issuing import Issuer
from hostres.listing import HOLDING, MAX_NUMBER, RECORD, WAITING, Entry, is_number, name_of, nonce_of
from hostres.locks import FifoLock
from hostres.queue import fits_beside
from hostres.state import MachineState, StateFile
from hostres.sweeping import Sweeper
from hostres.ticket import Ticket
from hostres.tickets import MAX_TICKETS, Record, TicketFolder
from hostres.usher import Usher

SELDOM: Final = 64
"""So many times at most beside others it does not look at all."""

MAX_PLAIN: Final = MAX_TICKETS // 2
"""Where there are more, a newcomer counts all tickets."""


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

    def spare(self, names: Collection[str]) -> int | None:
        """Return the number of the older record, which is nobody's, that is all there is beside it.

        Args:
            names: The names in `t/`.

        Returns:
            0 if there is nothing else; None if there is more, or this is not what is there.

        """
        if len(names) > 3 or self.name not in names or self.record not in names:
            return None
        for name in names:
            if name not in (self.name, self.record):
                number = name.removesuffix(RECORD)
                older = number != name and is_number(number) and 0 < int(number) < self.number
                return int(number) if older else None
        return 0


class Scene(NamedTuple):
    """What the names tell of a machine where all tickets are plain: nobody dozes, is an heir, or stands in another.

    Attributes:
        holding: Names of those that hold, or did.
        waiting: How many wait, none of them with a priority.
        last: Who of them came last, None if nobody waits.
        highest: The highest number in use.
        spare: Number of the oldest record without a FIFO, which is nobody's; 0 if there is none.

    """

    holding: Sequence[str]
    waiting: int
    last: Entry | None
    highest: int
    spare: int


def scene(names: Iterable[str]) -> Scene | None:
    """Return what names tell, None if that is not plain, or if there is something to tidy up.

    Args:
        names: The names in `t/`.

    """
    holding: list[str] = []
    records, owned = list[int](), list[int]()
    waiting = last = 0
    last_nonce = ""
    for name in names:
        if name.endswith(RECORD):
            number, of = name[: -len(RECORD)], records
        else:
            parts = name.split(".")
            letter, of = parts[0], owned
            number = parts[1] if len(parts) in (3, 4) else ""
            if letter == HOLDING:
                holding.append(name)
            elif letter == WAITING and len(parts) == 3 and parts[2].isalnum() and is_number(number):
                waiting += 1
                if int(number) > last:
                    last, last_nonce = int(number), parts[2]
            else:
                return None
        if not is_number(number):
            return None
        of.append(int(number))
    if len(records) > len(owned) + 1:
        return None
    return Scene(
        holding=holding,
        waiting=waiting,
        last=Entry(last, last_nonce, WAITING, name_of(last, last_nonce, WAITING)) if waiting else None,
        highest=max(max(records, default=0), max(owned, default=0)),
        spare=min(set(records).difference(owned), default=0),
    )


class Arrivals:
    """Makes tickets of one process the short ways, under the gate.

    Attributes:
        left: What this process left when it last gave a ticket back, until that is used again.

    """

    def __init__(
        self, tickets: TicketFolder, state_file: StateFile, issuer: Issuer, usher: Usher, sweeper: Sweeper
    ) -> None:
        self.left: Left | None = None
        self._settled: MachineState | None = None
        self._since = 0
        self._tickets = tickets
        self._state_file = state_file
        self._issuer = issuer
        self._usher = usher
        self._sweeper = sweeper

    def looked_at_all(self, settled: MachineState) -> None:
        """Take note that this process has just looked the long way.

        Args:
            settled: The rules in force, which are what it sets of them.

        """
        self._settled, self._since = settled, 0

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
        state, left = self._state_file.unchanged(), self.left
        if state is None or state is not self._settled:
            return None
        full = self._tickets.remembers_too_much(names)
        spare = left.spare(names) if left is not None else None
        if left is not None and spare is not None:
            taken = self._taken(record, state)
            if taken is None:
                return None
            if full:
                self._tickets.known.clear()  # of tickets that are all gone
            return self._go_in(Scene((), 0, None, left.number, spare), left, record, taken, state)
        found = scene(names)
        if found is None or full or not alone or len(found.holding) + found.waiting >= MAX_PLAIN:
            return None
        if not found.waiting:
            return self._go_in_beside(found, record, state)
        return None if record.priority else self._join(found, record, state)

    def _taken(self, record: Record, state: MachineState) -> Record | None:
        """Return what a claim takes, None if the names do not tell whether there is so much: of memory there may be."""
        taken = self._issuer.taken(record, state)
        return None if state.real_memory and MEMORY in taken.claims else taken

    def _go_in_beside(self, found: Scene, record: Record, state: MachineState) -> Ticket | None:
        """Admit a newcomer where nobody waits, if there is room beside all that may hold."""
        left = self.left if self.left is not None and self.left.name in found.holding else None
        if left is not None:
            found = found._replace(holding=[name for name in found.holding if name != left.name])
        holders = []
        for name in found.holding:
            parts = name.split(".")
            key = f"{parts[1]}.{parts[2]}"
            known = self._tickets.known.get(key)
            if known is None or self._sweeper.was_ours(key):
                return None
            holders.append(known)
        self._since += 1
        taken = self._taken(record, state)
        if self._since > SELDOM or taken is None or not fits_beside(taken.demand(0), holders, state.capacity):
            return None
        return self._go_in(found, left, record, taken, state)

    def _go_in(
        self, found: Scene, left: Left | None, asked: Record, record: Record, state: MachineState
    ) -> Ticket | None:
        """Admit a newcomer, in what this process has left if it has left something.

        Args:
            found: What the names tell, without that.
            left: That.
            asked: What is claimed.
            record: What that takes.
            state: What the processes agree on.

        """
        demand = record.demand(max(found.highest + 1, state.next_ticket))
        if demand.number > MAX_NUMBER:
            return None
        nonce = nonce_of(record.priority)
        name = name_of(demand.number, nonce, HOLDING) + affinity.suffix(record.claims, found.holding, state.capacity)
        if left is None:
            ticket = self._issuer.issue(demand, nonce, name, record, asked)
        else:
            self.left = None  # whoever is interrupted may leave a descriptor open: then it is not to be used again
            lock = FifoLock.taken_again(f"{self._tickets.place}/{left.name}", left.identity)
            if lock is None:
                return None
            try:
                if 0 < found.spare < left.number:
                    self._tickets.write_over(f"{found.spare}{RECORD}", demand.number, record)
                else:
                    self._tickets.write(demand.number, record)
                lock.rename(f"{self._tickets.place}/{name}")  # the commit
            except BaseException:
                lock.discard()
                raise
            ticket = self._issuer.made(demand, nonce, lock, record, asked)
        self._usher.hold(ticket)
        return ticket

    def _join(self, found: Scene, asked: Record, state: MachineState) -> Ticket | None:
        """Let a newcomer wait behind one that wants the same."""
        record = self._taken(asked, state)
        if record is None or self._issuer.adapts(asked) or found.last is None:
            return None
        demand = record.demand(max(found.highest + 1, state.next_ticket))
        if excludes_its_like(demand, state.capacity) or demand.number > MAX_NUMBER:
            return None  # it may be an heir
        before = self._tickets.demand_of_dead(found.last)
        if before is None or before.units != demand.units:
            return None
        fd = self._tickets.watch(found.last)
        if fd is None:
            return None
        ticket = None
        try:
            nonce = nonce_of(record.priority)
            ticket = self._issuer.issue(demand, nonce, name_of(demand.number, nonce, WAITING), record, asked)
            self._usher.take_place(ticket, None, found.waiting, unprompted=False)
        except BaseException:
            if ticket is not None:
                ticket.withdraw()
            descriptors.close(fd)
            raise
        ticket.watches[found.last.key] = fd
        return ticket
