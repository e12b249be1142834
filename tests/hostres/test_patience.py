"""The patient one on a real machine: what is kept for it, when, and that time alone need wake nobody."""

import json
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from hostres import coordinator as coordinating
from hostres.clock import boot_ns
from hostres.coordinator import Admitted, Coordinator, NotAdmitted, Patience
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, holder, rows, waiting

SECOND_NS = 10**9
NONE = Patience(factor=0, least_s=0, most_s=0)
ENDLESS = Patience(factor=0, least_s=3600, most_s=3600)

REPORTER = """
import hostres.coordinator
hostres.coordinator.SAFETY_NET_S = (600.0, 600.0, 600.0)  # a lost wake-up shows
coordinator = Coordinator(FOLDER)
say("asks")
lease = coordinator.lease({claims!r})
say("held", lease.ticket, coordinator.safety_net_progress)
hear()
lease.release()
hear()
"""


def reporter(claims: dict[str, int]) -> str:
    return REPORTER.format(claims=claims)


def no_room(match: str) -> "pytest.RaisesExc[HostlerError]":
    return pytest.raises(HostlerError, match=match, check=lambda error: error.code is Code.WAIT_TIMEOUT)


@pytest.fixture(autouse=True)
def wide_safety_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost wake-up shows."""
    monkeypatch.setattr("hostres.poller.SAFETY_NET_S", (600.0, 600.0, 600.0))


class Clock:
    """The boot-time clock of this process's decisions, which a test may put forward."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def __call__(self) -> int:
        return boot_ns() + self.ahead_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    monkeypatch.setattr("hostres.usher.boot_ns", one)
    monkeypatch.setattr("hostres.seating.boot_ns", one)
    monkeypatch.setattr("hostres.survey.boot_ns", one)
    return one


@pytest.fixture
def answered() -> Iterator[Callable[[Admitted | NotAdmitted], None]]:
    """Gives back at once whatever is admitted; fails on anything else."""
    answers: list[Admitted | NotAdmitted] = []

    def notify(answer: Admitted | NotAdmitted) -> None:
        answers.append(answer)
        if isinstance(answer, Admitted):
            answer.lease.release()

    yield notify
    assert all(isinstance(answer, Admitted) for answer in answers)


def test_the_oldest_becomes_patient_while_nothing_happens_and_nobody_is_woken(
    clock: Clock, answered: Callable[[Admitted | NotAdmitted], None]
) -> None:
    with coordinator(x=2) as machine:
        one = machine.lease({"x": 1})
        machine.ask({"x": 2}, notify=answered)
        waiting(1)
        big = one.ticket + 1
        looks = machine.machine.looks
        machine.lease({"x": 1}, wait=0).release()
        clock.ahead_ns = 3 * SECOND_NS  # more than the least patience
        with no_room(f"kept for ticket {big}"):
            machine.lease({"x": 1}, wait=0)
        machine.lease({"cpu": 1}, wait=0).release()
        clock.ahead_ns = 0
        machine.lease({"x": 1}, wait=0).release()
        assert machine.machine.looks - looks <= 4  # of the chief, told of each new holder and of its end
        one.release()
        eventually(lambda: not rows())
        assert machine.safety_net_progress == 0


def test_a_big_claim_is_admitted_although_small_ones_keep_coming(tmp_path: object) -> None:
    storm = """
        coordinator = Coordinator(FOLDER)
        turns = 0
        while not os.path.exists({stop!r}):
            with coordinator.lease({{"x": 1}}):
                time.sleep(0.002)
            turns += 1
        say(turns)
    """
    stop = f"{tmp_path}/stop"
    with Coordinator(machine_folder(os.environ), explicit={"x": 4}, patience=Patience(least_s=0.3)) as machine:
        machine.lease({}).release()
        with children() as start:
            small = [start(storm.format(stop=stop)) for _ in range(8)]
            eventually(lambda: len(rows("waiting")) >= 3)
            big = machine.lease({"x": 4}, wait=LIMIT_S)
            open(stop, "w").close()
            big.release()
            assert sum(int(child.line()) for child in small) > 20


def test_with_endless_patience_small_ones_pass_as_long_as_they_come() -> None:
    with Coordinator(machine_folder(os.environ), explicit={"x": 2}, patience=ENDLESS) as machine, children() as start:
        lease = machine.lease({"x": 1})
        big = start(reporter({"x": 2}))
        big.line()
        waiting(1)
        for _ in range(50):
            following = machine.lease({"x": 1}, wait=0)
            lease.release()
            lease = following
        assert big.silent()
        lease.release()
        assert big.line().split()[2] == "0"


def test_what_one_program_sets_holds_for_all_and_is_kept_in_the_state() -> None:
    folder = machine_folder(os.environ)
    with Coordinator(folder, explicit={"x": 2}, patience=NONE) as first, children() as start:
        lease = first.lease({"x": 1})
        assert json.loads((folder / "state.json").read_text())["patience"] == NONE.to_json()
        big = start(holder({"x": 2}))
        waiting(1)
        with coordinator() as other, no_room("kept for"):
            other.lease({"x": 1}, wait=0)
        lease.release()
        big.line()


def test_a_state_without_a_patience_is_as_it_always_was_and_a_damaged_one_is_damaged() -> None:
    folder = machine_folder(os.environ)
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        state = json.loads((folder / "state.json").read_text())
        assert set(state) == {"format", "boot", "next_ticket", "profile"}
        for damage in (5, {"factor": -1}, {"fact": 1}):
            (folder / "state.json").write_text(json.dumps({**state, "patience": damage}))
            with coordinator() as other, pytest.raises(HostlerError, match="unknown patience"):
                other.lease({})
        lease.release()


def test_more_patience_is_told_to_those_that_may_go_now() -> None:
    folder = machine_folder(os.environ)
    with Coordinator(folder, explicit={"x": 2}, patience=NONE) as machine, children() as start:
        lease = machine.lease({"x": 1})
        big = start(reporter({"x": 2}))
        waiting(1)
        small = start(reporter({"x": 1}))
        waiting(2)
        assert (big.line(), small.line()) == ("asks", "asks")
        assert small.silent()
        with Coordinator(folder, patience=ENDLESS) as other, no_room("x: wants 2"):
            other.lease({"x": 2}, wait=0)
        assert small.line().split()[2] == "0"
        small.tell()
        lease.release()
        assert big.line().split()[2] == "0"


def test_a_longer_average_turn_makes_more_patient_and_those_that_may_go_are_told(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with coordinator(x=2, y=1) as machine, children() as start:
        one = machine.lease({"x": 1})
        with monkeypatch.context() as patch:
            patch.setattr(coordinating, "boot_ns", lambda: boot_ns() - 500 * SECOND_NS)
            slow = machine.lease({"y": 1})  # it asked long ago
        told = threading.Event()

        def notify(answer: Admitted | NotAdmitted) -> None:
            assert isinstance(answer, Admitted)
            answer.lease.release()
            told.set()

        with monkeypatch.context() as patch:
            patch.setattr(coordinating, "boot_ns", lambda: boot_ns() - 10 * SECOND_NS)
            machine.ask({"x": 2}, notify=notify)  # patient already
            waiting(1)
        small = start(reporter({"x": 1}))
        small.line()
        waiting(2)
        assert small.silent()
        slow.release()  # a turn of 500 s: ten seconds are nothing any more
        assert small.line().split()[2] == "0"
        assert not told.is_set()
        one.release()
        small.tell()
        assert told.wait(LIMIT_S)


def order_of(priorities: tuple[int, ...], patience: Patience) -> list[int]:
    with Coordinator(machine_folder(os.environ), explicit={"x": 1}, patience=patience) as machine:
        lease = machine.lease({"x": 1})
        order: list[int] = []

        def told(place: int) -> Callable[[Admitted | NotAdmitted], None]:
            def notify(answer: Admitted | NotAdmitted) -> None:
                assert isinstance(answer, Admitted)
                order.append(place)
                answer.lease.release()

            return notify

        for place, priority in enumerate(priorities):
            machine.ask({"x": 1}, notify=told(place), priority=priority)
        waiting(len(priorities))
        lease.release()
        eventually(lambda: len(order) == len(priorities))
        assert machine.safety_net_progress == 0
        return order


def test_within_the_patience_of_the_oldest_the_higher_priority_goes_first() -> None:
    assert order_of((-1, 0, 10, 0, 10), ENDLESS) == [2, 4, 1, 3, 0]


def test_beyond_it_the_order_of_arrival_counts() -> None:
    assert order_of((-1, 0, 10, 0, 10), NONE) == [0, 1, 2, 3, 4]
