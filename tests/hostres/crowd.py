"""Tickets of one or several processes, made and moved by hand, so that each step can be seen."""

import os
import select
from pathlib import Path

from hostres.clock import boot_ns
from hostres.folders import machine_folder
from hostres.machine import Machine
from hostres.nesting import Asker, Parent
from hostres.settings import MachineSettings
from hostres.summons import Summons
from hostres.ticket import Ticket
from hostres.tickets import Record


class Crowd:
    """They are polled by nobody else, and see a clock of their own for those that they have told something."""

    def __init__(
        self, folder: Path | None = None, capacity: dict[str, int] | None = None, *, processes: int = 1
    ) -> None:
        self.folder = folder or machine_folder(os.environ)
        settings = MachineSettings(capacity=capacity or {"x": 2, "y": 1, "z": 1})
        self.machines = [Machine(self.folder, settings) for _ in range(processes)]
        self.machine = self.machines[0]
        self.tickets: dict[Ticket, Machine] = {}
        self.now_s = 0.0

    def ask(
        self,
        claims: dict[str, int],
        *,
        by: int = 0,
        under: Ticket | None = None,
        keys: tuple[str, ...] = (),
        waited_ns: int = 0,
        priority: int = 0,
    ) -> Ticket:
        parents = [Parent(number=under.number, nonce=under.nonce)] if under else []
        record = Record(claims=claims, keys=keys, asked_boot_ns=boot_ns() - waited_ns, priority=priority)
        ticket = self.machines[by].ask(record, asker=Asker(parents=parents))
        ticket.summons = Summons(clock=lambda: self.now_s)
        ticket.roused = Summons(clock=lambda: self.now_s)
        self.tickets[ticket] = self.machines[by]
        return ticket

    def look(self, ticket: Ticket) -> bool:
        """Look as the ticket would that is woken by whatever has happened to it, the long way if it is an heir."""
        hung = ticket.poll(0)
        if not hung and ticket.only_lives():
            return False
        return self.tickets[ticket].look(ticket, hung=hung or ())

    def inherits(self, ticket: Ticket) -> bool:
        """Do what a waiter does first that is woken."""
        return self.tickets[ticket].inherit(ticket, ticket.poll(0) or ())

    def woken(self, ticket: Ticket) -> bool | None:
        """Do what a waiter does that is woken; None if it is not."""
        hung = None if ticket.holding else ticket.poll(0)
        if hung is None:
            return None
        machine = self.tickets[ticket]
        if not hung and ticket.only_lives():
            return False
        return bool(hung and machine.inherit(ticket, hung)) or machine.look(ticket, hung=hung)

    def leave(self, ticket: Ticket) -> None:
        if not ticket.withdraw():
            ticket.lock.close()
            self.tickets[ticket].released(ticket)
        else:
            ticket.unwatch()

    def close(self) -> None:
        for ticket in self.tickets:
            ticket.withdraw()
            ticket.unwatch()
            ticket.lock.close()


def told(ticket: Ticket) -> bool:
    """Whether it has not taken a byte of those who poked it."""
    return bool(select.select([ticket.lock.fd], [], [], 0)[0])
