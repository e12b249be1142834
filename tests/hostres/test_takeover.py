"""What the names of the tickets alone tell whoever stands first, and the short way that it then goes."""

import contextlib
from collections.abc import Iterator, Sequence
from unittest import mock

import pytest

from hostres.listing import Listing
from hostres.succession import Front, front
from tests.hostres.crowd import Crowd, told

NAMES = ("1.json", "h.1.aa", "h.2.bb.3", "w.3.cc", "w.12.ee", "w.4.dd", "2.json", ".new.w.9.ff", "notes.txt")


def found(names: Sequence[str], watched: Sequence[str] = ("1.aa", "2.bb")) -> Front | None:
    return front(names, 3, watched)


def test_the_names_tell_who_holds_and_who_is_next() -> None:
    assert found(NAMES) == Front(holders={"h.1.aa": "1.aa", "h.2.bb.3": "2.bb"}, next_one="w.4.dd")
    assert found([*NAMES, "h.9.ff"]) == Front(
        holders={"h.1.aa": "1.aa", "h.2.bb.3": "2.bb", "h.9.ff": "9.ff"}, next_one="w.4.dd"
    )
    assert found(["h.1.aa", "w.3.cc"], watched=("1.aa",)) == Front(holders={"h.1.aa": "1.aa"}, next_one="")


@pytest.mark.parametrize(
    "name",
    ["w.2.ff", "z.5.ff", "z.2.ff", "s.6.1.ff", "w.5.ff+3", "w.5.ff-3", "w.5.1.ff", "w.2.1.ff", "w.x", "h.x", "h.x.y"],
)
def test_what_is_not_plain_goes_the_long_way(name: str) -> None:
    assert found([*NAMES, name]) is None


def test_one_that_was_watched_and_is_not_there_any_more_was_found_by_somebody_else() -> None:
    assert found([name for name in NAMES if name != "h.2.bb.3"]) is None
    assert found([name for name in NAMES if name != "h.1.aa"]) is None
    assert found(NAMES, watched=("1.aa", "2.bb", "4.dd")) is None


@pytest.mark.parametrize("number", [1, 2])
def test_one_before_it_that_is_an_heir_goes_first(number: int) -> None:
    assert found([*NAMES, f"n.{number}.ff.1"]) is None
    assert found([*NAMES, f"n.{number + 10}.ff.1"]) is not None


# -- the short way -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def the_short_way() -> Iterator[None]:
    """Nobody makes a list of what there is."""
    with mock.patch.object(Listing, "of", side_effect=AssertionError("the long way")):
        yield


def test_who_comes_to_stand_first_watches_all_that_hold_and_is_woken_by_each(crowd: Crowd, strangers: Crowd) -> None:
    one, other = crowd.ask({"x": 1}), strangers.ask({"x": 1})
    first, second = crowd.ask({"x": 1}), strangers.ask({"x": 1})
    one.lock.close()
    with the_short_way():
        assert crowd.look(first)
        assert told(second)
        assert not strangers.look(second)
        assert set(second.watches) == {other.key, first.key}
        assert second.rank == 0
        assert not told(second)
    other.lock.close()
    assert second.poll(0) == [other.key]
    with the_short_way():
        assert strangers.look(second)


def test_who_comes_to_stand_first_finds_one_that_has_ended_before_it_watched(crowd: Crowd, strangers: Crowd) -> None:
    one, other = crowd.ask({"x": 1}), strangers.ask({"x": 1})
    first, second, third = crowd.ask({"x": 1}), strangers.ask({"x": 1}), crowd.ask({"x": 1})
    one.lock.close()
    with the_short_way():
        assert crowd.look(first)
        other.lock.close()
        assert strangers.look(second)
        assert second.watches == {}
        assert told(third)
        assert not crowd.look(third)
        assert set(third.watches) == {first.key, second.key}


def test_what_frees_more_than_it_takes_is_thought_of(crowd: Crowd, strangers: Crowd) -> None:
    """Somebody else may go too."""
    one, other = crowd.ask({"x": 1}), strangers.ask({"x": 1, "y": 1})
    first, second, third = crowd.ask({"x": 1}), strangers.ask({"x": 1}), crowd.ask({"y": 1})
    one.lock.close()
    assert crowd.look(first)
    other.lock.close()
    assert strangers.look(second)
    assert told(third)
    assert crowd.look(third)


def test_who_is_told_something_while_it_expects_others_to_move_looks_the_long_way(crowd: Crowd) -> None:
    one, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    first, second = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    second.roused.note_again(first.waiting)
    one.lock.close()
    assert crowd.look(first)
    with mock.patch.object(Listing, "of", wraps=Listing.of) as listed:
        assert not crowd.look(second)
    assert listed.called
