"""A process killed at each single step of what it does under the gate: no wake-up is lost, nothing stays taken."""

import os
import select
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hostres.capacities import set_capacities
from hostres.claim_policy import ClaimPolicy
from hostres.clock import boot_ns
from hostres.machine import Machine
from hostres.settings import MachineSettings
from hostres.ticket import Ticket
from hostres.tickets import Record
from hostres.top import snapshot
from tests.hostres.support import LIMIT_S

MAX_STEPS = 200
X = {"x": 1}
CAPACITY = MachineSettings(capacity={"x": 1, "y": 1, "z": 1})
STEPS = ("open", "close", "mkfifo", "rename", "unlink", "write", "pwrite", "utime", "listdir")


class Doomed:
    """A forked process that does one thing, then another when told, and is killed at one step of that."""

    def __init__(self, step: int, before: Callable[[], Any], then: Callable[[Any], Any]) -> None:
        ready, self._go = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._go[1])
                made = before()
                os.write(ready[1], b"!")
                os.read(self._go[0], 1)
                kill_at(step)
                then(made)
            finally:
                os._exit(0)
        os.close(self._go[0])
        os.close(ready[1])
        assert os.read(ready[0], 1) == b"!"
        os.close(ready[0])

    def go(self) -> bool:
        """Let it do that; return whether it was killed."""
        os.write(self._go[1], b"!")
        os.close(self._go[1])
        _, status = os.waitpid(self.pid, 0)
        return os.WIFSIGNALED(status)


def kill_at(step: int) -> None:
    left = [step]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))


def ask(machine: Machine, claims: dict[str, int] = X) -> Ticket:
    return machine.ask(Record(claims=claims, keys=(), asked_boot_ns=boot_ns()))


def woken(machine: Machine, *tickets: Ticket) -> Ticket:
    """Look with each ticket whenever anything wakes it, until one is admitted; which is returned."""
    while True:
        poll = select.poll()
        for ticket in tickets:
            poll.register(ticket.lock.fd, select.POLLIN)
            for fd in ticket.watches.values():
                poll.register(fd, 0)
        assert poll.poll(LIMIT_S * 1000), "a wake-up was lost"
        for ticket in tickets:
            hung = ticket.poll(0)
            if hung is not None and machine.look(ticket, hung=hung):
                return ticket


def next_event(ticket: Ticket) -> Sequence[str]:
    hung = ticket.poll(LIMIT_S)
    assert hung is not None, "a wake-up was lost"
    return hung


def leave(*tickets: Ticket) -> None:
    for ticket in tickets:
        ticket.withdraw()
        ticket.unwatch()
        ticket.lock.close()


def steps(tmp_path: Path) -> Any:
    for step in range(1, MAX_STEPS):
        yield step, Machine(tmp_path / str(step), CAPACITY)
    pytest.fail("it never got through")


@pytest.mark.parametrize(("held", "least"), [(X, 5), ({"x": 1, "y": 1}, 8)], ids=["the short way", "the long way"])
def test_who_is_killed_while_it_is_admitted_is_followed_by_the_next(
    tmp_path: Path, held: dict[str, int], least: int
) -> None:
    """The short way leads by the names alone; more that has come free than is taken makes it the long one."""
    for step, machine in steps(tmp_path):
        holder = ask(machine, held)
        theirs = Machine(machine.folder, CAPACITY)
        first = Doomed(step, partial(ask, theirs), partial(woken, theirs))
        last = ask(machine)
        holder.lock.close()
        killed = first.go()
        assert woken(machine, last) is last
        leave(last)
        assert snapshot(machine.folder).tickets == ()
        if not killed:
            assert step > least
            break


def test_who_is_killed_while_it_is_let_past_the_chief_is_seen_to_end(tmp_path: Path) -> None:
    for step, machine in steps(tmp_path):
        other = ask(machine, {"y": 1, "z": 1})  # the chief is not its heir
        chief = ask(machine, {"y": 1})
        theirs = Machine(machine.folder, CAPACITY)
        newcomer = Doomed(step, lambda: X, partial(ask, theirs))
        killed = newcomer.go()
        while len(list(machine.folder.glob("t/h.*"))) > 1:  # it was in, and the chief must see that it is no more
            assert not machine.look(chief, hung=next_event(chief))
        other.lock.close()
        assert woken(machine, chief) is chief
        leave(chief)
        assert snapshot(machine.folder).tickets == ()
        if not killed:
            assert step > 8
            break


def test_who_is_killed_while_it_lets_another_doze_is_followed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostres.summons.Summons.SILENCE_S", 0.0)
    monkeypatch.setattr("hostres.summons.Summons.SLOW_S", 0.0)

    def look_often(machine: Machine, ticket: Ticket) -> None:
        while not machine.look(ticket, unprompted=True):
            pass

    for step, machine in steps(tmp_path):
        holder = ask(machine)
        silent = ask(machine)
        theirs = Machine(machine.folder, CAPACITY)
        behind = Doomed(step, partial(ask, theirs), partial(look_often, theirs))
        last = ask(machine)
        holder.lock.close()
        killed = behind.go()
        assert woken(machine, silent, last) is silent
        silent.lock.close()
        assert woken(machine, last) is last
        leave(silent, last)
        assert snapshot(machine.folder).tickets == ()
        if not killed:
            assert step > 8
            break


def test_who_is_killed_while_it_adapts_to_another_capacity_is_followed_by_the_next(tmp_path: Path) -> None:
    """Who waits for all there is gets a ticket made anew, and there may be two of one number, both dead."""
    policy = ClaimPolicy(takes={"y": {"x": "all"}}, path=tmp_path)
    settings = MachineSettings(capacity={"x": 2, "y": 1}, claims=policy)
    for step in range(1, MAX_STEPS):
        machine, theirs = (Machine(tmp_path / str(step), settings) for _ in range(2))
        holder = ask(machine, {"x": 2})
        first = Doomed(step, partial(ask, theirs, {"y": 1}), partial(woken, theirs))
        last = ask(machine)
        set_capacities(machine.folder, os.environ, {"x": 1})
        holder.lock.close()
        killed = first.go()
        assert woken(machine, last) is last
        leave(last)
        assert snapshot(machine.folder).tickets == ()
        if not killed:
            assert step > 14
            break
    else:
        pytest.fail("it never got through")
