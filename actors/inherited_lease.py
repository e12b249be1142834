"""A lease in the worker process that inherited its descriptor: the same claims, the same capacity, another copy."""

import os
from typing import TYPE_CHECKING, Final, Self, cast

from actors.worker_messages import LeaseAt
from hostres import descriptors
from hostres.lease import Lease
from hostres.locks import FifoLock
from hostres.settings import MachineSettings
from hostres.ticket import Ticket
from hostres.tickets import Record

if TYPE_CHECKING:
    from hostres.machine import Machine


class InheritedLease(Lease):
    """The lease of the node, whose capacity stays taken until the last process that has it is gone.

    What this process forks keeps a copy: it does the node's work, and may outlive it.
    """

    @classmethod
    def at(cls, found: LeaseAt) -> Self:
        """Return the lease whose descriptor this process was started with."""
        status = os.fstat(found.fd)
        lock = FifoLock(found.place)
        lock.fd, lock.identity, lock.acquired = found.fd, (status.st_dev, status.st_ino), True
        descriptors.forget_after_fork(lock)  # the lock, not the descriptor
        record = Record(claims=found.claims, keys=(), asked_boot_ns=found.admitted_boot_ns)
        ticket = Ticket(record.demand(found.ticket), found.nonce, lock, record)
        ticket.holding, ticket.admitted_boot_ns = True, found.admitted_boot_ns
        return cls(cast("Machine", _NO_MACHINE), ticket)


class _NoMachine:
    """Nobody here keeps the books of the machine: the host does. How nice this process is, its children are too."""

    settings: Final = MachineSettings()

    def released(self, ticket: Ticket) -> None:
        """Nothing."""


_NO_MACHINE: Final = _NoMachine()


def lease_at(lease: Lease) -> LeaseAt:
    """Return what a worker process needs to know of the lease that it inherits."""
    parent = lease.as_parent
    return LeaseAt(
        fd=parent.fd,
        place=lease.place,
        ticket=parent.number,
        nonce=parent.nonce,
        claims=dict(lease.claims),
        admitted_boot_ns=lease.admitted_boot_ns,
    )
