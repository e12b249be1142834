"""The short way into a line: whoever wants the same as the last in it waits behind that one, whatever is held."""

import errno
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from hostres.arrival import Arrivals, Scene, scene
from hostres.capacities import set_capacities
from hostres.errors import HostlerError
from hostres.listing import WAITING, Entry
from hostres.ticket import Ticket
from hostres.usher import Usher
from tests.hostres.crowd import Crowd, told
from tests.hostres.test_takeover import the_short_way
from tests.hostres.walk import walk_all

NAMES = ("1.json", "h.1.aa", "h.2.bb.3", "w.3.cc", "w.12.ee", "w.4.dd", "2.json", "13.json", "3.json")
LAST = Entry(12, "ee", WAITING, "w.12.ee")


def test_the_names_tell_who_holds_and_who_came_last() -> None:
    holding = ["h.1.aa", "h.2.bb.3"]
    assert scene(NAMES) == Scene(holding=holding, waiting=3, last=LAST, highest=13, spare=13)
    assert scene(["h.1.aa", "1.json"]) == Scene(holding=["h.1.aa"], waiting=0, last=None, highest=1, spare=0)
    assert scene([]) == Scene(holding=[], waiting=0, last=None, highest=0, spare=0)


@pytest.mark.parametrize(
    "name",
    [
        "z.5.ff",
        "s.6.1.ff",
        "w.5.ff+3",
        "w.5.1.ff",
        "w.x.ff",
        "w.5",
        "n.5.ff.4",
        "h.x.ff",
        ".new.w.9.ff",
        "x.json",
        "notes.txt",
        "w.1234567890123456789.ff",
    ],
)
def test_what_is_not_plain_goes_the_long_way(name: str) -> None:
    assert scene([*NAMES, name]) is None


def test_records_that_are_nobodys_are_left_to_who_tidies_up() -> None:
    assert scene([*NAMES, "5.json", "6.json"]) is not None
    assert scene([*NAMES, "5.json", "6.json", "7.json"]) is None


# -- tickets -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def line(crowd: Crowd, strangers: Crowd) -> list[Ticket]:
    """Two that hold half of x each, and one that waits for half of it."""
    return [crowd.ask({"x": 1}), strangers.ask({"x": 1}), strangers.ask({"x": 1})]


def test_an_equal_waits_behind_the_last(crowd: Crowd, line: list[Ticket]) -> None:
    one, _, first = line
    with the_short_way():
        second = crowd.ask({"x": 1})
        third = crowd.ask({"x": 1})
    assert [second.number, third.number] == [first.number + 1, first.number + 2]
    assert (set(second.watches), second.rank) == ({first.key}, 1)
    assert (set(third.watches), third.rank) == ({second.key}, 2)
    one.lock.close()
    assert second.poll(0) is third.poll(0) is None
    second.withdraw()
    assert third.poll(0) == [second.key]
    assert not crowd.look(third)
    assert set(third.watches) == {first.key}


def test_what_is_told_to_the_last_reaches_whoever_came_after_it(
    crowd: Crowd, strangers: Crowd, line: list[Ticket]
) -> None:
    """Both units come free before the last has moved: it lets the other one know."""
    one, other, first = line
    one.lock.close()
    other.lock.close()
    with the_short_way():
        second = crowd.ask({"x": 1})
    assert not second.holding
    assert strangers.look(first)
    assert told(second)
    assert crowd.look(second)


@pytest.mark.parametrize(
    ("claims", "priority"),
    [({}, 0), ({"x": 2}, 0), ({"y": 1}, 0), ({"x": 1, "y": 1}, 0), ({"x": 1}, 1), ({"x": 1}, -1)],
)
def test_what_is_another_claim_is_thought_of(
    crowd: Crowd, line: list[Ticket], claims: dict[str, int], priority: int
) -> None:
    with pytest.raises(AssertionError, match="the long way"), the_short_way():
        crowd.ask(claims, priority=priority)
    assert crowd.ask({"y": 1}).holding


def test_a_part_of_a_lease_is_thought_of(crowd: Crowd, line: list[Ticket]) -> None:
    assert crowd.ask({"x": 1}, under=line[0]).holding


def test_behind_one_that_has_died_the_machine_is_thought_of(crowd: Crowd, strangers: Crowd, line: list[Ticket]) -> None:
    line[2].lock.close()
    second = crowd.ask({"x": 1})
    assert set(second.watches) == {line[0].key, line[1].key}


def test_where_the_rules_have_changed_the_machine_is_thought_of(crowd: Crowd, line: list[Ticket]) -> None:
    set_capacities(crowd.folder, os.environ, {"x": 3})
    with pytest.raises(AssertionError, match="the long way"), the_short_way():
        crowd.ask({"x": 1})


def test_what_the_machine_does_not_have_is_refused(crowd: Crowd, line: list[Ticket]) -> None:
    with pytest.raises(HostlerError, match="nothing"):
        crowd.ask({"nothing": 1})


def test_of_one_that_cannot_be_made_nothing_is_left(crowd: Crowd, line: list[Ticket]) -> None:
    names, open_before = set(os.listdir(crowd.folder / "t")), len(os.listdir("/proc/self/fd"))
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(os, "mkfifo", side_effect=full), pytest.raises(HostlerError, match="no space"):
        crowd.ask({"x": 1})
    assert set(os.listdir(crowd.folder / "t")) == names
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_who_is_interrupted_as_it_joins_leaves_the_line(crowd: Crowd, line: list[Ticket]) -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    with mock.patch.object(Usher, "take_place", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        crowd.ask({"x": 1})
    assert len(os.listdir("/proc/self/fd")) == open_before
    assert set(crowd.ask({"x": 1}).watches) == {line[2].key}


# -- at random ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [range(60)])
def test_among_equals_nobody_is_forgotten_and_nobody_goes_before_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    short = {True: 0, False: 0}
    real = Arrivals.by_a_short_way

    def counted(*arguments: Any, **named: Any) -> Ticket | None:
        ticket = real(*arguments, **named)
        short[ticket is not None and not ticket.holding] += 1
        return ticket

    monkeypatch.setattr(Arrivals, "by_a_short_way", counted)
    walk_all(seeds, tmp_path, monkeypatch, alike=True, steps=60)
    assert short[True] > len(seeds)
