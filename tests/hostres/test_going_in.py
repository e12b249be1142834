"""The short way in where nobody waits: what others claim was read before, so that there is room or not by the names."""

import os
from collections.abc import Iterator

import pytest

from hostres.affinity import of_name
from hostres.arrival import SELDOM
from hostres.queue import KEY
from hostres.ticket import Ticket
from tests.hostres.crowd import Crowd
from tests.hostres.support import LIMIT_S, children, coordinator, holder, rows
from tests.hostres.test_takeover import the_short_way

CAPACITY = {"x": 3, "y": 2, "cpu": 2}


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    one = Crowd(capacity=CAPACITY, processes=2)
    yield one
    one.close()


@pytest.fixture
def other(crowd: Crowd) -> Ticket:
    """One of another process, which the first one has seen as it looked at all."""
    ticket = crowd.ask({"x": 1}, by=1)
    crowd.leave(crowd.ask({}))
    return ticket


def test_who_comes_back_goes_in_beside_others_without_looking_at_all(crowd: Crowd, other: Ticket) -> None:
    with the_short_way():
        for _ in range(3):
            ticket = crowd.ask({"x": 2})
            assert ticket.holding
            assert ticket.number > other.number
            crowd.leave(ticket)
        one, two = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    assert [one.holding, two.holding] == [True, True]
    records = [name for name in os.listdir(crowd.folder / "t") if name.endswith(".json")]
    assert len(records) <= 4


def test_where_there_is_no_room_it_looks_whether_somebody_has_ended(crowd: Crowd, other: Ticket) -> None:
    waiter = crowd.ask({"x": 3})
    assert not waiter.holding
    crowd.leave(waiter)
    other.lock.close()
    assert crowd.ask({"x": 3}).holding


def test_one_that_it_does_not_know_is_read(crowd: Crowd, other: Ticket) -> None:
    newer = crowd.ask({"x": 1}, by=1)
    with pytest.raises(AssertionError, match="the long way"), the_short_way():
        crowd.ask({"x": 1})
    assert crowd.ask({"x": 1}).holding
    assert {other.key, newer.key} <= crowd.machine.tickets.known.keys()


def test_one_that_it_has_left_itself_is_tidied_up(crowd: Crowd, other: Ticket) -> None:
    one, two = crowd.ask({"y": 1}), crowd.ask({"y": 1})
    crowd.leave(one)
    crowd.leave(two)
    assert crowd.ask({"y": 1}).holding
    assert f"h.{one.key}" not in os.listdir(crowd.folder / "t")


def test_every_now_and_then_it_looks_at_all(crowd: Crowd, other: Ticket) -> None:
    """So the names of those that were killed do not stay for ever where there is room."""
    other.lock.close()
    for _ in range(SELDOM + 2):
        crowd.leave(crowd.ask({"x": 1}))
    assert f"h.{other.key}" not in os.listdir(crowd.folder / "t")


def test_a_part_of_what_another_one_holds_is_thought_of(crowd: Crowd, other: Ticket) -> None:
    ticket = crowd.ask({"x": 1}, under=other, by=1)
    assert ticket.parents == (other.number,)
    with pytest.raises(AssertionError, match="the long way"), the_short_way():
        crowd.ask({"x": 1})


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is but one CPU")
def test_it_gets_other_cpus_than_those_beside_it(crowd: Crowd) -> None:
    other = crowd.ask({"cpu": 1}, by=1)
    crowd.leave(crowd.ask({}))
    with the_short_way():
        ticket = crowd.ask({"cpu": 1})
    cpus = [of_name(os.path.basename(one.lock.place)) for one in (other, ticket)]
    assert sorted(cpus) == sorted((cpu,) for cpu in sorted(os.sched_getaffinity(0))[:2])


def test_an_exclusive_key_is_one_anothers(crowd: Crowd) -> None:
    key = ("0" * 64,)
    other = crowd.ask({}, keys=key, by=1)
    crowd.leave(crowd.ask({}))
    assert KEY + key[0] in crowd.machine.tickets.known[other.key].units
    assert not crowd.ask({}, keys=key).holding


def test_a_child_that_has_the_last_lease_still_counts(crowd: Crowd) -> None:
    last = crowd.ask({"x": 3}, by=0)
    copy = os.dup(last.lock.fd)
    crowd.leave(last)
    try:
        assert not crowd.ask({"x": 1}).holding
    finally:
        os.close(copy)


def test_two_programs_use_what_they_have_left_at_the_same_time_and_never_too_much() -> None:
    with children() as start, coordinator(x=2) as machine:
        machine.lease({"x": 1}).release()
        first = start(holder({"x": 1}))
        assert first.line().split()[0] == "held"
        for _ in range(20):
            machine.lease({"x": 1}, wait=LIMIT_S).release()
        assert [row.state for row in rows()] == ["admitted"]
