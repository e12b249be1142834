"""How a ticket of this process comes to be: what its claim takes, and its files."""

from typing import TYPE_CHECKING

from hostres.claims import check_claims
from hostres.listing import RECORD
from hostres.locks import FifoLock
from hostres.nesting import room_of
from hostres.queue import Demand
from hostres.state import MachineState
from hostres.ticket import Ticket
from hostres.tickets import Record, TicketFolder

if TYPE_CHECKING:
    from hostres.claim_policy import ClaimPolicy


class Issuer:
    """Makes tickets.

    Attributes:
        policy: What claims take beside what they name, None if nothing.

    """

    def __init__(self, tickets: TicketFolder, policy: "ClaimPolicy | None") -> None:
        self.policy = policy
        self._tickets = tickets

    def taken(self, record: Record, state: MachineState, held: Demand | None = None) -> Record:
        """Return the record of what a claim takes; see `hostres.claim_policy`.

        Args:
            record: What is claimed.
            state: What the processes agree on.
            held: What the lease holds under which it is claimed, None if it is claimed on the machine.

        Raises:
            HostlerError: `invalid-claims`.

        """
        check_claims(record.claims, state.capacity if held is None else room_of(state.capacity, held))
        if self.policy is None:
            return record
        self.policy.check(state.capacity)
        return record._replace(claims=self.policy.physical(record.claims, held.units if held else state.capacity))

    def adapts(self, asked: Record) -> bool:
        """Return whether what a claim takes follows what there is, as long as it waits."""
        return self.policy is not None and self.policy.takes_all(asked.claims)

    def issue(
        self, demand: Demand, nonce: str, name: str, record: Record, asked: Record, parents: tuple[int, ...] = ()
    ) -> Ticket:
        """Make a ticket and its files, the record first; under the gate.

        Args:
            demand: What it claims, as the queue sees it.
            nonce: Its own.
            name: Of its FIFO, which tells its state.
            record: What it claims, as it is written.
            asked: What was asked for, before that was known.
            parents: Numbers of the tickets it was asked for under, the nearest first.

        Raises:
            OSError: A file cannot be made; nothing is left.

        """
        self._tickets.write(demand.number, record)
        try:
            lock = FifoLock.born(self._tickets.place, name)
        except BaseException:
            self._tickets.sweep_name(f"{demand.number}{RECORD}")
            raise
        return self.made(demand, nonce, lock, record, asked, parents)

    def made(
        self, demand: Demand, nonce: str, lock: FifoLock, record: Record, asked: Record, parents: tuple[int, ...] = ()
    ) -> Ticket:
        """Return the ticket whose files there are; see `issue`."""
        ticket = Ticket(demand, nonce, lock, record, parents)
        if self.adapts(asked):
            ticket.adapts = asked.claims
        self._tickets.known[ticket.key] = demand
        return ticket
