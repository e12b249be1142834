"""What counts as a measurement."""

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

from actors.assignment import Assignment
from actors.context import Context
from actors.control import Control
from actors.pace import measured


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (None, None),
        (1, 1.0),
        (0.25, 0.25),
        (True, 1.0),
        (Decimal("1.5"), 1.5),
        (Fraction(1, 4), 0.25),
        (math.inf, None),
        (-math.inf, None),
        (math.nan, None),
        (10**400, None),
    ],
)
def test_what_is_not_finite_is_unknown(value: Any, number: float | None) -> None:
    """As the time that is left of work that has no speed yet."""
    assert measured(value, "left_s") == number


@pytest.mark.parametrize("value", ["1", b"1", [1], object(), 1j])
def test_what_is_no_number_is_refused_by_its_name(value: Any) -> None:
    """Text that reads like one, too."""
    with pytest.raises(TypeError, match=r"^left_s is .*, not a number$"):
        measured(value, "left_s")


class Hears:
    """What of a host takes progress."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def progress(self, *said: Any) -> None:
        self.said.append(said)

    def beat(self) -> None:
        pass


def context(host: Hears, folder: Path) -> Context:
    assignment = Assignment(run_id="run_0", node="n", attempt=1, folder=folder)
    return Context(assignment, control=Control(), host=cast("Any", host), lease=None)


def test_progress_that_is_passed_on_is_finite_and_within_its_bounds(tmp_path: Path) -> None:
    """Whoever shows it need not ask."""
    host = Hears()
    ctx = context(host, tmp_path)
    ctx.progress(7, "a", speed=-1, left_s=-5)
    ctx.progress(math.nan, "b", speed=math.nan, left_s=math.inf)
    ctx.beat({"fraction": 10**400, "text": "c"})
    assert host.said == [(1.0, "a", 0.0, 0.0), (None, "b", None, None), (None, "c", None, None)]


@pytest.mark.parametrize("wrong", [{"speed": "x"}, {"left_s": [1]}, {"fraction": "0.5"}, {"text": 5}])
def test_progress_of_another_type_is_refused_at_the_call(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """In a thread of the host as in a process of its own: the context is the same."""
    host = Hears()
    with pytest.raises(TypeError, match=f"^{next(iter(wrong))} is"):
        context(host, tmp_path).progress(**{"fraction": 0.5} | wrong)
    assert host.said == []
