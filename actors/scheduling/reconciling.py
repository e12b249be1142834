"""An attempt is over and may have had its effect: its operation finds out, under a machine lease of its own.

What cannot be found out now (an error, a deadline, a drained host) is deferred: the node stays running in the store,
and a later owner of the run tries again.

An attempt that was found to have done nothing is made again at once if it was interrupted. If it had failed, that it
did nothing makes of it a failure like any other: its policy's `retry` decides. So the failure is stored before anybody
finds out, with the record that stays running, and counts for a later owner too.
"""

from actors.actions import Reconcile, SetTimer, TimerName
from actors.messages import Admitted
from actors.outcomes import Aborted, Failed, Finding, Found, Outcome, Value, storable
from actors.scheduling import spending
from actors.scheduling.asking import ask, withdraw
from actors.scheduling.endings import fail, leave
from actors.scheduling.outcomes import RECOVERABLE, ambiguous, failure_of, unreconciled
from actors.scheduling.retrying import fail_or_retry
from actors.scheduling.state import NodeState, Port
from actors.scheduling.stopping import DEADLINE, RECOVER
from actors.scheduling.turn import Turn
from actors.scheduling.verifying import take_result
from store.contracts import EventKind, Failure
from store.lifecycle import Status
from store.policy import FailureCode, Resume


def recover(turn: Turn, node: NodeState) -> bool:
    """Find out what the attempt of a dead host did, if it may have done something and its operation can tell.

    Args:
        turn: The turn.
        node: A running node, of which nothing runs any more; it does not count as active.

    Returns:
        Whether that is being found out, here or by a later owner.

    """
    state = turn.state
    if node.planned.policy.resume is Resume.DETERMINISTIC:
        return False
    ports = state.ports_of(node)
    if ports is None or (Port.RECONCILE in ports and state.jobs == 0):
        spending.set_aside(turn, node)  # this host only settles requests
        return True
    if Port.RECONCILE not in ports:
        return False
    state.active += 1
    reconcile(turn, node)
    return True


def leave_beside(turn: Turn, node: NodeState) -> bool:
    """Leave to a later owner what cannot be found out while something of a dead attempt still runs.

    Args:
        turn: The turn.
        node: A running node; it does not count as active.

    Returns:
        Whether its operation could find out, so that it was left.

    """
    if node.planned.policy.resume not in RECOVERABLE or not turn.state.has(node, Port.RECONCILE):
        return False
    spending.set_aside(turn, node)
    return True


def note(turn: Turn, node: NodeState, outcome: Failed | Aborted) -> None:
    """Keep how an attempt ended of which is now to be found out what it did; one that was interrupted keeps nothing.

    Args:
        turn: The turn.
        node: A running node, let through to an outside write.
        outcome: How its attempt ended.

    """
    node.wanted = node.stopping == RECOVER
    node.after_s = outcome.after_s if isinstance(outcome, Failed) else None
    match outcome:
        case _ if node.wanted or node.record.cancelling:
            pass
        case Aborted(reason="drain"):
            pass
        case Aborted(reason="cancel"):  # it gave itself up
            turn.change(node, cancelling=True)
        case _:
            turn.change(node, failure=failure_of(outcome))


def reconcile(turn: Turn, node: NodeState) -> None:
    """Find out what the attempt of *node* did; it is running in the store and counts as active."""
    node.reconciling = True
    node.stopping = None
    if turn.state.draining:
        defer(turn, node, "the host was stopped")
        return
    plan = node.plan
    if plan is None:
        raise AssertionError(node.key)
    if plan.policy.claims or plan.keys:
        ask(turn, node, plan, at_once=False)
    else:
        _start(turn, node, None)


def admitted(turn: Turn, node: NodeState, message: Admitted) -> None:
    """Start the reconciliation whose claims the machine has admitted."""
    turn.event(
        EventKind.NODE_RUNNING,
        node,
        attempt=node.record.attempt,
        reconciling=True,
        ticket=message.ticket,
        claims=dict(message.claims or node.planned.policy.claims),
        admitted_boot_ns=message.admitted_boot_ns,
    )
    _start(turn, node, message.number)


def stop_asking(turn: Turn, node: NodeState, why: str) -> None:
    """Leave to a later owner what waits for the machine."""
    withdraw(turn, node)
    defer(turn, node, why)


def found(turn: Turn, node: NodeState, outcome: Outcome) -> None:
    """Settle *node* by what its reconciliation found."""
    resume = node.planned.policy.resume
    match outcome:
        case Failed(message=message, todo=todo):
            defer(turn, node, message, todo)
            return
        case Aborted(reason="timeout"):
            defer(turn, node, "its reconciler ran out of its time", "mend it, or raise its max_seconds")
            return
        case Aborted(reason=reason):
            defer(turn, node, f"stopped by {reason}")
            return
        case _:
            pass
    leave(turn, node, DEADLINE)
    node.reconciling = False
    if isinstance(outcome, Found) and outcome.finding is Finding.RETRY:
        spending.did_nothing(node)
    match outcome:
        case Value():
            turn.change(node, failure=None)  # it has done its work after all
            take_result(turn, node, outcome)
        case Found(finding=Finding.RETRY) if resume in RECOVERABLE:
            _did_nothing(turn, node)
        case Found(finding=Finding.INCOMPATIBLE, message=message):
            failure = Failure(
                code=FailureCode.INCOMPATIBLE, message=storable(message, 4000), todo="look at its outputs"
            )
            fail(turn, node, Status.INCOMPATIBLE, failure)
        case Found(finding=Finding.AMBIGUOUS, message=message) if resume not in RECOVERABLE:
            fail(turn, node, Status.AMBIGUOUS, ambiguous(storable(message, 4000)))
        case _:
            fail(turn, node, *unreconciled(resume))


def _did_nothing(turn: Turn, node: NodeState) -> None:
    """Let an attempt be made again that was interrupted; of one that had failed its policy says whether it is."""
    failure = node.record.failure
    if node.record.cancelling:
        fail(turn, node, Status.CANCELLED, None)
    elif node.wanted or failure is not None:
        failure = failure or failure_of(Aborted(reason=RECOVER))
        fail_or_retry(turn, node, failure, after_s=node.after_s, asked=node.wanted)
    else:
        turn.move(node, Status.READY)
        turn.state.push_ready(node)


def defer(turn: Turn, node: NodeState, why: str, todo: str = "") -> None:
    """Leave *node* running in the store, for a later owner.

    Args:
        turn: The turn.
        node: A running node that counts as active.
        why: What hindered it, for people.
        todo: What a person can do before that; nothing but to resume the run if it is empty.

    """
    leave(turn, node, DEADLINE)
    node.stopping = None
    spending.set_aside(turn, node)
    turn.event(
        EventKind.CLEANUP_ERROR,
        node,
        attempt=node.record.attempt,
        reconciling=True,
        message=f"what the attempt did could not be found out: {storable(why, 4000)}",
        todo=storable(todo, 1000),
    )


def _start(turn: Turn, node: NodeState, number: int | None) -> None:
    plan = node.plan
    if plan is None or node.record.plan_sha256 is None:
        raise AssertionError(node.key)
    attempt = node.record.attempt
    turn.after.append(
        Reconcile(
            node=node.key,
            attempt=attempt,
            plan=plan,
            plan_sha256=node.record.plan_sha256,
            ask=number,
            gate_passed=node.record.gate_passed,
        )
    )
    timer = TimerName(kind=DEADLINE, node=node.key, attempt=attempt, reconciling=True)
    turn.after.append(SetTimer(timer=timer, seconds=plan.max_seconds or plan.policy.max_seconds))
