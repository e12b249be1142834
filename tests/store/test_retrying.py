"""When the next try is due, as a function."""

from hypothesis import given
from hypothesis import strategies as st

from store.contracts import Failure
from store.policy import Backoff, FailureCode, Retry
from store.retrying import delay_ms, may_help


def test_one_attempt_is_all_without_a_policy() -> None:
    assert delay_ms(Retry(), 1, "x") is None


def test_listed_delays_are_taken_in_turn_and_the_last_one_stays() -> None:
    retry = Retry(attempts=5, delays=(0.5, 2.0))
    assert [delay_ms(retry, failures, "x") for failures in range(1, 6)] == [500, 2000, 2000, 2000, None]


def test_growing_delays_double_up_to_their_ceiling() -> None:
    retry = Retry(attempts=6, delays=Backoff(first_s=1, factor=2, ceiling_s=5))
    assert [delay_ms(retry, failures, "x") for failures in range(1, 6)] == [1000, 2000, 4000, 5000, 5000]


@given(st.integers(1, 15), st.text(max_size=20), st.floats(0, 1), st.floats(0, 3600), st.floats(1, 100))
def test_jitter_only_shortens_and_the_same_attempt_always_waits_equally_long(failures, seed, jitter, first, factor):
    """No delay is negative, or longer than its ceiling or an hour."""
    retry = Retry(attempts=16, delays=Backoff(first_s=first, factor=factor, ceiling_s=60, jitter=jitter))
    delay = delay_ms(retry, failures, seed)
    assert delay is not None
    assert 0 <= delay <= 60_000
    assert delay == delay_ms(retry, failures, seed)


def test_jitter_spreads_what_failed_together() -> None:
    retry = Retry(attempts=2, delays=Backoff(first_s=10, jitter=0.5))
    delays = {delay_ms(retry, 1, f"run:{index}") for index in range(50)}
    assert len(delays) > 40
    assert all(5000 <= (delay or 0) <= 10_000 for delay in delays)


def test_a_failure_helps_to_try_again_if_its_code_is_listed_or_it_says_so_itself() -> None:
    retry = Retry(codes=(FailureCode.TIMEOUT,))
    assert may_help(retry, Failure(code=FailureCode.TIMEOUT, message="m"))
    assert may_help(retry, Failure(code=FailureCode.SUBPROCESS, message="m", retryable=True))
    assert not may_help(retry, Failure(code=FailureCode.SUBPROCESS, message="m"))
