"""Single looks of tickets that nobody polls, so that each step can be seen."""

import os
from pathlib import Path

import pytest

from hostres.clock import boot_ns
from hostres.folders import machine_folder
from hostres.inspection import inspect
from hostres.listing import DOZING, WAITING
from hostres.pulse import Pulse
from hostres.state import StateFile
from hostres.ticket import Ticket
from hostres.turnaround import read_turnaround
from tests.hostres.crowd import Crowd, told


def watched(ticket: Ticket) -> set[int]:
    return {int(key.split(".")[0]) for key in ticket.watches}


def name(ticket: Ticket) -> str:
    (path,) = machine_folder(os.environ).glob(f"t/?.{ticket.number}.*")
    return path.name


def test_the_chief_watches_all_holders_and_others_whoever_is_before_them(crowd: Crowd) -> None:
    one, two = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    first, second, third = (crowd.ask({"x": 1}) for _ in range(3))
    assert watched(first) == {one.number, two.number}
    assert (watched(second), watched(third)) == ({first.number}, {second.number})


def test_who_waits_inside_a_ticket_watches_it_and_the_parts_of_it(crowd: Crowd) -> None:
    outer, other = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    part = crowd.ask({"x": 1}, under=outer)
    first, second = (crowd.ask({"x": 1}, under=outer) for _ in range(2))
    assert watched(first) == {outer.number, part.number}
    assert watched(second) == {outer.number, first.number}
    assert other.number not in watched(first)


def test_who_is_told_and_does_not_move_dozes_after_two_seconds_is_told_again_and_watched_through(crowd: Crowd) -> None:
    crowd.ask({"y": 1, "z": 1})  # so the chief is not its heir
    one, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    chief, silent, behind = crowd.ask({"y": 1}), crowd.ask({"x": 1}), crowd.ask({"y": 1})
    one.lock.close()
    assert not crowd.look(chief)
    assert told(silent)
    silent.lock.drain()  # it is just about to look, and hangs
    crowd.now_s = 1.9
    crowd.machine.look(chief, unprompted=True)
    assert name(silent).startswith("w.")
    silent.lock.drain()
    behind.lock.drain()
    crowd.now_s = 2.0
    crowd.machine.look(chief, unprompted=True)
    assert name(silent) == silent.entry(DOZING).name
    assert told(silent)
    assert told(behind)
    crowd.look(behind)
    assert watched(behind) == {silent.number, chief.number}
    assert crowd.look(silent)
    assert silent.holding
    assert name(silent).startswith("h.")


def test_a_chief_that_answers_is_asked_for_a_sign_of_life_at_every_look_and_never_passed_over(crowd: Crowd) -> None:
    crowd.ask({"x": 2})
    chief, second = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    for _ in range(5):
        crowd.now_s += 1.0
        crowd.machine.look(second, unprompted=True)
        assert second.roused.due() == crowd.now_s + 2.0
        assert told(chief)
        crowd.look(chief)
    assert name(chief).startswith("w.")
    crowd.machine.look(second, unprompted=True)
    for _ in range(2):
        crowd.now_s += 1.0
        crowd.machine.look(second, unprompted=True)
    assert name(chief).startswith("z.")
    assert second.roused.due() is None


def test_a_patient_one_that_dozes_keeps_nothing_and_whoever_may_go_is_told(crowd: Crowd) -> None:
    one, two = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    crowd.ask({"y": 1})
    big = crowd.ask({"x": 2}, waited_ns=10**10)
    chief_of_y, small = crowd.ask({"y": 1}), crowd.ask({"x": 1})
    one.lock.close()
    two.lock.close()
    crowd.machine.look(chief_of_y, unprompted=True)
    assert told(big)
    assert not told(small)
    crowd.now_s = 2.0
    crowd.machine.look(chief_of_y, unprompted=True)
    assert name(big).startswith("z.")
    assert told(small)
    assert crowd.look(small)


def test_who_moves_from_a_dead_ticket_to_the_machine_tells_whoever_is_behind_it_there(crowd: Crowd) -> None:
    outer, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    chief = crowd.ask({"x": 1})
    part = crowd.ask({"x": 1}, under=outer)
    inside = crowd.ask({"x": 1}, under=outer)
    behind = crowd.ask({"x": 1})
    behind.lock.drain()
    outer.lock.close()
    assert not crowd.look(inside)
    assert watched(inside) == {chief.number}
    assert told(behind)
    crowd.look(behind)
    assert watched(behind) == {inside.number}
    crowd.look(chief)
    assert part.number in watched(chief)  # it counts by itself now


def test_what_stood_inside_a_dead_ticket_is_watched_in_the_same_look_that_finds_it(crowd: Crowd) -> None:
    """Both a part that holds, and a waiter that comes before the chief."""
    outer, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    part = crowd.ask({"x": 1}, under=outer)
    inside = crowd.ask({"x": 1}, under=outer)
    chief = crowd.ask({"x": 1})
    outer.lock.close()
    crowd.look(chief)
    assert watched(chief) == {inside.number}
    inside.withdraw()
    crowd.look(chief)
    assert part.number in watched(chief)


def test_turns_of_parts_do_not_count_in_the_average(crowd: Crowd) -> None:
    folder = machine_folder(os.environ)
    outer, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    part = crowd.ask({"x": 1}, under=outer)
    inside = crowd.ask({"x": 1}, under=outer)
    chief = crowd.ask({"x": 2})
    part.lock.close()
    assert crowd.look(inside)
    assert read_turnaround(folder) == 0
    outer.lock.close()
    crowd.look(chief)
    assert read_turnaround(folder) > 0


def test_a_lowered_capacity_does_not_concern_who_waits_inside_a_ticket(crowd: Crowd) -> None:
    outer = crowd.ask({"x": 2})
    part = crowd.ask({"x": 2}, under=outer)
    inside = crowd.ask({"x": 2}, under=outer)
    state_file = StateFile(str(machine_folder(os.environ)))
    state = state_file.read()
    assert state is not None
    state_file.write(state._replace(capacity={**state.capacity, "x": 1}))
    part.lock.close()
    assert crowd.look(inside)
    assert inside.entry(WAITING).parents == (outer.number,)


# -- the sign of those who look ----------------------------------------------------------------------------------------


def test_who_comes_to_be_the_chief_unawares_finds_out_as_nobody_looks(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("hostres.pulse.time.monotonic", lambda: now)
    monkeypatch.setattr("hostres.pulse.boot_ns", lambda: int(now * 1e9))
    nets = (2.0, 1.0, 60.0)
    holder = crowd.ask({"x": 2})
    one, two, last = (crowd.ask({"x": 2}) for _ in range(3))
    assert last.look_at(nets) <= now + 1.5
    assert not last.must_look()
    for releasing, next_one in ((holder, one), (one, two)):
        releasing.lock.close()
        assert crowd.look(next_one)
    assert not told(last)
    assert last.rank == 2
    now += 1.5
    assert last.must_look()
    crowd.machine.look(last, unprompted=True)
    assert last.rank == 0
    assert last.look_at(nets) == now + 2.0


def test_of_all_that_see_at_once_that_nobody_looks_only_one_does(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others stand at the gate by then, and find as they enter that somebody has looked."""
    now = 1000.0
    monkeypatch.setattr("hostres.pulse.time.monotonic", lambda: now)
    monkeypatch.setattr("hostres.pulse.boot_ns", lambda: int(now * 1e9))
    nets = (2.0, 1.0, 60.0)
    crowd.ask({"x": 2})
    *_, third, last = (crowd.ask({"x": 2}) for _ in range(4))
    for ticket in (third, last):
        ticket.look_at(nets)
        ticket.must_look()
    now += 1.5
    assert third.must_look()
    assert last.must_look()
    crowd.machine.look(third, unprompted=True)
    looks = crowd.machine.looks
    crowd.machine.look(last, unprompted=True)
    assert crowd.machine.looks == looks
    now += 60.0  # its own time has come
    crowd.machine.look(last, unprompted=True)
    assert crowd.machine.looks == looks + 1


def test_forked_processes_see_to_the_sign_at_moments_of_their_own() -> None:
    moments = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hostres.pulse.time.monotonic", lambda: 1000.0)
        for pid in range(5000, 5100):
            patch.setattr("hostres.pulse.os.getpid", lambda pid=pid: pid)
            moments.add(round(Pulse().due(1.0, 4), 2))
    assert len(moments) > 50


def test_a_turn_that_ends_is_no_sign_that_somebody_looks(crowd: Crowd) -> None:
    """Who stood inside a ticket sees the end of that and counts it; the first two may be stopped meanwhile."""
    folder = machine_folder(os.environ)
    crowd.ask({"y": 1})
    crowd.ask({"y": 1})
    crowd.ask({"y": 1})
    outer = crowd.ask({"x": 2})
    crowd.ask({"x": 2}, under=outer)
    third = crowd.ask({"x": 2}, under=outer)
    sign = (folder / "pulse").stat()
    outer.lock.close()
    assert not crowd.look(third)
    assert third.rank == 2
    assert read_turnaround(folder) > 0
    assert (folder / "pulse").stat() == sign
    assert inspect(folder) == []


def test_the_sign_of_a_line_inside_a_ticket_leaves_the_moment_of_its_admission(crowd: Crowd) -> None:
    """By that moment it is known whether it may have taken its memory yet."""
    outer = crowd.ask({"x": 1})
    crowd.ask({"x": 1}, under=outer)
    inside = crowd.ask({"x": 1}, under=outer)
    fifo, sign = Path(outer.lock.place), Path(inside.pulse.place)
    before = fifo.stat().st_ctime_ns, boot_ns()
    os.utime(sign, (0, 0))
    crowd.machine.look(inside, unprompted=True)
    assert fifo.stat().st_ctime_ns == before[0]
    assert sign.stat().st_mtime_ns >= before[1]


def test_the_sign_of_the_machine_s_line_is_a_file_of_its_own_and_no_stranger_to_doctor(crowd: Crowd) -> None:
    folder = machine_folder(os.environ)
    crowd.ask({"x": 2})
    crowd.ask({"x": 2})
    assert (folder / "pulse").stat().st_size == 0
    assert inspect(folder) == []
