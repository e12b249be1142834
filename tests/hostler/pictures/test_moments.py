"""When each event happened, although no single clock knows."""

import pytest

from hostler.pictures.moments import Moment, Reading, moments
from store.clock import instant
from tests.store.support import EPOCH_MS


def reading(wall_s: float, boot_s: float, *, claims: bool = False) -> Reading:
    return Reading(at=instant(EPOCH_MS + round(wall_s * 1000)), boot_ns=round(boot_s * 1e9), claims=claims)


def seconds(*readings: Reading) -> list[float]:
    return [moment.s for moment in moments(readings)]


def test_within_one_boot_the_boot_clock_counts_and_a_step_of_the_wall_clock_does_not() -> None:
    """Somebody sets the clock an hour back while a run works."""
    assert seconds(reading(0, 50), reading(-3600, 51.5)) == [0, 1.5]


def test_after_a_reboot_the_wall_clock_counts() -> None:
    assert seconds(reading(0, 5000), reading(90, 12, claims=True), reading(91, 13.25)) == [0, 90, 91.25]


def test_a_new_host_in_the_same_boot_is_placed_exactly() -> None:
    assert seconds(reading(0, 100), reading(7.0, 107.123, claims=True)) == pytest.approx([0, 7.123])


def test_a_reboot_of_a_machine_whose_new_boot_is_older_is_seen_by_the_clocks() -> None:
    """The boot clock has gone on, yet by another length than the wall clock."""
    assert seconds(reading(0, 100), reading(9000, 8000, claims=True)) == [0, 9000]


def test_time_never_goes_backwards() -> None:
    assert seconds(reading(0, 100), reading(-50, 20, claims=True), reading(-50, 19)) == [0, 0, 0]


def test_a_moment_places_what_the_boot_clock_said_beside_it() -> None:
    moment = Moment(s=5.0, boot_ns=100_000_000_000)
    assert moment.when(98_500_000_000) == 3.5
    assert moment.when(1) == 0.0
