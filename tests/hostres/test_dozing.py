"""A waiter that does not move: nobody waits for it, and it keeps its place."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hostres.coordinator import Admitted, Coordinator, NotAdmitted, Patience
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.listing import DOZING, Entry
from hostres.pulse import Pulse
from hostres.rousing import to_rouse
from hostres.summons import Summons
from tests.hostres.support import LIMIT_S, Child, children, coordinator, eventually, held, rows, stop, waiting

WAITER = """
import hostres.coordinator, hostres.summons
hostres.summons.Summons.SILENCE_S = {silence_s}
hostres.summons.Summons.SLOW_S = {silence_s} / 8
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

NO_HEIR = {"y": 1, "z": 1}
"""Who waits for *y* behind it is not its heir, so it is the chief, and looks after the others."""


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
    with children() as start, coordinator(x=1, y=1, z=1) as machine:
        one, two = machine.lease(NO_HEIR), machine.lease({"x": 1})
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
    with children() as start, coordinator(x=1, y=1, z=1) as machine:
        one, two = machine.lease(NO_HEIR), machine.lease({"x": 1})
        chief, stopped, last = queue_up({"y": 1}, {"x": 1}, {"y": 1}, start=start)
        stop(stopped)
        two.release()
        eventually(lambda: dozing() == [two.ticket + 2])
        with machine.machine._gate:
            chief.kill()  # it has told whoever stands behind that one: it would else be the safety net's to find out
        waiting(2)
        one.release()
        assert last.line().split()[2] == "0"


def test_others_go_past_a_stopped_waiter_that_does_not_fit() -> None:
    with children() as start, coordinator(x=2) as machine:
        one, two = machine.lease({"x": 1}), machine.lease({"x": 1})
        (chief,) = queue_up({"x": 2}, start=start)
        small = start(waiter({"x": 1}, net_s=(1.0, 1.0, 60.0)))
        small.line()
        waiting(2)
        stop(chief)
        one.release()
        assert small.line().split()[0] == "held"
        small.tell()
        two.release()
        os.kill(chief.pid, signal.SIGCONT)
        assert chief.line().split()[2] == "0"


def test_behind_a_stopped_chief_the_next_one_tells_those_that_may_go() -> None:
    with children() as start, coordinator(x=1, y=1, z=1, v=1) as machine:
        one, two = machine.lease(NO_HEIR), machine.lease({"x": 1})
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


LOOKS_AFTER = (0.2, 0.2, 600.0)
"""The first two look often; all others only if these do not."""

MANY = 5


def queue_up_behind_stopped(
    stopped: dict[str, int], last: dict[str, int], *, start: Callable[[str], Child], before: int = 0
) -> tuple[list[Child], Child]:
    """Let several wait and one more, then stop all of them but the last."""
    queue = []
    for count in range(MANY):
        queue.append(start(waiter(stopped)))
        queue[-1].line()
        waiting(before + count + 1)
    behind = start(waiter(last, net_s=LOOKS_AFTER))
    behind.line()
    waiting(before + MANY + 1)
    for child in queue:
        stop(child)
    return queue, behind


def test_however_many_are_stopped_in_front_the_first_that_is_not_goes_on_and_they_keep_their_places() -> None:
    with children() as start, coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        stopped, last = queue_up_behind_stopped({"x": 1}, {"x": 1}, start=start)
        lease.release()
        assert last.line().split()[:2] == ["held", str(lease.ticket + MANY + 1)]
        assert dozing() == [lease.ticket + 1 + place for place in range(MANY)]
        for child in reversed(stopped):
            os.kill(child.pid, signal.SIGCONT)
        eventually(lambda: not dozing())
        last.tell()
        for place, child in enumerate(stopped):
            assert child.line().split()[:2] == ["held", str(lease.ticket + 1 + place)]
            child.tell()


def test_however_many_are_stopped_behind_the_chief_the_first_that_is_not_goes_on() -> None:
    with children() as start, coordinator(x=1, y=1, z=1) as machine:
        one, two = machine.lease(NO_HEIR), machine.lease({"x": 1})
        chief = start(waiter({"y": 1}, net_s=LOOKS_AFTER))
        chief.line()
        waiting(1)
        _, last = queue_up_behind_stopped({"x": 1}, {"x": 1}, start=start, before=1)
        two.release()
        assert last.line().split()[0] == "held"
        assert len(dozing()) == MANY
        one.release()
        assert chief.line().split()[0] == "held"


def test_inside_a_lease_too_the_first_that_is_not_stopped_goes_on() -> None:
    with children() as start, coordinator(x=1) as machine, machine.lease({"x": 1}) as outer:
        part = machine.lease({"x": 1}, parent=outer)
        start(waiter({"x": 1}, net_s=LOOKS_AFTER)).line()  # looks after the line on the machine, which is another one
        waiting(1)
        environ = dict(outer.environment)

        def start_inside(code: str) -> Child:
            return start(code, environ=environ)

        _, last = queue_up_behind_stopped({"x": 1}, {"x": 1}, start=start_inside, before=1)
        part.release()
        assert last.line().split()[0] == "held"
        assert len(dozing()) == MANY


def test_behind_one_that_came_to_be_the_chief_unawares_and_was_stopped_the_next_goes_on() -> None:
    """Whoever takes over all that has come free wakes nobody, so those behind know nothing of their new places."""
    with children() as start, coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        queue = []
        for number in range(1, 5):
            queue.append(start(waiter({"x": 1}, net_s=LOOKS_AFTER)))
            queue[-1].line()
            waiting(number)
        first, second, stopped, last = queue
        lease.release()
        for child in (first, second):
            assert child.line().split()[0] == "held"
            if child is second:
                stop(stopped)
            child.tell()
        assert last.line().split()[:2] == ["held", str(lease.ticket + 4)]
        assert dozing() == [lease.ticket + 3]


def test_nothing_is_kept_for_a_patient_one_that_is_stopped() -> None:
    patience = Patience(factor=0, least_s=0)
    with children() as start, Coordinator(machine_folder(os.environ), explicit={"x": 2}, patience=patience) as machine:
        lease = machine.lease({"x": 1})
        (big,) = queue_up({"x": 2}, start=start)
        small = start(waiter({"x": 1}, net_s=LOOKS_AFTER))
        small.line()
        waiting(2)
        assert small.silent()
        stop(big)
        assert small.line().split()[0] == "held"
        assert dozing() == [lease.ticket + 1]
        os.kill(big.pid, signal.SIGCONT)
        eventually(lambda: not dozing())
        with pytest.raises(HostlerError):
            machine.lease({"x": 1}, wait=0)
        lease.release()
        small.tell()
        assert big.line().split()[0] == "held"


def test_as_long_as_somebody_looks_nobody_else_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = 1000.0
    monkeypatch.setattr("hostres.pulse.time.monotonic", lambda: now)
    monkeypatch.setattr("hostres.pulse.boot_ns", lambda: int(now * 1e9))
    one, two = Pulse(), Pulse()
    one.place = two.place = str(tmp_path / "sign")
    assert 0 < two.due(1.0, 2) - now <= 1.5
    assert two.missed()  # not even the place is there
    (tmp_path / "sign").touch()
    assert two.missed()  # by the wall clock it was left long after this boot, and by nobody
    for _ in range(3):
        now += 1.5
        one.leave()
        assert not two.missed()
    now += 1.4
    assert not two.missed()  # too early to tell
    now += 0.1
    assert two.missed()
    assert not two.renewed()
    one.leave()
    assert two.renewed()
    assert not two.missed()


def test_a_sign_is_missed_as_soon_whatever_was_seen_of_it_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who sees to it seldom must not need to see twice the same."""
    now = 1000.0
    monkeypatch.setattr("hostres.pulse.time.monotonic", lambda: now)
    monkeypatch.setattr("hostres.pulse.boot_ns", lambda: int(now * 1e9))
    (tmp_path / "sign").touch()
    one, two = Pulse(), Pulse()
    one.place = two.place = str(tmp_path / "sign")
    two.due(1.0, 500)
    one.leave()
    now += 1.6
    assert two.missed()


@pytest.mark.parametrize(("waiting", "longest_s"), [(0, 1.5), (3, 1.5), (4, 1.5), (8, 3.0), (16, 6.0), (500, 6.0)])
def test_of_many_that_see_to_a_sign_each_does_it_less_often(waiting: int, longest_s: float) -> None:
    after_s = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hostres.pulse.time.monotonic", lambda: 1000.0)
        for pid in range(5000, 5200):
            patch.setattr("hostres.pulse.os.getpid", lambda pid=pid: pid)
            after_s.append(Pulse().due(1.0, waiting) - 1000.0)
    assert 0 < min(after_s) < 0.05 * longest_s
    assert 0.95 * longest_s < max(after_s) <= longest_s


def test_whom_to_rouse_doubles_with_every_look() -> None:
    queue = [Entry(number, "a", "w", f"w.{number}.a") for number in range(12)]
    slow: list[Entry] = []
    rounds = []
    while True:
        asked = to_rouse(queue, queue[-1], slow, chief=True)
        if not asked:
            break
        rounds.append([entry.number for entry in asked])
        slow.extend(asked)
    assert rounds == [[0], [1], [2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert to_rouse(queue, queue[0], [], chief=False) == []
    assert to_rouse(queue, queue[0], [queue[3]], chief=False) == [queue[4]]
    assert to_rouse(queue, queue[4], [queue[3]], chief=False) == []


def test_a_dozing_waiter_holds_nothing_back_from_whoever_comes_new() -> None:
    with children() as start, coordinator(x=1, y=1, z=1) as machine:
        one, two = machine.lease(NO_HEIR), machine.lease({"x": 1})
        _, stopped = queue_up({"y": 1}, {"x": 1}, start=start)
        stop(stopped)
        two.release()
        eventually(lambda: dozing() == [two.ticket + 2])
        machine.lease({"x": 1}, wait=0).release()
        one.release()


def test_a_dozing_waiter_that_is_killed_leaves_no_trace() -> None:
    with children() as start, coordinator(x=1, y=1, z=1) as machine:
        one, two = machine.lease(NO_HEIR), machine.lease({"x": 1})
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
    with children() as start, coordinator(x=1, y=1, z=1) as machine:
        one, two = machine.lease(NO_HEIR), machine.lease({"x": 1})
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
    with children() as start, coordinator(x=1, y=1, z=1) as machine:
        one, two = machine.lease(NO_HEIR), machine.lease({"x": 1})
        _, stopped = queue_up({"y": 1}, {"x": 1}, start=start)
        stop(stopped)
        two.release()
        eventually(lambda: dozing() == [two.ticket + 2])
        next(machine_folder(os.environ).glob("t/z.*")).unlink()
        os.kill(stopped.pid, signal.SIGCONT)
        assert stopped.line() == Code.WAIT_ABORTED.value
        one.release()


def test_an_ask_that_never_blocks_may_doze_and_withdraw(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process lives, but its poll thread is kept busy by a callback."""
    monkeypatch.setattr(Summons, "SILENCE_S", 0.2)
    with children() as start, coordinator(x=1, y=1, z=1, v=1) as machine:
        one, two = machine.lease(NO_HEIR), machine.lease({"x": 1})
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

        machine.ask({"v": 1}, notify=block)
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
    assert summons.due() == 100.25
    assert summons.slow([one, two]) == []
    now = 100.25
    assert summons.slow([one, two]) == [one]
    assert summons.due() == 102.0
    now = 101.9
    assert summons.silent([one, two]) == []
    summons.note([one, two], [one, two])
    now = 102.0
    assert summons.silent([one, two]) == [one]
    summons.note([two], [], hasty=False)
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

    with coordinator(x=1) as machine, held(machine.lease({"x": 1})):
        monkeypatch.setattr("hostres.ticket.os.unlink", late)
        with pytest.raises(HostlerError):
            machine.lease({"x": 1}, wait=0.01)
        monkeypatch.setattr("hostres.ticket.os.unlink", unlink)
        assert len(renamed) == 1
        assert dozing() == []
