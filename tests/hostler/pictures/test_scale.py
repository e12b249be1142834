"""From seconds to places on paper."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.pictures.scale import MAX_FOLDS, Scale, merged, scale_of, tick_text, unit_text
from store.lifecycle import Status
from tests.hostler.pictures.support import Story, by_chance

LEFT, RIGHT, APART = 100.0, 900.0, 76.0


def scale(seed: int) -> tuple[float, Scale]:
    found = by_chance(random.Random(seed))
    return found.length_s, scale_of(found, left_px=LEFT, right_px=RIGHT)


@given(st.integers(0, 1 << 32))
def test_time_fills_the_paper_without_gaps_and_later_is_never_further_left(seed: int) -> None:
    length_s, found = scale(seed)
    first, last = found.pieces[0], found.pieces[-1]
    assert (first.start_s, first.start_px) == (0, LEFT)
    assert last.end_px == pytest.approx(RIGHT)
    assert last.end_s == (length_s or 1)
    for before, after in zip(found.pieces, found.pieces[1:], strict=False):
        assert (before.end_s, before.end_px) == (after.start_s, after.start_px)
    places = [found.x(length_s * part / 50) for part in range(-1, 53)]
    assert places == sorted(places)
    assert all(LEFT <= x <= RIGHT + 1e-6 for x in places)
    assert sum(piece.folded for piece in found.pieces) <= MAX_FOLDS


@given(st.integers(0, 1 << 32))
def test_named_moments_stand_apart_and_outside_of_folds(seed: int) -> None:
    _, found = scale(seed)
    step, ticks = found.ticks(APART)
    places = [found.x(s) for s in ticks]
    assert all(after - before >= APART * 0.98 for before, after in itertools.pairwise(places))
    assert len(ticks) <= (RIGHT - LEFT) / APART + 2
    assert all(abs(s / step - round(s / step)) < 1e-6 for s in ticks)
    folded = [piece for piece in found.pieces if piece.folded]
    assert not [s for s in ticks for piece in folded if piece.start_s < s < piece.end_s]


def test_a_night_of_waiting_is_folded_and_the_work_around_it_is_seen() -> None:
    story = Story([("a", None, False), ("b", None, True)])
    story.claim()
    story.start("a", after_s=0)
    story.move("a", Status.COMPLETED, after_s=60)
    story.start("b", after_s=8 * 3600)
    story.move("b", Status.COMPLETED, after_s=60)
    found = scale_of(story.told(), left_px=0, right_px=1000)
    (fold,) = [piece for piece in found.pieces if piece.folded]
    assert fold.end_px - fold.start_px == pytest.approx(64)
    assert found.x(60) > 400


def test_stretches_that_touch_or_overlap_are_one() -> None:
    assert merged([(5, 6), (0, 2), (1, 3), (3, 4)]) == [(0, 4), (5, 6)]


@pytest.mark.parametrize(
    ("s", "step_s", "length_s", "text", "unit"),
    [
        (0.25, 0.05, 1, "0.25", "seconds"),
        (90, 10, 100, "90", "seconds"),
        (90, 30, 600, "1:30", "min:s"),
        (90.5, 0.5, 600, "1:30.5", "min:s"),
        (59.9999999, 10, 600, "1:00", "min:s"),
        (7260, 60, 9000, "2:01", "h:min"),
        (7261, 1, 9000, "2:01:01", "h:min:s"),
        (360_000, 3600, 400_000, "100:00", "h:min"),
    ],
)
def test_moments_are_named_in_units_that_fit(s: float, step_s: float, length_s: float, text: str, unit: str) -> None:
    assert tick_text(s, step_s=step_s, length_s=length_s) == text
    assert unit_text(step_s=step_s, length_s=length_s) == unit
