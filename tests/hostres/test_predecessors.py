"""Whose heir a waiter may be, by the names and claims of all tickets."""

import pytest

from hostres.heirs import predecessor
from hostres.listing import Entry, Listing
from hostres.queue import Demand

X = {"x": 1}
ROOM = {"x": 1, "y": 2, "cpu": 1}


def whose(
    *names: str,
    me: dict[str, int] | None = None,
    claims: dict[int, dict[str, int]] | None = None,
    room: dict[str, int] | None = None,
    priority: int = 0,
    allowed: set[int] | None = None,
) -> int | None:
    """Return the number of the one whose heir ticket 9 may be."""

    def demand_of(entry: Entry) -> Demand | None:
        units = (claims or {}).get(entry.number, X)
        return Demand(number=entry.number, units=units, asked_boot_ns=0) if units else None

    heir = Demand(number=9, units=me or X, asked_boot_ns=0, priority=priority)
    found = predecessor(Listing.of(names), heir, demand_of, room or ROOM, lambda: allowed or {0})
    return found.number if found else None


def test_who_wants_what_the_only_one_before_it_holds_or_is_to_hold_is_its_heir() -> None:
    assert whose("h.1.a") == 1
    assert whose("h.1.a", "h.2.b", claims={2: {"y": 1}}) == 1
    assert whose("w.1.a") == 1
    assert whose("h.1.a", "n.2.b.1") == 2
    assert whose("h.1.a", "n.2.b.1", "n.3.c.2", "w.10.d") == 3


@pytest.mark.parametrize(
    "names",
    [(), ("h.1.a", "h.2.b"), ("w.1.a", "w.2.b"), ("z.1.a",), ("h.1.a", "z.2.b"), ("h.1.a", "w.2.b+1"),
     ("h.1.a", "n.2.b.1", "w.10.c-1"), ("h.1.a", "s.2.1.b"), ("h.1.a", "w.2.1.b")],
    ids=["nobody", "two alike", "one that is no heir", "a dozing one", "a dozing one behind a holder", "a priority",
         "a priority behind it", "a part", "one that waits for a part"],
)  # fmt: skip
def test_who_might_not_be_the_only_one_to_go_is_no_heir(names: tuple[str, ...]) -> None:
    assert whose(*names) is None


def test_who_fits_beside_the_other_or_wants_something_else_is_no_heir() -> None:
    assert whose("h.1.a", room={"x": 2}) is None
    assert whose("h.1.a", me={"x": 1, "y": 1}) is None
    assert whose("h.1.a", claims={1: {}}) is None  # its record cannot be read
    assert whose("h.1.a", priority=1) is None
    assert whose("h.1.a", "h.2.b", claims={2: {"x": 1, "y": 1}}) is None  # as after a capacity was lowered
    assert whose("w.1.a", "h.2.b", claims={1: {"y": 1}}) is None


def test_who_claims_processors_gets_just_those_of_its_predecessor() -> None:
    one = {"cpu": 1}
    assert whose("h.1.a.1", me=one, claims={1: one}) == 1
    assert whose("h.1.a.1", "n.2.b.1.1", me=one, claims={1: one, 2: one}) == 2
    assert whose("h.1.a", me=one, claims={1: one}) is None  # it has none of its own
    assert whose("h.1.a.2", me=one, claims={1: one}) is None  # which the waiter may not use
    assert whose("w.1.a", me=one, claims={1: one}) is None  # nobody knows which it will get
