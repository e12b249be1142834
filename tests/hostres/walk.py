"""A random walk through what processes may do that ask, hold, leave, die and look, also while somebody decides."""

import contextlib
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from hostres.errors import HostlerError
from hostres.queue import fits_beside
from hostres.survey import survey
from hostres.ticket import Ticket
from hostres.usher import Usher
from tests.hostres.crowd import Crowd
from tests.hostres.support import excess


class Walk:
    """Processes that ask, hold, leave, die and look in a random order, heirs also while somebody decides."""

    def __init__(self, folder: Path, seed: int, *, alike: bool = False) -> None:
        self.random = random.Random(seed)
        self.capacity = {"x": self.random.randint(1, 3), "y": self.random.randint(1, 2)}
        if alike:
            self.capacity = {"x": max(2, self.capacity["x"]), "y": 2}
        self.crowd = Crowd(folder, self.capacity, processes=3)
        self.plain = self.random.random() < 0.7
        self.moving = True
        kinds = [{"x": 1}, {"x": self.capacity["x"]}, {"y": 1}, {"x": 1, "y": 1}, {"x": self.capacity["x"], "y": 1}]
        self.kinds = self.random.choices(kinds, k=self.random.randint(1, 5))
        if alike:
            self.kinds = [{"x": 1}] * 4 + self.random.choice([[], [{"y": 1}], [{"x": self.capacity["x"]}]])
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

    def check_order(self, ticket: Ticket) -> None:
        """Nobody goes before an older one that wants the same, but where there is room for that one too."""
        if ticket.parents or ticket.demand.priority:
            return
        held = [*(other.demand for other in self.holding() if not other.parents), ticket.demand]
        for older in self.waiting():
            plain = not (older.parents or older.demand.priority or older.inheritance)
            if plain and older.number < ticket.number and older.demand.units == ticket.demand.units:
                dozes = not os.path.exists(older.lock.place)
                assert dozes or fits_beside(older.demand, held, self.capacity), f"{ticket.key} before {older.key}"

    def meanwhile(self) -> None:
        """Let any heir move whose time has come, and any holder leave, as they need no gate for that."""
        for ticket in self.holding():
            if self.random.random() < 0.1:
                ticket.lock.close()
        for ticket in self.waiting():
            if self.random.random() < 0.5 and not ticket.mutex.locked():
                self.inherits(ticket)


def walk_all(
    seeds: Iterable[int], folder: Path, monkeypatch: pytest.MonkeyPatch, *, alike: bool = False, steps: int = 40
) -> int:
    """Walk from each seed, with others that move between any two steps of who decides; return how many inherited."""
    walk: Walk | None = None
    busy = False

    def with_others(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal busy
            if walk is not None and walk.moving and not busy and walk.random.random() < 0.3:
                busy = True
                try:
                    walk.meanwhile()
                finally:
                    busy = False
            return real(*arguments, **named)

        return call

    def in_order(usher: Usher, ticket: Ticket, cpus: str) -> None:
        assert walk is not None
        walk.check_order(ticket)
        admit(usher, ticket, cpus)

    admit = Usher.admit
    monkeypatch.setattr(Usher, "admit", in_order)
    for name in ("rename", "listdir", "unlink", "mkfifo", "open"):
        monkeypatch.setattr(os, name, with_others(getattr(os, name)))
    inherited = 0
    for seed in seeds:
        walk = Walk(folder / str(seed), seed, alike=alike)
        monkeypatch.setenv("HOSTLER_MACHINE_DIR", str(walk.crowd.folder))
        try:
            inherited += walk.run(steps)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            done, walk = walk, None
            done.crowd.close()
    return inherited
