"""What an outcome makes of a running node; lifecycle.md's table as a function, first match wins."""

from typing import Final

from actors.outcomes import Aborted, Failed, Finding, Found, Outcome, Value, storable
from hostres.errors import Code
from store.contracts import Failure
from store.lifecycle import Status
from store.policy import FailureCode, Resume

RECOVERABLE: Final = frozenset({Resume.VERIFIED_RECEIPT, Resume.RECOVERABLE_TRANSACTION})
REPEATABLE: Final = RECOVERABLE | {Resume.DETERMINISTIC}
"""Classes whose interrupted attempt may simply be made again while its gate has not been passed."""
UNKNOWABLE: Final = frozenset({Resume.AMBIGUOUS_AFTER_DISPATCH, Resume.NON_RESUMABLE_LIVE})
CERTAIN_OF_CODE: Final = frozenset(
    {
        FailureCode.INVALID_DATA,
        FailureCode.UNSUPPORTED_PLAN,
        FailureCode.INCOMPATIBLE,
    }
)
"""Failures of trusted code that say that nothing was done."""
FAILURE_OF_CODE: Final = {
    Code.INVALID_CLAIMS: FailureCode.INCOMPATIBLE,
    Code.CONFLICT: FailureCode.CONFLICT,
    Code.PROFILE_MISMATCH: FailureCode.CONFLICT,
    Code.INVALID_PROFILE: FailureCode.CONFLICT,
    Code.UNSAFE_STATE: FailureCode.UNAVAILABLE,
    Code.UNAVAILABLE: FailureCode.UNAVAILABLE,
    Code.WAIT_ABORTED: FailureCode.UNAVAILABLE,
}
"""What a refusal of the machine means for a node; anything else is internal."""


def is_repeatable(resume: Resume, *, trusted: bool) -> bool:
    """Say whether an interrupted attempt may simply be made again while its gate has not been passed."""
    return resume in REPEATABLE and not trusted


def settled(
    outcome: Failed | Aborted, *, resume: Resume, trusted: bool, gate_passed: bool
) -> tuple[Status, Failure | None]:
    """Say which status an attempt that gave no value leaves its node in, and why.

    Args:
        outcome: How it ended.
        resume: The node's resume class.
        trusted: Whether it runs the workflow's own code.
        gate_passed: Whether the attempt was let through to an outside write.

    Returns:
        The status, and the failure to show with it; none for a node that is simply cancelled or ready again.

    """
    failure = failure_of(outcome)
    if isinstance(outcome, Failed) and not outcome.dispatched:
        return Status.FAILED, failure
    if isinstance(outcome, Aborted) and outcome.left:
        return _beside_what_is_left(resume, trusted=trusted, gate_passed=gate_passed), failure
    if isinstance(outcome, Aborted) and not outcome.dispatched:
        return _stopped_in_time(outcome, failure)
    if trusted:
        certain = isinstance(outcome, Failed) and outcome.code in CERTAIN_OF_CODE
        return (Status.FAILED if certain else Status.AMBIGUOUS_CODE), failure
    if gate_passed and resume in RECOVERABLE:
        return unreconciled(resume)
    if isinstance(outcome, Aborted):
        if outcome.reason == "cancel":
            return Status.CANCELLED, None
        if outcome.reason == "drain" and resume in REPEATABLE:
            return Status.READY, None
    if resume in UNKNOWABLE:
        return Status.AMBIGUOUS, failure
    return Status.FAILED, failure


def _beside_what_is_left(resume: Resume, *, trusted: bool, gate_passed: bool) -> Status:
    """Say where a node ends or rests of which something still runs: may it simply be tried again after that?"""
    if trusted:
        return Status.AMBIGUOUS_CODE
    if gate_passed and resume in RECOVERABLE:
        return Status.INCOMPATIBLE
    return Status.AMBIGUOUS if resume in UNKNOWABLE else Status.BLOCKED


def _stopped_in_time(outcome: Aborted, failure: Failure) -> tuple[Status, Failure | None]:
    """Say what becomes of an attempt that was stopped before its code was reached: nothing can have happened."""
    match outcome.reason:
        case "cancel":
            return Status.CANCELLED, None
        case "drain":
            return Status.READY, None
        case _:
            return Status.FAILED, failure


def interrupted(*, resume: Resume, trusted: bool, cancelling: bool) -> tuple[Status, Failure | None]:
    """Say what becomes of an attempt whose host died, once nothing of it runs any more.

    Args:
        resume: The node's resume class.
        trusted: Whether it ran the workflow's own code.
        cancelling: Whether the run is being cancelled.

    """
    if trusted:
        return Status.AMBIGUOUS_CODE, ambiguous(
            "the workflow's code was interrupted; whether it did its work is unknown"
        )
    if resume is Resume.DETERMINISTIC:
        return (Status.CANCELLED if cancelling else Status.READY), None
    return unreconciled(resume)


def unreconciled(resume: Resume) -> tuple[Status, Failure]:
    """Say what becomes of an effect that may have happened and that nothing can check."""
    if resume in RECOVERABLE:
        return Status.INCOMPATIBLE, Failure(
            code=FailureCode.INCOMPATIBLE,
            message="interrupted after it may have written, and its operation cannot check what it did",
            todo="look at its outputs, then start a new run",
        )
    return Status.AMBIGUOUS, ambiguous("interrupted after it was sent; whether it happened is unknown")


def ambiguous(message: str) -> Failure:
    """Return what people are told of an effect that may have happened."""
    return Failure(code=FailureCode.AMBIGUOUS, message=message, todo="look whether it happened, then say so")


def check_storable(outcome: Outcome) -> None:
    """Refuse what no failure of a node can be made of, where it is found out and before anything is decided about it.

    Raises:
        ValidationError: A field of it is of another type.

    """
    match outcome:
        case Failed() | Aborted():
            failure_of(outcome)
        case Found(finding=finding, message=message):
            Finding(finding)
            Failure(code=FailureCode.AMBIGUOUS, message=message)
        case Value():
            pass


def failure_of(outcome: Failed | Aborted) -> Failure:
    """Return what people are told of *outcome*."""
    match outcome:
        case Failed():
            return Failure(
                code=outcome.code,
                message=storable(outcome.message, 4000),
                todo=storable(outcome.todo, 1000),
                retryable=outcome.retryable,
            )
        case Aborted(left=left) if left:
            return Failure(
                code=FailureCode.CONFLICT,
                message=storable(f"could not be ended: {', '.join(left)}", 4000),
                todo="end these processes, then say how the node goes on",
            )
        case Aborted(reason="timeout"):
            return Failure(
                code=FailureCode.TIMEOUT,
                message="ran out of its time and was stopped",
                todo="raise its max_seconds, or give it less to do",
            )
        case Aborted(reason="stall"):
            return Failure(
                code=FailureCode.STALLED,
                message="showed no sign of life for twice its interval and was stopped",
                todo="read its log with: hostler logs RUN NODE; or raise the seconds of its heartbeat",
            )
        case Aborted(reason="recover"):
            return Failure(
                code=FailureCode.STALLED,
                message="was stopped to be tried again",
                todo="read its log with: hostler logs RUN NODE",
            )
        case Aborted(reason=reason):
            return Failure(code=FailureCode.CANCELLED, message=f"stopped by {reason}")
