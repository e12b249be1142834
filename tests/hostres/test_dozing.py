"""A waiter that does not move: nobody waits for it, and it keeps its place."""

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from hostres.coordinator import Admitted, NotAdmitted
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.listing import DOZING, Entry
from hostres.summons import Summons
from tests.hostres.support import LIMIT_S, Child, children, coordinator, eventually, rows, stop, waiting

WAITER = """
import hostres.coordinator, hostres.summons
hostres.summons.Summons.SILENCE_S = {silence_s}
hostres.coordinator.SAFETY_NET_S = {net_s}
coordinator = Coordinator(FOLDER)
say("asks")
try:
    lease = coordinator.lease({claims!r}, wait={wait})
except HostlerError as error:
    say(error.code)
else:
    say("held", lease.ticket, coordinator.safety_net_progress)
    hear()
    lease.release()
    say("released")
hear()
"""


@pytest.fixture(autouse=True)
def wide_safety_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise for what this process asks for."""
    monkeypatch.setattr("hostres.poller.SAFETY_NET_S", WIDE)


WIDE = (600.0, 600.0, 600.0)
"""A lost wake-up shows."""


def waiter(
    claims: dict[str, int],
    *,
    silence_s: float = 0.2,
    net_s: tuple[float, float, float] = WIDE,
    wait: float | None = None,
) -> str:
    return WAITER.format(claims=claims, silence_s=silence_s, net_s=net_s, wait=wait)


def queue_up(*claims: dict[str, int], start: Callable[[str], Child]) -> list[Child]:
    queue = []
    for number, wanted in enumerate(claims, 1):
        queue.append(start(waiter(wanted)))
        queue[-1].line()
        waiting(number)
    return queue


def dozing() -> list[int]:
    return sorted(int(path.name.split(".")[1]) for path in machine_folder(os.environ).glob("t/z.*"))


def test_a_stopped_chief_does_not_stall_the_others_and_is_first_again_once_it_moves() -> None:
    with children() as start, coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        chief = start(waiter({"x": 1}))
        chief.line()
        waiting(1)
        next_one = start(waiter({"x": 1}, silence_s=2.0, net_s=(1.0, 1.0, 60.0)))  # as it is
        next_one.line()
        waiting(2)
        stop(chief)
        asked = lease.ticket + 1
        since = time.monotonic()
        lease.release()
        word, ticket, _ = next_one.line().split()
        assert (word, int(ticket)) == ("held", asked + 1)
        assert 1.9 < time.monotonic() - since < 10
        assert dozing() == [asked]
        last = start(waiter({"x": 1}))
        last.line()
        waiting(2)
        os.kill(chief.pid, signal.SIGCONT)
        eventually(lambda: not dozing())
        next_one.tell()
        assert chief.line().split() == ["held", str(asked), "0"]
        assert last.silent()
        chief.tell()
        assert last.line().split()[2] == "0"


def test_who_stops_behind_the_chief_is_passed_over_too() -> None:
    with children() as start, coordinator(x=1, y=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        chief, stopped, last = queue_up({"y": 1}, {"x": 1}, {"x": 1}, start=start)
        stop(stopped)
        two.release()
        assert last.line().split()[0] == "held"
        assert dozing() == [two.ticket + 2]
        assert [row.state for row in rows() if row.pid == stopped.pid] == ["waiting"]
        last.tell()
        os.kill(stopped.pid, signal.SIGCONT)
        assert stopped.line().split() == ["held", str(two.ticket + 2), "0"]
        assert chief.silent()
        one.release()
        assert chief.line().split()[2] == "0"


def test_whoever_stands_behind_a_dozing_one_watches_whom_that_one_watched() -> None:
    with children() as start, coordinator(x=1, y=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        chief, stopped, last = queue_up({"y": 1}, {"x": 1}, {"y": 1}, start=start)
        stop(stopped)
        two.release()
        eventually(lambda: dozing() == [two.ticket + 2])
        chief.kill()
        waiting(2)
        one.release()
        assert last.line().split()[2] == "0"


def test_a_stopped_waiter_that_does_not_fit_is_let_alone_and_others_go_past_it() -> None:
    with children() as start, coordinator(x=2) as machine:
        one, two = machine.lease({"x": 1}), machine.lease({"x": 1})
        (chief,) = queue_up({"x": 2}, start=start)
        small = start(waiter({"x": 1}, net_s=(1.0, 1.0, 60.0)))
        small.line()
        waiting(2)
        stop(chief)
        one.release()
        assert small.line().split()[0] == "held"
        assert dozing() == []
        small.tell()
        two.release()
        os.kill(chief.pid, signal.SIGCONT)
        assert chief.line().split()[2] == "0"


def test_behind_a_stopped_chief_the_next_one_tells_those_that_may_go() -> None:
    with children() as start, coordinator(x=1, y=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        (chief,) = queue_up({"y": 1}, start=start)
        next_one = start(waiter({"y": 1}, net_s=(1.0, 1.0, 60.0)))
        next_one.line()
        waiting(2)
        last = start(waiter({"x": 1}))
        last.line()
        waiting(3)
        stop(chief)
        two.release()
        other = machine.lease({})  # sweeps what the chief would have seen
        assert last.line().split()[2] == "0"
        other.release()
        one.release()


def test_a_dozing_waiter_holds_nothing_back_from_whoever_comes_new() -> None:
    with children() as start, coordinator(x=1, y=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        _, stopped = queue_up({"y": 1}, {"x": 1}, start=start)
        stop(stopped)
        two.release()
        eventually(lambda: dozing() == [two.ticket + 2])
        machine.lease({"x": 1}, wait=0).release()
        one.release()


def test_a_dozing_waiter_that_is_killed_leaves_no_trace() -> None:
    with children() as start, coordinator(x=1, y=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        chief, stopped = queue_up({"y": 1}, {"x": 1}, start=start)
        stop(stopped)
        two.release()
        eventually(lambda: dozing() == [two.ticket + 2])
        stopped.kill()
        eventually(lambda: [row.pid for row in rows("waiting")] == [chief.pid])
        one.release()
        chief.line()
        machine.lease({}).release()
        assert dozing() == []


def test_a_dozing_waiter_whose_time_is_over_leaves_no_trace() -> None:
    with children() as start, coordinator(x=1, y=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        queue_up({"y": 1}, start=start)
        stopped = start(waiter({"x": 1}, wait=0.5))
        stopped.line()
        waiting(2)
        stop(stopped)
        two.release()
        eventually(lambda: dozing() == [two.ticket + 2])
        newcomer = machine.lease({"x": 1}, wait=0)
        os.kill(stopped.pid, signal.SIGCONT)
        assert stopped.line() == Code.WAIT_TIMEOUT.value
        assert not list(machine_folder(os.environ).glob(f"t/?.{two.ticket + 2}.*"))
        newcomer.release()
        one.release()


def test_a_dozing_ticket_removed_by_hand_is_told_so() -> None:
    with children() as start, coordinator(x=1, y=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        _, stopped = queue_up({"y": 1}, {"x": 1}, start=start)
        stop(stopped)
        two.release()
        eventually(lambda: dozing() == [two.ticket + 2])
        next(machine_folder(os.environ).glob("t/z.*")).unlink()
        os.kill(stopped.pid, signal.SIGCONT)
        assert stopped.line() == Code.OWNERSHIP_LOST.value
        one.release()


def test_an_ask_that_never_blocks_may_doze_and_withdraw(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process lives, but its poll thread is kept busy by a callback."""
    monkeypatch.setattr(Summons, "SILENCE_S", 0.2)
    with children() as start, coordinator(x=1, y=1, z=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        (chief,) = queue_up({"y": 1}, start=start)
        told: list[object] = []
        slow = machine.ask({"x": 1}, notify=told.append)
        waiting(2)
        busy, over = threading.Event(), threading.Event()

        def block(answer: Admitted | NotAdmitted) -> None:
            busy.set()
            over.wait(LIMIT_S)
            assert isinstance(answer, Admitted)
            answer.lease.release()

        machine.ask({"z": 1}, notify=block)
        assert busy.wait(LIMIT_S)
        two.release()
        eventually(dozing)
        slow.withdraw()
        assert dozing() == []
        over.set()
        one.release()
        assert chief.line().split()[2] == "0"
        assert told == []


def test_who_is_told_and_does_not_move_is_silent_after_two_seconds() -> None:
    now = 100.0
    summons = Summons(clock=lambda: now)
    one, two = Entry(1, "a", "w", "w.1.a"), Entry(2, "b", "w", "w.2.b")
    assert summons.due() is None
    summons.note([one, two], [one])
    assert summons.due() == 102.0
    now = 101.9
    assert summons.silent([one, two]) == []
    summons.note([one, two], [one, two])
    now = 102.0
    assert summons.silent([one, two]) == [one]
    summons.note([two], [])
    assert summons.due() == 103.9
    summons.note([one, two], [one])
    assert summons.silent([one]) == []  # it could not go in between
    assert Entry(1, "a", DOZING, "z.1.a").key == one.key


def test_a_ticket_that_is_renamed_while_it_withdraws_is_gone_under_either_name(monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = os.unlink
    renamed: list[str] = []

    def late(path: str) -> None:
        if not renamed:
            renamed.append(path.replace("/w.", "/z."))
            os.rename(path, renamed[0])
        unlink(path)

    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        monkeypatch.setattr("hostres.ticket.os.unlink", late)
        with pytest.raises(HostlerError):
            machine.lease({"x": 1}, wait=0.01)
        monkeypatch.setattr("hostres.ticket.os.unlink", unlink)
        assert len(renamed) == 1
        assert dozing() == []
