"""What the names of the tickets alone tell of a take-over."""

from collections.abc import Sequence

import pytest

from hostres.queue import Demand
from hostres.succession import Takeover, takeover

NAMES = ("1.json", "h.1.aa", "h.2.bb.3", "w.3.cc", "w.12.ee", "w.4.dd", "2.json", ".new.w.9.ff", "notes.txt")
KNOWN = {"1.aa": Demand(number=1, units={"x": 1}), "2.bb": Demand(number=2, units={"y": 1})}


def found(names: Sequence[str], *, hung: Sequence[str] = ("1.aa",), watched: Sequence[str] = ()) -> Takeover | None:
    return takeover(names, 3, watched or ("1.aa", "2.bb"), hung, KNOWN)


def test_the_names_tell_who_has_gone_who_holds_and_who_is_next() -> None:
    one, two = KNOWN.values()
    assert found(NAMES) == Takeover(dead={"h.1.aa": one}, holders={"h.2.bb.3": two}, next_one="w.4.dd")
    both = found(NAMES, hung=("1.aa", "2.bb"))
    assert both == Takeover(dead={"h.1.aa": one, "h.2.bb.3": two}, holders={}, next_one="w.4.dd")
    alone = found(["h.1.aa", "w.3.cc"], watched=("1.aa",))
    assert alone == Takeover(dead={"h.1.aa": one}, holders={}, next_one="")


@pytest.mark.parametrize(
    "name",
    [
        "w.2.ff",
        "z.5.ff",
        "z.2.ff",
        "s.6.1.ff",
        "w.5.ff+3",
        "w.5.ff-3",
        "w.5.1.ff",
        "w.2.1.ff",
        "h.9.ff",
        "h.1.bb",
        "w.x",
    ],
)
def test_what_is_not_plain_goes_the_long_way(name: str) -> None:
    assert found([*NAMES, name]) is None


def test_a_hang_up_of_another_kind_goes_the_long_way() -> None:
    assert found([name for name in NAMES if name != "h.2.bb.3"]) is None
    assert found([name for name in NAMES if name != "h.1.aa"]) is None
    assert found(NAMES, hung=("4.dd",), watched=("1.aa", "2.bb", "4.dd")) is None
    assert found(NAMES, hung=()) is None
