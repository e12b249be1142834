"""Until when work is a worker's: by the clock of the boot, and after a reboot by the wall, never for longer."""

from hypothesis import given
from hypothesis import strategies as st

from store.clock import Stamp, instant
from store.leases import Term, work_key

SECONDS = st.integers(1, 86_400).map(float)
MOMENTS = st.integers(0, 10**6)


def at(second: float, *, wall: float | None = None) -> Stamp:
    """Return a moment so many seconds after boot; *wall* is what the wall clock says then."""
    return Stamp(at=instant(round((second if wall is None else wall) * 1000)), boot_ns=round(second * 1e9))


@given(SECONDS, MOMENTS, MOMENTS)
def test_a_lease_lasts_its_length_whatever_the_wall_clock_does(seconds, passed, wall):
    """Field case 72: once it has expired it stays so; whoever notices first is right."""
    term = Term.begin(seconds, at(1000), "boot")
    assert term.left_s(at(1000 + passed, wall=wall), "boot") == max(0.0, seconds - passed)


@given(SECONDS, MOMENTS)
def test_after_a_reboot_a_lease_lasts_what_the_wall_clock_leaves_and_never_longer(seconds, wall):
    """A clock that was set back does not make it longer."""
    term = Term.begin(seconds, at(5000, wall=5000), "boot")
    left = term.left_s(at(3, wall=wall), "another")
    assert left == max(0.0, min(seconds, 5000 + seconds - wall))


@given(SECONDS, SECONDS, MOMENTS)
def test_a_beat_never_shortens_a_lease(first, second, passed):
    """It lasts at least that long from now on."""
    now = at(1000 + passed)
    term = Term.begin(first, at(1000), "boot")
    extended = term.extended(second, now, "boot")
    assert extended.left_s(now, "boot") == max(second, term.left_s(now, "boot"))


def test_an_attempt_is_named_by_its_run_its_node_and_its_number():
    """As in every idempotency key."""
    assert work_key("run_x", "a/b", 2) == "run_x:a/b:2"
