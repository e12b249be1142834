"""Waiters of which it is settled beforehand that they hold as soon as the one before them has held and ended."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostres.affinity import of_name
from hostres.capacities import set_capacities
from hostres.claim_policy import ClaimPolicy
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.gate import Gate
from hostres.heirs import promised
from hostres.inspection import inspect
from hostres.listing import DOZING, HEIR, Listing
from hostres.locks import FifoLock, poke
from hostres.patience import Patience
from hostres.revocation import revoke
from hostres.turnaround import read_turnaround
from tests.hostres.crowd import Crowd
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, rows, stop, waiting
from tests.hostres.walk import walk_all

X = {"x": 1}

# -- by hand -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    one = Crowd(capacity={"x": 1, "y": 2, "z": 1}, processes=2)
    yield one
    one.close()


def letters(crowd: Crowd) -> str:
    """First letters of the tickets' names in order of their numbers."""
    names = [name for name in os.listdir(crowd.folder / "t") if not name.endswith(".json")]
    return "".join(name[0] for name in sorted(names, key=lambda name: (int(name.split(".")[1]), name)))


def test_an_heir_holds_without_the_gate_and_wakes_nobody(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, one, two = (crowd.ask(X, by=by) for by in (0, 1, 0))
    assert letters(crowd) == "hnn"
    crowd.leave(holder)
    monkeypatch.setattr(Gate, "hold", lambda *_: pytest.fail("it went through the gate"))
    assert crowd.inherits(one)
    assert two.poll(0) is None
    assert [row.state for row in rows()] == ["admitted", "waiting"]
    crowd.leave(one)
    assert crowd.inherits(two)
    assert [row.ticket for row in rows("admitted")] == [two.number]


def test_what_a_hand_over_leaves_goes_with_the_next_ask(crowd: Crowd) -> None:
    holder, one = crowd.ask(X), crowd.ask(X, by=1)
    crowd.leave(holder)
    assert crowd.inherits(one)
    assert one.watches
    assert letters(crowd) == "hhn"
    assert inspect(crowd.folder) == []
    assert read_turnaround(crowd.folder) == 0
    crowd.leave(crowd.ask({"y": 1}, by=1))
    assert not one.watches
    assert letters(crowd).startswith("hh")
    assert 0 < read_turnaround(crowd.folder) < 10**10


def test_whose_predecessor_has_gone_without_having_held_goes_the_long_way(crowd: Crowd) -> None:
    holder, one, two = (crowd.ask(X) for _ in range(3))
    crowd.leave(one)
    assert not crowd.inherits(two)
    assert crowd.woken(two) is False
    assert letters(crowd) == "hn"
    crowd.leave(holder)
    assert crowd.inherits(two)


def test_who_is_killed_between_its_two_names_has_held(crowd: Crowd) -> None:
    holder, one, two = (crowd.ask(X) for _ in range(3))
    crowd.leave(holder)
    assert crowd.inherits(one)
    one.lock.close()  # as a process that is killed at once
    assert crowd.inherits(two)
    assert [row.ticket for row in rows()] == [two.number]
    assert not crowd.ask(X).holding
    assert letters(crowd) == "hn"


def test_a_child_that_has_the_lock_of_the_predecessor_is_waited_for(crowd: Crowd) -> None:
    holder, one = crowd.ask(X), crowd.ask(X)
    copy = os.dup(holder.lock.fd)
    holder.lock.close()
    assert one.poll(0) is None
    assert not crowd.machines[0].inherit(one, [holder.key])  # whatever the kernel may tell
    os.close(copy)
    assert crowd.inherits(one)


def test_who_withdraws_holds_never(crowd: Crowd) -> None:
    holder, one = crowd.ask(X), crowd.ask(X)
    crowd.leave(holder)
    hung = one.poll(0)
    assert one.withdraw()
    assert hung
    assert not crowd.machines[0].inherit(one, hung)
    assert letters(crowd) == "h"


def set_z(crowd: Crowd) -> None:
    set_capacities(crowd.folder, os.environ, {"z": 2})


def be_patient(crowd: Crowd) -> None:
    crowd.machines[0].settings = crowd.machines[0].settings._replace(patience=Patience(factor=3, least_s=5))
    crowd.ask({})


DISOWN: dict[str, Callable[[Crowd], object]] = {
    "a priority": lambda crowd: crowd.ask({"y": 1, "x": 1}, priority=1),
    "a part of another": lambda crowd: crowd.ask({"y": 1}, under=next(iter(crowd.tickets))),
    "a change of a capacity": set_z,
    "another patience": be_patient,
    "a ticket taken back": lambda crowd: revoke(crowd.folder, next(iter(crowd.tickets)).number),
}


@pytest.mark.parametrize("what", DISOWN)
def test_whatever_may_let_others_go_first_makes_heirs_look_again(crowd: Crowd, what: str) -> None:
    first = crowd.ask({"y": 2})
    holder, one, two = (crowd.ask(X) for _ in range(3))
    assert letters(crowd) == "hhnn"
    DISOWN[what](crowd)
    assert HEIR not in letters(crowd)
    assert one.poll(0) is not None  # it is the first, and is to look after all from now on
    crowd.leave(holder)
    assert not crowd.inherits(one)
    assert crowd.woken(one) or (what == "a priority" and not crowd.woken(two))
    del first


def test_who_may_hold_at_any_moment_is_not_put_in_another_place(crowd: Crowd) -> None:
    """An heir that has its second name when the first is taken away holds; its list of names says so afterwards."""
    tickets = crowd.machines[0].tickets
    holder, one = crowd.ask(X), crowd.ask(X, by=1)
    listing = tickets.scan()
    (entry,) = listing.waiting
    crowd.leave(holder)
    assert crowd.inherits(one)
    assert tickets.put(entry, DOZING, listing) is None
    assert [entry.number for entry in listing.holding] == [one.number]
    assert letters(crowd) == "h"
    listing = tickets.scan()
    tickets.disown(listing)
    assert [row.ticket for row in rows()] == [one.number]


def test_behind_a_dozing_one_nobody_is_its_heir_until_it_moves(crowd: Crowd) -> None:
    tickets = crowd.machines[0].tickets
    holder, one, two = (crowd.ask(X) for _ in range(3))
    listing = tickets.scan()
    assert tickets.put(listing.waiting[0], DOZING, listing)
    crowd.machines[0].look(two, unprompted=True)
    assert letters(crowd) == "hzw"
    assert {int(key.split(".")[0]) for key in two.watches} == {holder.number, one.number}
    crowd.machines[0].look(one, unprompted=True)
    assert letters(crowd)[:2] == "hn"
    crowd.leave(holder)
    assert crowd.inherits(one)


def test_who_moves_again_stands_before_an_heir_from_the_moment_in_which_its_name_says_so(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot may fall free just then."""
    tickets = crowd.machines[0].tickets
    holder, one, two, three = (crowd.ask(X) for _ in range(4))
    listing = tickets.scan()
    assert tickets.put(listing.waiting[0], DOZING, listing)
    crowd.leave(holder)
    assert crowd.look(two)
    assert letters(crowd) == "zhn"
    renamed = FifoLock.rename

    def falls_free(lock: FifoLock, place: str) -> None:
        renamed(lock, place)
        monkeypatch.undo()
        crowd.leave(two)
        assert not crowd.inherits(three)

    monkeypatch.setattr(FifoLock, "rename", falls_free)
    crowd.look(one)
    assert one.holding or crowd.look(one)


def test_who_comes_to_be_an_heir_passes_on_the_look_after_the_others(crowd: Crowd) -> None:
    """Whoever waits behind heirs watches all that hold, as heirs do not."""
    one, _, other = crowd.ask({"y": 1}), crowd.ask({"y": 1}), crowd.ask({"x": 1})
    set_capacities(crowd.folder, os.environ, {"y": 1})
    first, last = crowd.ask({"y": 1}), crowd.ask({"x": 1, "z": 1})
    assert letters(crowd) == "hhhww"  # of two alike it is nobody's heir
    assert first.poll(0) is None
    crowd.leave(one)
    assert crowd.woken(first) is False
    assert letters(crowd).endswith("hhnw")
    assert crowd.woken(last) is False
    crowd.leave(other)
    assert first.poll(0) is None
    assert crowd.woken(last)


def test_who_has_inherited_and_ended_leaves_nothing_that_seems_to_hold(crowd: Crowd) -> None:
    both = {"x": 1, "z": 1}
    holder, heir, first, _, last = (crowd.ask(claims) for claims in (both, both, X, X, {"z": 1}))
    crowd.leave(holder)
    assert crowd.inherits(heir)
    heir.lock.close()
    assert crowd.woken(first)
    assert crowd.woken(last)


def test_whom_nobody_has_seen_end_is_told_of_by_whoever_finds_it(crowd: Crowd) -> None:
    """The chief was told to watch a new holder, which has ended and was swept before it has looked."""
    crowd.ask({"x": 1, "y": 1})
    chief, passing, fits = crowd.ask({"x": 1, "z": 1}), crowd.ask({"y": 1}, by=1), crowd.ask({"y": 1})
    assert passing.holding
    crowd.leave(passing)
    crowd.ask({"x": 1, "z": 1})
    assert fits.poll(0) is None
    assert crowd.woken(chief) is False
    assert crowd.woken(fits)


def test_a_forked_child_has_nothing_to_do_with_what_its_parent_inherited(crowd: Crowd) -> None:
    holder, heir = crowd.ask(X), crowd.ask(X)
    crowd.leave(holder)
    assert crowd.inherits(heir)
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            mine = [os.dup(told) for _ in range(8)]  # under the numbers of what was closed
            os.read(told, 1)
            ticket = crowd.ask(X)
            kept = all(os.path.sameopenfile(fd, told) for fd in mine)
            os._exit(0 if ticket.holding and kept else 1)
        os._exit(2)
    crowd.leave(heir)
    os.write(tells, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(told)
    os.close(tells)


def quiet(crowd: Crowd) -> None:
    """Let all look that anything wakes, until nothing does."""
    for _ in range(30):
        there = [ticket for ticket in crowd.tickets if not ticket.withdrawn and ticket.lock.fd >= 0]
        if not [ticket for ticket in there if crowd.woken(ticket) is not None]:
            return
    pytest.fail("they wake each other for ever")


def test_nobody_else_is_given_the_processors_that_an_heir_is_to_get(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its predecessor has ended, and it has not moved yet."""
    for module in ("affinity", "heirs"):
        monkeypatch.setattr(f"hostres.{module}.machine_cpus", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    crowd.ask({})
    for machine in crowd.machines:
        machine.settings = machine.settings._replace(capacity={"x": 1, "y": 2, "z": 1, "cpu": 2})
    one = {"x": 1, "cpu": 1}
    holder, heir = crowd.ask(one), crowd.ask(one, by=1)
    assert holder.lock.place.endswith(".1")
    assert heir.waiting.cpus == ".1"
    holder.lock.close()
    newcomer = crowd.ask({"cpu": 1}, by=1)
    assert newcomer.lock.place.endswith(".2")
    assert crowd.inherits(heir)
    assert heir.lock.place.endswith(".1")
    crowd.leave(newcomer)
    crowd.leave(heir)
    assert crowd.ask(one).lock.place.endswith(".1")


def test_whose_processors_stand_in_the_names_of_its_own_heirs_gets_them_all_the_same() -> None:
    line = Listing.of(("h.1.a.1", "n.2.b.1.1", "n.3.c.2.1", "n.5.d.9.2", "w.6.e")).waiting
    assert promised(line, 2) == ["n.5.d.9.2"]
    assert promised(line, 6) == ["n.2.b.1.1", "n.3.c.2.1", "n.5.d.9.2"]
    assert [of_name(name) for name in promised(line, 6)] == [(0,), (0,), (1,)]


def test_a_waiter_that_follows_the_capacity_and_an_heir_leave_each_other_in_peace(crowd: Crowd, tmp_path: Path) -> None:
    crowd.machines[0]._issuer.policy = ClaimPolicy(takes={"z": {"y": "all"}}, path=tmp_path)
    for claims, by in (({"z": 1}, 0), (X, 1), (X, 1), ({"z": 1}, 0)):
        crowd.ask(claims, by=by)
    crowd.leave(crowd.ask({}, by=1))
    quiet(crowd)


def test_who_is_no_heir_any_more_looks_after_the_others(crowd: Crowd) -> None:
    """One behind it has a low priority, so it cannot be the heir of the next one before it."""
    crowd.ask(X)
    other = crowd.ask({"y": 2})
    _, middle, _, last = crowd.ask(X), crowd.ask(X), crowd.ask(X), crowd.ask({"y": 2})
    crowd.ask({"z": 1, "y": 2}, priority=-1)
    quiet(crowd)
    crowd.leave(middle)
    quiet(crowd)
    crowd.leave(other)
    quiet(crowd)
    assert last.holding


def test_who_stands_behind_a_dozing_heir_looks_after_the_others(crowd: Crowd) -> None:
    crowd.ask(X)
    other = crowd.ask({"y": 2})
    _, middle, behind, last = crowd.ask(X), crowd.ask(X), crowd.ask(X), crowd.ask({"y": 2})
    quiet(crowd)
    tickets = crowd.machines[0].tickets
    listing = tickets.scan()
    assert tickets.put(next(entry for entry in listing.waiting if entry.number == middle.number), DOZING, listing)
    poke(behind.lock.place)  # as whoever lets one doze does
    while crowd.woken(behind) is not None:
        pass
    crowd.woken(last)
    crowd.leave(other)
    for ticket in (behind, last):
        crowd.woken(ticket)
    assert last.holding or crowd.woken(last)


def test_who_was_to_go_first_and_is_dead_keeps_nobody_waiting(crowd: Crowd) -> None:
    """Nobody watches the last of a line."""
    holder, chief, _, urgent = crowd.ask(X), crowd.ask(X), crowd.ask(X), crowd.ask(X, priority=1)
    quiet(crowd)
    urgent.lock.close()
    crowd.leave(holder)
    quiet(crowd)
    assert chief.holding


def test_exclusive_keys_are_handed_on_likewise(crowd: Crowd) -> None:
    key = ("0" * 64,)
    holder, one = crowd.ask({"y": 1}, keys=key), crowd.ask({"y": 1}, keys=key)
    assert letters(crowd) == "hn"
    crowd.leave(holder)
    assert crowd.inherits(one)
    assert not crowd.ask({}, keys=key).holding


# -- at random ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [range(60)])
def test_at_no_moment_is_too_much_held_and_in_the_end_nobody_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    """Between any two steps of who decides, what it has read may be true no more."""
    assert walk_all(seeds, tmp_path, monkeypatch) > len(seeds)


# -- real processes ----------------------------------------------------------------------------------------------------

HEIRS = """
import hostres.coordinator, hostres.summons
hostres.summons.Summons.SILENCE_S = 0.2
hostres.coordinator.SAFETY_NET_S = {net_s}
coordinator = Coordinator(FOLDER)
say("asks")
lease = coordinator.lease({{"x": 1}})
say("held", lease.ticket, coordinator.safety_net_progress)
hear()
lease.release()
hear()
"""

WIDE = (600.0, 600.0, 600.0)
LOOKS_AFTER = (0.4, 0.2, 60.0)


def test_a_line_of_heirs_is_passed_through_and_a_killed_one_is_left_out() -> None:
    with children() as start, coordinator(x=1) as machine:
        lease = machine.lease(X)
        line = []
        for count in range(1, 6):
            line.append(start(HEIRS.format(net_s=WIDE)))
            assert line[-1].line() == "asks"
            waiting(count)
        line[1].kill()
        waiting(4)
        lease.release()
        for child, number in zip((line[0], line[2], line[3], line[4]), (1, 3, 4, 5), strict=True):
            assert child.line().split() == ["held", str(lease.ticket + number), "0"]
            if child is line[2]:
                child.kill()  # while it holds
            else:
                child.tell()


def test_a_stopped_heir_is_passed_over_and_holds_once_it_moves() -> None:
    with children() as start, coordinator(x=1) as machine:
        lease = machine.lease(X)
        line = []
        for count in range(1, 4):
            line.append(start(HEIRS.format(net_s=LOOKS_AFTER)))
            assert line[-1].line() == "asks"
            waiting(count)
        stopped = line[0]
        stop(stopped)
        since = time.monotonic()
        lease.release()
        assert line[1].line().split()[:2] == ["held", str(lease.ticket + 2)]
        assert time.monotonic() - since < 10
        os.kill(stopped.pid, signal.SIGCONT)
        eventually(lambda: not list(machine_folder(os.environ).glob("t/z.*")))
        line[1].tell()
        assert stopped.line().split()[:2] == ["held", str(lease.ticket + 1)]


def test_an_heir_that_was_taken_back_is_told_so() -> None:
    with coordinator(x=1) as machine, machine.lease(X) as lease, children() as start:
        child = start("""
            coordinator = Coordinator(FOLDER)
            say("asks")
            try:
                coordinator.lease({"x": 1})
            except HostlerError as error:
                say(error.code)
        """)
        child.line()
        waiting(1)
        revoke(machine_folder(os.environ), lease.ticket + 1)
        assert child.line() == Code.WAIT_ABORTED.value


def test_an_heir_that_holds_and_is_taken_back_finds_that_it_does_not_own_it_any_more() -> None:
    with coordinator(x=1) as machine:
        lease = machine.lease(X)
        told: list[Any] = []
        machine.ask(X, notify=told.append)
        waiting(1)
        lease.release()
        eventually(lambda: told)
        heir = told[0].lease
        revoke(machine_folder(os.environ), heir.ticket)
        with pytest.raises(HostlerError, check=lambda error: error.code is Code.OWNERSHIP_LOST):
            heir.assert_owned()
        machine.lease(X, wait=LIMIT_S).release()
        heir.release()
        machine.lease({}).release()
        assert not [name for name in os.listdir(machine_folder(os.environ) / "t") if name.startswith(HEIR)]
