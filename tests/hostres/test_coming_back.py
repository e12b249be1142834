"""Who gives back and asks again at once, or comes just then: what it reads, what it leaves, whom it goes before."""

import os

import pytest

from tests.hostres.crowd import Crowd, told


def test_who_finds_no_room_on_arrival_reads_the_holders_and_whom_it_watches(
    crowd: Crowd, strangers: Crowd, read: list[int]
) -> None:
    holders = [crowd.ask({"x": 1}), crowd.ask({"x": 1})]
    waiters = [crowd.ask({"x": 1}) for _ in range(3)]
    read.clear()
    strangers.ask({"x": 1})
    assert set(read) == {holders[0].number, holders[1].number, waiters[-1].number}


def test_who_gives_back_and_asks_again_leaves_what_has_come_free_to_whoever_is_first(
    crowd: Crowd, strangers: Crowd, read: list[int]
) -> None:
    """So that one finds a hang-up and all names there, and need not think of the others."""
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    first = strangers.ask({"x": 1})
    behind = [strangers.ask({"x": 1}), strangers.ask({"x": 1})]
    holder.lock.close()
    crowd.machine.released(holder)
    again = crowd.ask({"x": 1})
    assert set(read) & {ticket.number for ticket in (behind[0], again)} == set()
    assert not again.holding
    assert os.path.lexists(holder.lock.place)
    assert not told(first)
    read.clear()
    assert strangers.look(first)
    assert read == []
    assert not os.path.lexists(holder.lock.place)


def test_who_gives_back_and_asks_for_what_nobody_before_it_can_have_goes_and_tells_of_it(crowd: Crowd) -> None:
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    big = crowd.ask({"x": 2})
    holder.lock.close()
    crowd.machine.released(holder)
    assert crowd.ask({"x": 1}).holding
    assert not os.path.lexists(holder.lock.place)
    assert told(big)


def test_who_comes_with_a_priority_goes_before_the_oldest_that_might_go(crowd: Crowd) -> None:
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    crowd.ask({"x": 1})
    holder.lock.close()
    crowd.machine.released(holder)
    assert crowd.ask({"x": 1}, priority=1).holding


def test_who_comes_gets_what_a_priority_keeps_the_oldest_from(crowd: Crowd) -> None:
    holder, _ = crowd.ask({"x": 1, "y": 1}), crowd.ask({"x": 1})
    crowd.ask({"x": 1, "y": 1})
    first = crowd.ask({"y": 1}, priority=1)
    holder.lock.close()
    crowd.machine.released(holder)
    assert crowd.ask({"x": 1}).holding
    assert crowd.look(first)


@pytest.mark.parametrize("fits", [False, True])
def test_who_gives_back_and_asks_again_as_those_that_watched_have_died_removes_what_it_left(
    crowd: Crowd, strangers: Crowd, *, fits: bool
) -> None:
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    strangers.ask({"x": 1}).lock.close()
    holder.lock.close()
    crowd.machine.released(holder)
    again = crowd.ask({"x": 1 if fits else 2})
    assert again.holding == fits
    assert not os.path.lexists(holder.lock.place)
    assert strangers.ask({"x": 1}).holding != fits
