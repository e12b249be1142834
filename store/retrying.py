"""When a failed attempt is made again: one rule for whoever asks. Pure."""

from store.contracts import Failure
from store.policy import Backoff, Retry
from store.values import Domain, digest_bytes

_DIGEST_RANGE = 1 << 64


def next_try_ms(
    retry: Retry, failures: int, failure: Failure, seed: str, *, asked: bool = False, after_s: float = 0.0
) -> int | None:
    """Return how long to wait before the next try of a node, or None if there is none left.

    The same for a failed attempt, one that was stopped as stalled, and one that somebody wants made again: whoever
    asks is not bound by the policy, does not wait, and begins to count anew.

    Args:
        retry: The node's policy.
        failures: How often it has failed, this time included.
        failure: Why it failed.
        seed: As of `delay_ms`.
        asked: Whether somebody asked for another try.
        after_s: Seconds before which the failure itself says that a try cannot help.

    Returns:
        Milliseconds from the failure on.

    """
    if asked:
        return 0
    delay = delay_ms(retry, failures, seed) if may_help(retry, failure) else None
    return None if delay is None else max(delay, round(after_s * 1000))


def may_help(retry: Retry, failure: Failure) -> bool:
    """Say whether trying the same again may help after *failure*."""
    return failure.retryable or failure.code in retry.codes


def delay_ms(retry: Retry, failures: int, seed: str) -> int | None:
    """Return how long to wait before the next try, or None if there is none left.

    Args:
        retry: The node's policy.
        failures: How often it has failed, this time included.
        seed: Names the attempt; jitter is drawn from it, so that the same attempt always waits equally long.

    Returns:
        Milliseconds.

    """
    if failures >= retry.attempts:
        return None
    if isinstance(retry.delays, Backoff):
        return round(_grown(retry.delays, failures) * (1 - retry.delays.jitter * _fraction(seed)) * 1000)
    if not retry.delays:
        return 0
    return round(retry.delays[min(failures, len(retry.delays)) - 1] * 1000)


def _grown(backoff: Backoff, failures: int) -> float:
    return min(backoff.ceiling_s, backoff.first_s * backoff.factor ** (failures - 1))


def _fraction(seed: str) -> float:
    return int(digest_bytes(Domain.RECORD, seed.encode())[:16], 16) / _DIGEST_RANGE
