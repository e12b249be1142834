"""What becomes of a running node as its attempt, or its reconciliation, ends."""

from actors.outcomes import Aborted, Failed, Found, Outcome, Value
from actors.scheduling import reconciling, spending, verifying
from actors.scheduling.endings import fail, forget, leave
from actors.scheduling.outcomes import RECOVERABLE, failure_of, settled
from actors.scheduling.retrying import fail_or_retry
from actors.scheduling.state import NodeState, Port
from actors.scheduling.stopping import DEADLINE, OVERDUE, RECOVER
from actors.scheduling.turn import Turn
from store.contracts import Failure
from store.lifecycle import Status


def ended(turn: Turn, node: NodeState, outcome: Outcome, *, given_up: bool = False) -> None:
    """Settle a running node by how its attempt, or its reconciliation, has ended.

    Args:
        turn: The turn.
        node: The node.
        outcome: How.
        given_up: Whether it has not really ended: nobody waits for it any longer.

    """
    if given_up:
        node.hanging |= {(node.record.attempt, node.reconciling)}
    spending.ended(node, outcome, given_up=given_up)
    if node.reconciling:
        reconciling.found(turn, node, outcome)
        return
    if isinstance(outcome, Value):
        leave(turn, node, DEADLINE)
        verifying.take_result(turn, node, outcome)
        return
    if isinstance(outcome, Found):
        raise TypeError(f"only a reconciliation finds {outcome.finding}")
    if node.record.gate_passed and node.planned.policy.resume in RECOVERABLE and turn.state.has(node, Port.RECONCILE):
        reconciling.note(turn, node, outcome)
        if given_up or (isinstance(outcome, Aborted) and outcome.left):
            reconciling.defer(turn, node, "something of it still runs")
        else:
            forget(turn, node, node.record.attempt, [DEADLINE, OVERDUE])
            reconciling.reconcile(turn, node)
        return
    leave(turn, node, DEADLINE)
    if isinstance(outcome, Failed) and outcome.blocked and not node.record.cancelling:
        fail(turn, node, Status.BLOCKED, failure_of(outcome))
        return
    status, failure = settled_as(node, outcome)
    if status is Status.FAILED and failure is not None:
        after_s = outcome.after_s if isinstance(outcome, Failed) else None
        fail_or_retry(turn, node, failure, after_s=after_s, asked=node.stopping == RECOVER)
    else:
        settle(turn, node, status, failure)


def settle(turn: Turn, node: NodeState, status: Status, failure: Failure | None) -> None:
    """Let a node be as its attempt left it: made again, if that is so and it is not cancelled, or ended."""
    if status is Status.READY and node.record.cancelling:
        fail(turn, node, Status.CANCELLED, None)
    elif status is Status.READY:
        turn.move(node, Status.READY)
        turn.state.push_ready(node)
    else:
        fail(turn, node, status, failure)


def settled_as(node: NodeState, outcome: Failed | Aborted) -> tuple[Status, Failure | None]:
    """Return what becomes of a node whose attempt gave no result."""
    return settled(
        outcome,
        resume=node.planned.policy.resume,
        trusted=node.family.trusted,
        gate_passed=node.record.gate_passed,
    )
