"""The hand-over: in order, driven by events, and whole whatever is killed when."""

import os
import select
import signal
import threading
import time
from collections.abc import Callable

import pytest

from hostres.coordinator import Admitted, NotAdmitted
from hostres.errors import HostlerError
from hostres.folders import machine_folder
from hostres.poller import SAFETY_NET_S
from hostres.top import snapshot
from tests.hostres.support import LIMIT_S, Child, children, coordinator, eventually, holder, rows, waiting

REPORTER = """
import hostres.coordinator
hostres.coordinator.SAFETY_NET_S = (600.0, 600.0, 600.0)  # a lost wake-up shows
coordinator = Coordinator(FOLDER)
say("asks")
lease = coordinator.lease({claims!r})
say("held", lease.ticket, coordinator.safety_net_progress, coordinator.machine.looks)
hear()
lease.release()
say("released")
hear()
"""


def reporter(claims: dict[str, int]) -> str:
    return REPORTER.format(claims=claims)


def queue_up(start: Callable[..., Child], count: int, claims: dict[str, int]) -> list[Child]:
    queue = []
    for number in range(1, count + 1):
        queue.append(start(reporter(claims)))
        assert queue[-1].line() == "asks"
        waiting(number)
    return queue


def test_equal_claims_of_many_processes_go_strictly_in_order_of_arrival() -> None:
    with children() as start, coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        queue = queue_up(start, 5, {"x": 1})
        lease.release()
        for place, child in enumerate(queue):
            word, ticket, progress, _ = child.line().split()
            assert (word, int(ticket), progress) == ("held", lease.ticket + 1 + place, "0")
            assert all(later.silent() for later in queue[place + 1 :])
            child.tell()


def test_a_waiter_killed_in_the_middle_leaves_no_trace() -> None:
    with children() as start, coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        first, middle, last = queue_up(start, 3, {"x": 1})
        middle.kill()
        waiting(2)
        lease.release()
        assert first.line().startswith("held")
        first.tell()
        word, _, progress, _ = last.line().split()
        assert (word, progress) == ("held", "0")
        last.tell()
        last.line()
        machine.lease({"x": 1}, wait=LIMIT_S).release()
        assert [row.ticket for row in rows()] == []
        machine.lease({}).release()
        assert len(list(machine_folder(os.environ).glob("t/[wn].*"))) == 0


def test_when_the_chief_is_killed_its_successor_watches_the_holders() -> None:
    with children() as start, coordinator(x=1) as machine:
        first = start(holder({"x": 1}, explicit={"x": 1}))
        first.line()
        chief, second, third = queue_up(start, 3, {"x": 1})
        chief.kill()
        waiting(2)
        first.kill()
        assert second.line().split()[2] == "0"
        second.kill()
        assert third.line().split()[2] == "0"
        assert machine.safety_net_progress == 0


def test_a_release_wakes_one_process_or_two_whatever_the_length_of_the_queue() -> None:
    with children() as start, coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        queue = queue_up(start, 8, {"x": 1})
        lease.release()
        for child in queue:
            # itself on becoming the chief and on the hang-up, and perhaps once for the holder before it
            assert int(child.line().split()[3]) <= 4
            child.tell()


def test_who_may_go_beside_an_older_waiter_is_told_by_the_chief() -> None:
    with children() as start, coordinator(x=2, y=1) as machine:
        one, two = machine.lease({"x": 1, "y": 1}), machine.lease({"x": 1})
        (big,) = queue_up(start, 1, {"x": 2})
        small = start(reporter({"x": 1}))
        small.line()
        waiting(2)
        two.release()
        assert small.line().split()[2] == "0"
        assert big.silent()
        small.tell()
        one.release()
        assert big.line().split()[2] == "0"


def test_the_chief_watches_whoever_is_admitted_past_it() -> None:
    """At once, as the first one is, or after a wait, as the second: else nobody would see them leave."""
    with children() as start, coordinator(x=2, y=1) as machine:
        lease = machine.lease({"y": 1})
        (chief,) = queue_up(start, 1, {"y": 1})
        newcomer = machine.lease({"x": 1})
        first = start(reporter({"x": 2}))
        first.line()
        waiting(2)
        newcomer.release()
        assert first.line().split()[2] == "0"
        second = start(reporter({"x": 1}))
        second.line()
        waiting(2)
        third = start(reporter({"x": 2}))
        third.line()
        waiting(3)
        first.tell()
        for child in (second, third):
            assert child.line().split()[2] == "0"
            child.tell()
        assert chief.silent()
        lease.release()
        assert chief.line().split()[2] == "0"


def test_who_becomes_the_chief_watches_all_holders() -> None:
    with children() as start, coordinator(x=2) as machine:
        one, two = machine.lease({"x": 1}), machine.lease({"x": 1})
        first, second = queue_up(start, 2, {"x": 1})
        one.release()
        assert first.line().startswith("held")
        two.release()
        assert second.line().split()[2] == "0"


def test_a_dead_waiter_frees_those_far_behind_it() -> None:
    with children() as start, coordinator(x=1, y=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        chief = start(reporter({"y": 1}))
        chief.line()
        waiting(1)
        stopped = start(reporter({"x": 1}))
        stopped.line()
        waiting(2)
        both = start(reporter({"x": 1, "y": 1}))
        both.line()
        waiting(3)
        last = start(reporter({"x": 1}))
        last.line()
        waiting(4)
        os.kill(stopped.pid, signal.SIGSTOP)
        two.release()
        stopped.kill()
        assert last.line().split()[2] == "0"
        assert chief.silent()
        assert both.silent()
        one.release()


def test_a_waiter_that_withdraws_although_it_might_have_gone_frees_those_far_behind_it() -> None:
    with children() as start, coordinator(x=1, y=1, z=1) as machine:
        one, two = machine.lease({"y": 1}), machine.lease({"x": 1})
        (chief,) = queue_up(start, 1, {"y": 1})
        told: list[object] = []
        slow = machine.ask({"x": 1}, notify=told.append)
        waiting(2)
        both = start(reporter({"x": 1, "y": 1}))
        both.line()
        waiting(3)
        last = start(reporter({"x": 1}))
        last.line()
        waiting(4)
        busy, over = threading.Event(), threading.Event()

        def block(answer: Admitted | NotAdmitted) -> None:
            assert isinstance(answer, Admitted)
            answer.lease.release()
            busy.set()
            over.wait(LIMIT_S)

        machine.ask({"z": 1}, notify=block)  # keeps the poll thread busy
        assert busy.wait(LIMIT_S)
        two.release()
        assert slow.ticket is not None
        assert select.select([slow.ticket.lock.fd], [], [], LIMIT_S)[0]  # it is told that it may go
        slow.withdraw()
        assert last.line().split()[2] == "0"
        assert told == []
        assert chief.silent()
        assert both.silent()
        over.set()
        one.release()


def test_a_dead_waiter_that_would_have_fitted_frees_those_behind_it() -> None:
    with children() as start, coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        first, last = queue_up(start, 2, {"x": 1})
        os.kill(first.pid, signal.SIGSTOP)
        lease.release()
        waiting(2)  # the first may go but does not move; it keeps its place
        assert last.silent()
        first.kill()
        assert last.line().split()[2] == "0"


def test_a_stopped_holder_keeps_what_it_holds() -> None:
    with children() as start, coordinator(x=1) as machine:
        child = start(holder({"x": 1}, explicit={"x": 1}))
        child.line()
        os.kill(child.pid, signal.SIGSTOP)
        with pytest.raises(HostlerError):
            machine.lease({"x": 1}, wait=0.1)
        os.kill(child.pid, signal.SIGCONT)
        child.tell()
        machine.lease({"x": 1}, wait=LIMIT_S).release()


def test_a_hang_up_updates_the_average_turn_and_an_old_corpse_does_not() -> None:
    with children() as start, coordinator(x=1) as machine:
        machine.lease({"x": 1}).release()
        machine.lease({"x": 1}).release()
        assert snapshot(machine_folder(os.environ)).turnaround_s is None
        child = start(holder({"x": 1}, explicit={"x": 1}))
        child.line()
        admitted = threading.Event()

        def notify(answer: Admitted | NotAdmitted) -> None:
            assert isinstance(answer, Admitted)
            answer.lease.release()
            admitted.set()

        machine.ask({"x": 1}, notify=notify)
        waiting(1)
        child.kill()
        assert admitted.wait(LIMIT_S)
        machine.lease({}).release()  # whoever asks next counts the turn that an heir has followed
        turn_s = snapshot(machine_folder(os.environ)).turnaround_s
        assert turn_s is not None
        assert 0 < turn_s < LIMIT_S


def test_without_hang_ups_and_pokes_the_safety_net_still_makes_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """The net is there, and it is counted: a broken wake-up would be seen."""
    monkeypatch.setattr("hostres.machine.poke", lambda *_: False)
    monkeypatch.setattr("hostres.usher.poke", lambda *_: False)
    monkeypatch.setattr("hostres.ticket.Ticket.hung", lambda *_: frozenset())
    monkeypatch.setattr("hostres.poller.SAFETY_NET_S", (0.05, 0.05, 0.05))
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        admitted = threading.Event()

        def notify(answer: Admitted | NotAdmitted) -> None:
            assert isinstance(answer, Admitted)
            answer.lease.release()
            admitted.set()

        machine.ask({"x": 1}, notify=notify)
        waiting(1)
        machine.machine._gate.enter()  # so that the first look after the release is an unprompted one
        lease.release()
        machine.machine._gate.leave()
        assert admitted.wait(LIMIT_S)
        assert machine.safety_net_looks >= machine.safety_net_progress >= 1


def test_who_waits_long_looks_no_more_often_than_the_safety_net_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostres.poller.SAFETY_NET_S", (0.1, 0.1, 60.0))
    monkeypatch.setattr("hostres.summons.Summons.SILENCE_S", 0.2)
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        asks = [machine.ask({"x": 1}, notify=lambda _: None) for _ in range(5)]
        waiting(5)
        looks, began = machine.machine.looks, time.monotonic()
        eventually(lambda: time.monotonic() - began > 1.0)
        assert machine.machine.looks - looks < 60 * (time.monotonic() - began)  # two look, and one is asked for a sign
        for ask in asks:
            ask.withdraw()
        lease.release()


def test_the_safety_net_is_wide_for_all_but_the_first_two() -> None:
    assert SAFETY_NET_S == (2.0, 1.0, 60.0)


KILLED = """
import hostres.locks, hostres.tickets, hostres.state, hostres.folders
steps = {step}
def audit(event, arguments):
    global steps
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.chmod") and str(FOLDER) in str(arguments[0]):
        steps -= 1
        if steps == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(audit)
mkfifo = os.mkfifo
def counted(path, mode):
    audit("open", (path,))
    mkfifo(path, mode)
os.mkfifo = counted
lease = Coordinator(FOLDER, explicit={{"x": 1}}).lease({{"x": 1}})
say("held")
hear()
"""


def test_a_crash_at_any_step_of_the_first_set_up_does_not_hinder_the_next_process() -> None:
    """A9: killed before the first, the second, … operation on a file, until it gets through."""
    with children() as start:
        for step in range(1, 60):
            child = start(
                KILLED.format(step=step), environ={"HOSTLER_MACHINE_DIR": f"{os.environ['HOSTLER_MACHINE_DIR']}{step}"}
            )
            killed = child.process.wait(LIMIT_S) if not _held(child) else 0
            if killed:
                assert killed == -signal.SIGKILL
                folder = f"{os.environ['HOSTLER_MACHINE_DIR']}{step}"
                after = start(holder({"x": 1}, explicit={"x": 1}), environ={"HOSTLER_MACHINE_DIR": folder})
                assert after.line().startswith("held")
                after.close()
            child.close()
            if not killed:
                break
        assert step > 8
        assert not killed


def _held(child: Child) -> bool:
    try:
        return child.line() == "held"
    except AssertionError:
        return False
