"""Ctrl-C at any moment: whatever a program was doing, it does not keep others from deciding."""

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from hostres.clock import boot_ns
from hostres.errors import Code, HostlerError
from hostres.gate import Gate
from hostres.machine import Machine
from hostres.settings import MachineSettings
from hostres.ticket import Ticket
from hostres.tickets import Record
from tests.hostres.support import LIMIT_S

X = {"x": 1}
CAPACITY = MachineSettings(capacity=X)
MAX_MOMENTS = 2000


def interrupted(moment: int, act: Callable[[], object]) -> bool:
    """Do something and press Ctrl-C at one moment of it; return whether it was over before.

    Python handles signals as one of its functions begins and after a call into C, which are what a profiler is told of.
    """
    left = moment

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_return", "c_exception")
        if left == 0:
            left = -1
            raise KeyboardInterrupt

    try:
        sys.setprofile(profile)
        act()
        sys.setprofile(None)
    except KeyboardInterrupt:
        sys.setprofile(None)  # the frames still stand, as in a program that keeps the exception
        return False
    finally:
        sys.setprofile(None)
    return left > 0  # else it came in the middle of a `__del__`, which tells nobody


def is_unlocked(place: str) -> bool:
    """Return whether another process may decide."""
    fd = os.open(place, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def is_free(gate: Gate) -> bool:
    """Return whether another process, and another thread of this one, may decide."""
    entered = threading.Event()
    thread = threading.Thread(target=gate.hold, args=(time.monotonic() + LIMIT_S, entered.set), daemon=True)
    if is_unlocked(gate.place):
        thread.start()
        thread.join()
    return entered.is_set()


def ask(machine: Machine) -> Ticket:
    return machine.ask(Record(claims=X, keys=(), asked_boot_ns=boot_ns()))


@pytest.mark.filterwarnings("ignore:the lock:ResourceWarning")  # of a ticket that was never handed out
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # interrupted as one is dropped
@pytest.mark.parametrize("comes_back", [False, True], ids=["the long way", "the short way"])
def test_who_is_interrupted_while_it_asks_leaves_the_gate_open_and_holds_nothing(
    tmp_path: Path, *, comes_back: bool
) -> None:
    machine = Machine(tmp_path / "m", CAPACITY)

    def come_and_go() -> bool:
        ticket = ask(machine)
        ticket.lock.close()
        if comes_back:
            machine.released(ticket)
        return ticket.holding

    for moment in range(1, MAX_MOMENTS):
        assert come_and_go()
        assert come_and_go()
        done = interrupted(moment, come_and_go)
        assert is_free(machine._gate), moment
        if done:
            break
    assert 50 < moment < MAX_MOMENTS - 1
    assert come_and_go()


@pytest.mark.filterwarnings("ignore:the lock:ResourceWarning")
def test_who_is_interrupted_while_it_looks_leaves_the_gate_open(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "m", CAPACITY)
    for moment in range(1, MAX_MOMENTS):
        holder, waiter = ask(machine), ask(machine)
        holder.lock.close()
        hung = waiter.poll(0)
        assert hung
        done = interrupted(moment, lambda: machine.look(waiter, hung=hung))  # noqa: B023  called at once
        assert is_free(machine._gate), moment
        waiter.withdraw()
        waiter.unwatch()
        waiter.lock.close()
        if done:
            break
    assert 50 < moment < MAX_MOMENTS - 1


def test_who_is_interrupted_while_another_thread_decides_takes_nothing_from_that(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    gate = Gate(f"{tmp_path}/gate")
    inside, over = threading.Event(), threading.Event()

    def decide() -> None:
        inside.set()
        over.wait()

    other = threading.Thread(target=gate.hold, args=(None, decide), daemon=True)
    other.start()
    assert inside.wait(LIMIT_S)
    for moment in range(1, MAX_MOMENTS):
        try:
            assert not interrupted(moment, lambda: gate.hold(0.0, lambda: None))
        except HostlerError:
            break  # it got as far as to give up
        assert not is_unlocked(gate.place)
    assert moment > 3
    over.set()
    other.join()
    assert is_free(gate)


def test_a_signal_handler_that_asks_while_its_thread_decides_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    gate = Gate(f"{tmp_path}/gate")
    with pytest.raises(HostlerError, check=lambda error: error.code is Code.CONFLICT):
        gate.hold(None, gate.hold, None, lambda: None)
    assert is_free(gate)
    with pytest.raises(HostlerError, check=lambda error: error.code is Code.CONFLICT):
        gate.hold(None, gate.enter)
    assert is_free(gate)
