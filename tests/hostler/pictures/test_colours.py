"""What colour means what."""

import itertools
import re

from hostler.pictures.colours import NOBODY, PHASES, STATUSES, lightness
from hostler.pictures.timeline import ATTEMPTS, Phase
from store.lifecycle import Status


def test_every_phase_and_every_status_has_one() -> None:
    assert set(PHASES) == set(Phase)
    assert set(STATUSES) == set(Status)
    assert all(re.fullmatch("#[0-9a-f]{6}", paint.colour) for paint in PHASES.values())


def test_phases_are_told_apart_without_seeing_colours() -> None:
    """By how light they are, how thick, or by hatching."""
    for one, other in itertools.combinations(PHASES.values(), 2):
        same_shape = one.part == other.part and (one.ground is None) == (other.ground is None)
        assert not same_shape or abs(lightness(one.colour) - lightness(other.colour)) > 5, (one, other)


def test_an_attempt_is_thicker_than_any_waiting() -> None:
    assert {PHASES[phase].part for phase in ATTEMPTS} == {1.0}


def test_dark_text_can_be_read_on_every_box() -> None:
    assert all(lightness(colour) > 70 for colour in (*STATUSES.values(), NOBODY))
    assert (lightness("#000000"), round(lightness("#ffffff"))) == (0, 100)
