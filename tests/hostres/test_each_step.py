"""A full disk, or no descriptor left, at each single step of an ask and of a hand-over."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostres.clock import boot_ns
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from hostres.machine import Machine
from hostres.settings import MachineSettings
from hostres.ticket import Ticket
from hostres.tickets import Record
from hostres.top import snapshot

MAX_STEPS = 200
X = {"x": 1}


class Failing:
    """Makes one operation of the system fail, or all from one on.

    Attributes:
        reached: Whether there were as many operations as that.

    """

    def __init__(self, patch: pytest.MonkeyPatch, code: int, step: int, *, ever_after: bool) -> None:
        self.reached = False
        self._code, self._left, self._ever_after = code, step, ever_after
        if code == errno.EMFILE:
            for name in ("open", "listdir", "eventfd"):
                patch.setattr(os, name, self._counted(getattr(os, name), name))
        else:
            for name in ("open", "mkdir", "mkfifo", "rename", "write", "pwrite"):
                patch.setattr(os, name, self._counted(getattr(os, name), name))

    def _counted(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if self._code == errno.ENOSPC and _needs_no_space(name, arguments):
                return real(*arguments, **named)
            self._left -= 1
            if self._left == 0 or (self._left < 0 and self._ever_after):
                self.reached = True
                raise OSError(self._code, os.strerror(self._code))
            return real(*arguments, **named)

        return call


@contextlib.contextmanager
def unavailable_at_worst() -> Iterator[None]:
    try:
        yield
    except HostlerError as error:
        if error.code is not Code.UNAVAILABLE:
            raise


def _needs_no_space(name: str, arguments: tuple[Any, ...]) -> bool:
    if name == "write":
        return stat.S_ISFIFO(os.fstat(arguments[0]).st_mode)
    return name == "open" and not arguments[1] & os.O_CREAT


def descriptors() -> set[str]:
    return {name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


each = pytest.mark.parametrize(
    ("code", "ever_after"),
    [(errno.ENOSPC, False), (errno.ENOSPC, True), (errno.EMFILE, False), (errno.EMFILE, True)],
)


@each
def test_an_ask_that_fails_at_any_step_leaves_nothing(tmp_path: Path, code: int, *, ever_after: bool) -> None:
    for step in range(1, MAX_STEPS):
        folder = tmp_path / str(step)
        before = len(descriptors())
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, code, step, ever_after=ever_after)
            with unavailable_at_worst():
                Coordinator(folder, explicit=X).lease(X, wait=0).release()
        assert len(descriptors()) <= before + 1  # the gate stays open
        with Coordinator(folder, explicit=X) as machine:
            machine.lease(X, wait=0).release()
        assert not list((folder / "t").glob(".new.*"))
        if not failing.reached:
            break
    assert 5 < step < MAX_STEPS - 1


@each
@pytest.mark.parametrize("times", [1, 2])
def test_who_comes_back_and_fails_at_any_step_leaves_nothing(
    tmp_path: Path, code: int, times: int, *, ever_after: bool
) -> None:
    """It takes the files again that it left, which are nobody's if it does not get to the end."""
    for step in range(1, MAX_STEPS):
        folder = tmp_path / str(step)
        with Coordinator(folder, explicit=X) as machine:
            for _ in range(times):
                machine.lease(X, wait=0).release()
            before = len(descriptors())
            with pytest.MonkeyPatch.context() as patch:
                failing = Failing(patch, code, step, ever_after=ever_after)
                with unavailable_at_worst():
                    machine.lease(X, wait=0).release()
            assert len(descriptors()) <= before
            assert snapshot(folder).tickets == ()
            machine.lease(X, wait=0).release()
            assert len(list((folder / "t").iterdir())) <= 3  # the last ticket's two, and the record before
        if not failing.reached:
            break
    assert 2 < step < MAX_STEPS - 1


@each
def test_a_hand_over_that_fails_at_any_step_is_made_good_by_whoever_is_next(
    tmp_path: Path, code: int, *, ever_after: bool
) -> None:
    """Field case 39: a full disk in a release."""
    for step in range(1, MAX_STEPS):
        folder = tmp_path / str(step)
        mine, other = (Machine(folder, MachineSettings(capacity=X)) for _ in range(2))
        holder, first, last = (machine.ask(record()) for machine in (other, mine, other))
        holder.lock.close()
        before, admitted = len(descriptors()), False
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, code, step, ever_after=ever_after)
            with unavailable_at_worst():
                admitted = look(mine, first)
        if not admitted:
            assert failing.reached
            leave(first)
            assert len(descriptors()) <= before
            assert look(other, last)
        else:
            assert not look(other, last)
            leave(first)
            assert look(other, last)
        assert [row.ticket for row in snapshot(folder).tickets] == [last.number]
        leave(last)
        if not failing.reached:
            break
    assert step < MAX_STEPS - 1


@each
def test_nobody_is_admitted_past_the_chief_unless_it_was_told(tmp_path: Path, code: int, *, ever_after: bool) -> None:
    """It must watch the new holder, else nobody sees that one leave."""
    for step in range(1, MAX_STEPS):
        mine, other = (
            Machine(tmp_path / str(step), MachineSettings(capacity={"x": 1, "y": 1, "z": 1})) for _ in range(2)
        )
        holder, chief = other.ask(record({"y": 1, "z": 1})), other.ask(record({"y": 1}))
        chief.lock.drain()
        newcomer = None
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, code, step, ever_after=ever_after)
            with unavailable_at_worst():
                newcomer = mine.ask(record())
        if newcomer is not None:
            assert newcomer.holding
            assert look_at_events(other, chief)
            leave(newcomer)
            assert look_at_events(other, chief)
        for ticket in (chief, holder):
            leave(ticket)
        if not failing.reached:
            break
    assert step < MAX_STEPS - 1


def look_at_events(machine: Machine, ticket: Ticket) -> bool:
    """Return whether anything woke it."""
    hung = ticket.poll(0)
    if hung is not None:
        machine.look(ticket, hung=hung)
    return hung is not None


def record(claims: dict[str, int] = X) -> Record:
    return Record(claims=claims, keys=(), asked_boot_ns=boot_ns())


def look(machine: Machine, ticket: Ticket) -> bool:
    """Look as whoever is woken does; unprompted would find everything."""
    hung = ticket.poll(0)
    return hung is not None and machine.look(ticket, hung=hung)


def leave(ticket: Ticket) -> None:
    ticket.withdraw()
    ticket.unwatch()
    ticket.lock.close()
