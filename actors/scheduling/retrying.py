"""A failure of a node: another try when its policy has one left, else the end of it, or a person's turn."""

from typing import Final

from actors.actions import SetTimer, TimerName
from actors.outcomes import storable
from actors.scheduling import spending
from actors.scheduling.endings import fail, forget
from actors.scheduling.state import NodeState
from actors.scheduling.turn import Turn
from store.budgets import Misfit
from store.clock import instant, unix_ms
from store.contracts import Failure
from store.lifecycle import Status
from store.retrying import next_try_ms

RETRY: Final = "retry"


def fail_or_retry(
    turn: Turn, node: NodeState, failure: Failure, *, after_s: float | None = None, asked: bool = False
) -> None:
    """Let *node* fail, or put its next try off, as its policy says; interruptions never come here.

    Args:
        turn: The turn.
        node: A node that prepares, is queued or runs.
        failure: Why, for people.
        after_s: Seconds before which it says itself that another try cannot help.
        asked: Whether somebody asked for another try.

    """
    if node.record.cancelling:
        fail(turn, node, Status.CANCELLED, failure)
        return
    retry, failures = node.planned.policy.retry, node.record.failures + 1
    seed = f"{turn.state.run_id}:{node.key}:{failures}"
    delay = next_try_ms(retry, failures, failure, seed, asked=asked, after_s=after_s or 0.0)
    short = None if delay is None else spending.retry_misfit(turn.state, node)
    if short is not None:
        delay, failure = None, _without_retry(failure, short)
    if delay is None:
        status = Status.BLOCKED if retry.exhausted == "block" else Status.FAILED
        fail(turn, node, status, failure, failures=failures)
        return
    turn.move(
        node,
        Status.CORRECTIVE,
        data={"delay_ms": delay},
        failures=0 if asked else failures,
        failure=failure,
        due_at=instant(unix_ms(turn.stamp.at) + delay),
        delay_ms=delay,
    )
    spending.charge_retry(turn, node)
    wait(turn, node, delay)


def try_anew(turn: Turn, node: NodeState) -> None:
    """Make a node ready that had ended or rested: somebody wants another try, and its failures are counted anew."""
    turn.move(
        node,
        Status.READY,
        failure=None,
        finished_at=None,
        cancelling=False,
        failures=0,
        due_at=None,
        delay_ms=0,
        output_sha256=None,
        evidence=(),
    )
    turn.state.push_ready(node)


def _without_retry(failure: Failure, short: Misfit) -> Failure:
    """Return *failure* with the reason for which it is not tried again."""
    message = storable(f"{failure.message[:3000]}; it is not tried again: {short}", 4000)
    return failure.model_copy(update={"message": message})


def resume_waiting(turn: Turn, node: NodeState) -> None:
    """Go on waiting for a try that another host put off: never longer than it was put off for."""
    record = node.record
    left = unix_ms(record.due_at) - unix_ms(turn.stamp.at) if record.due_at is not None else 0
    wait(turn, node, max(0, min(left, record.delay_ms)))


def wait(turn: Turn, node: NodeState, milliseconds: int) -> None:
    """Set the timer of the next try; a try that is due at once needs none."""
    if milliseconds == 0:
        try_again(turn, node)
        return
    timer = TimerName(kind=RETRY, node=node.key, attempt=node.record.failures)
    turn.now.append(SetTimer(timer=timer, seconds=milliseconds / 1000))


def forget_try(turn: Turn, node: NodeState) -> None:
    """Clear the next try of a corrective node, which comes to another end."""
    forget(turn, node, node.record.failures, [RETRY])
    turn.change(node, due_at=None, delay_ms=0)


def try_again(turn: Turn, node: NodeState) -> None:
    """Make a node whose next try is due ready again."""
    turn.move(node, Status.READY, due_at=None, delay_ms=0)
    turn.state.push_ready(node)
