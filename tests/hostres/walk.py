"""A random walk through what processes may do that ask, hold, leave, die and look, also while somebody decides."""

import contextlib
import random
from pathlib import Path

from hostres.errors import HostlerError
from hostres.survey import survey
from hostres.ticket import Ticket
from tests.hostres.crowd import Crowd
from tests.hostres.support import excess


class Walk:
    """Processes that ask, hold, leave, die and look in a random order, heirs also while somebody decides."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.capacity = {"x": self.random.randint(1, 3), "y": self.random.randint(1, 2)}
        self.crowd = Crowd(folder, self.capacity, processes=3)
        self.plain = self.random.random() < 0.7
        self.moving = True
        kinds = [{"x": 1}, {"x": self.capacity["x"]}, {"y": 1}, {"x": 1, "y": 1}, {"x": self.capacity["x"], "y": 1}]
        self.kinds = self.random.choices(kinds, k=self.random.randint(1, 5))
        self.inherited = 0

    def run(self, steps: int) -> int:
        """Return how many have inherited."""
        for _ in range(steps):
            self.step()
            assert excess(self.capacity) == {}
        self.moving = False
        self.settle()
        assert excess(self.capacity) == {}
        found = survey(self.crowd.folder)
        assert found is not None
        forgotten = [wait.number for wait in found.waits().values() if not wait.short]
        assert forgotten == []
        return self.inherited

    def settle(self) -> None:
        """Let all look that anything wakes, until nothing does."""
        for _ in range(10):
            while [ticket for ticket in self.waiting() if self.crowd.woken(ticket) is not None]:
                pass
            # whoever has told somebody to go looks again in two seconds, as that one may be stopped, or dead
            told = [ticket for ticket in self.waiting() if ticket.summons.told]
            if not told:
                return
            for ticket in told:
                self.crowd.tickets[ticket].look(ticket, unprompted=True)

    def waiting(self) -> list[Ticket]:
        return [ticket for ticket in self.crowd.tickets if not ticket.holding and not ticket.withdrawn]

    def holding(self) -> list[Ticket]:
        return [ticket for ticket in self.crowd.tickets if ticket.holding and ticket.lock.fd >= 0]

    def inherits(self, ticket: Ticket) -> bool:
        done = self.crowd.inherits(ticket)
        self.inherited += done
        return done

    def step(self) -> None:
        choice = self.random.random()
        waiting, holding = self.waiting(), self.holding()
        if choice < 0.35 and len(waiting) < 6:
            claims = self.random.choice(self.kinds)
            priority, under = 0, None
            if not self.plain and self.random.random() < 0.3:
                priority = self.random.choice([0, 1])
                under = self.random.choice(holding) if holding and not priority else None
            with contextlib.suppress(HostlerError):  # more than the host has, or a wait for oneself
                self.crowd.ask(claims, by=self.random.randrange(3), priority=priority, under=under)
        elif choice < 0.6 and holding:
            self.crowd.leave(self.random.choice(holding))
        elif choice < 0.65 and waiting:
            self.crowd.leave(self.random.choice(waiting))
        elif choice < 0.68 and waiting:
            ticket = self.random.choice(waiting)
            for _ in range(self.random.randint(1, 3)):
                if not ticket.holding:
                    self.crowd.tickets[ticket].look(ticket, unprompted=True)
        elif waiting:
            ticket = self.random.choice(waiting)
            if not self.inherits(ticket):
                self.crowd.woken(ticket)

    def meanwhile(self) -> None:
        """Let any heir move whose time has come, and any holder leave, as they need no gate for that."""
        for ticket in self.holding():
            if self.random.random() < 0.1:
                ticket.lock.close()
        for ticket in self.waiting():
            if self.random.random() < 0.5 and not ticket.mutex.locked():
                self.inherits(ticket)
