"""The scheduler's one decision: what a message means for a run."""

from typing import Final

from actors.actions import (
    AnswerPublication,
    EndLeftovers,
    GiveBack,
    PublicationAllowed,
    PublicationRefused,
    SetTimer,
    TimerName,
)
from actors.messages import (
    Admitted,
    Begin,
    Drain,
    Due,
    IntegrationEnded,
    Judged,
    LeftoversEnded,
    NotAdmitted,
    PlannerAnswered,
    PublicationWanted,
    RequestsArrived,
    Returned,
    SchedulingMessage,
)
from actors.outcomes import Aborted, Failed, Found, Outcome, Value
from actors.scheduling import clearing, planning, reconciling, retrying, verifying
from actors.scheduling.asking import answered, is_answer, withdraw
from actors.scheduling.compatibility import is_acceptance, leave_alone
from actors.scheduling.endings import fail, forget, leave, released
from actors.scheduling.operators import judge_requests, obey, obey_postponed, run_out_of_time
from actors.scheduling.outcomes import FAILURE_OF_CODE, RECOVERABLE, interrupted, is_repeatable, settled, storable
from actors.scheduling.planning import PLANNING, unask
from actors.scheduling.retrying import RETRY, fail_or_retry
from actors.scheduling.run_end import conclude
from actors.scheduling.state import NodeState, Port, RunState
from actors.scheduling.stopping import DEADLINE, HURRIED_S, OVERDUE, WAIT, hurry, stop
from actors.scheduling.taking_up import fill, run
from actors.scheduling.turn import Decision, Turn
from store.clock import Stamp, unix_ms
from store.contracts import EventKind, Failure
from store.lifecycle import Status
from store.policy import FailureCode

DRAIN: Final = "drain"
"""Reason of a stop, and kind of the timer that ends the grace of a drained host."""
GIVE_WAY: Final = "give-way"
"""Kind of the timer after which, in a drained host, what can be made again gives way."""
LIMIT: Final = "limit"
"""Kind of the timer that ends a run which has a time limit."""


def decide(state: RunState, message: SchedulingMessage, stamp: Stamp) -> Decision:
    """Change *state* by *message* and return what must be written and done.

    Args:
        state: The run; changed in place, at once.
        message: What happened.
        stamp: When, for the records; never a reason for a decision.

    Returns:
        One transaction, and the actions before and after it.

    """
    turn = Turn(state, stamp)
    if state.left:  # the run is no longer this host's; nothing may be written
        match message:
            case Admitted():
                turn.now.append(GiveBack(node=message.node, number=message.number))
            case PublicationWanted():
                _refuse_publication(turn, message, FailureCode.CONFLICT, "this host no longer works on the run")
            case _:
                pass
        return turn.decision()
    match message:
        case Begin():
            _begin(turn)
            leave_alone(turn, asked=any(map(is_acceptance, message.requests)))
            judge_requests(turn, message.requests)
        case LeftoversEnded():
            _recover(turn, message)
        case Admitted():
            _admitted(turn, message)
        case NotAdmitted():
            _not_admitted(turn, message)
        case Returned():
            _returned(turn, message)
        case IntegrationEnded():
            verifying.ended(turn, message)
        case PlannerAnswered():
            planning.answered(turn, message)
        case PublicationWanted():
            _publication(turn, message)
        case RequestsArrived():
            judge_requests(turn, message.requests)
        case Judged():
            obey(turn, message.request, message.ruling)
        case Due():
            _due(turn, message.timer)
        case Drain():
            _drain(turn, message.grace_s)
    fill(turn)
    conclude(turn)
    return turn.decision()


def _begin(turn: Turn) -> None:
    """Take the run up: what was never dispatched is ready again, what ran is looked after first."""
    state = turn.state
    if not state.started:
        turn.start()
    _limit_time(turn)
    reused = [node for node in state.nodes.values() if node.status is Status.COMPLETED]
    if reused:
        turn.event(EventKind.NODES_REUSED, nodes=len(reused))
    for node in state.nodes.values():
        if node.status in {Status.PREPARING, Status.QUEUED}:
            turn.move(node, Status.READY)
            state.push_ready(node)
        elif node.status in {Status.RUNNING, Status.VERIFYING}:
            node.recovering = True
            state.active += 1
        elif node.status is Status.CORRECTIVE:
            retrying.resume_waiting(turn, node)
    recovering = tuple(key for key, node in state.nodes.items() if node.recovering)
    if recovering:
        turn.now.append(EndLeftovers(nodes=recovering))


def _limit_time(turn: Turn) -> None:
    """Set the timer of the run's own limit; after a restart the clock on the wall can only shorten it."""
    state = turn.state
    limit, began = state.plan.limits.seconds, state.started_at
    if limit is None or began is None:
        return
    passed = max(0, unix_ms(turn.stamp.at) - unix_ms(began)) / 1000
    turn.now.append(SetTimer(timer=TimerName(kind=LIMIT), seconds=max(0.0, limit - passed)))


def _recover(turn: Turn, message: LeftoversEnded) -> None:
    state = turn.state
    for key in message.nodes:
        node = state.nodes[key]
        if node.clearing:
            clearing.ended(turn, node, message)
            continue
        if not node.recovering:
            continue
        node.recovering = False
        state.active -= 1
        remaining = clearing.log_ended(turn, node, message)
        node.cleared = remaining is None
        if node.status is Status.VERIFYING:
            verifying.resume(turn, node, remaining)
            continue
        if remaining is not None:
            if not reconciling.leave_beside(turn, node):
                fail(turn, node, *_settled(node, Aborted(reason="recovery", left=(remaining,))))
            continue
        if reconciling.recover(turn, node):
            continue
        status, failure = interrupted(
            resume=node.planned.policy.resume, trusted=node.trusted, cancelling=node.record.cancelling
        )
        _settle(turn, node, status, failure)
    obey_postponed(turn)


def _admitted(turn: Turn, message: Admitted) -> None:
    node = turn.state.nodes[message.node]
    if not is_answer(node, message.number):
        turn.now.append(GiveBack(node=message.node, number=message.number))
        return
    answered(turn, node)
    if node.reconciling:
        reconciling.admitted(turn, node, message)
    elif node.plan is not None:
        run(
            turn,
            node,
            node.plan,
            ticket=message.ticket,
            admitted_boot_ns=message.admitted_boot_ns,
            claims=message.claims,
        )


def _not_admitted(turn: Turn, message: NotAdmitted) -> None:
    node = turn.state.nodes[message.node]
    if not is_answer(node, message.number):
        return
    answered(turn, node)
    if node.reconciling:
        reconciling.defer(turn, node, message.message)
        return
    turn.state.active -= 1
    code = FAILURE_OF_CODE.get(message.code, FailureCode.INTERNAL)
    failure = Failure(code=code, message=storable(message.message, 4000), todo=storable(message.todo, 1000))
    if code is FailureCode.INCOMPATIBLE:
        fail(turn, node, Status.INCOMPATIBLE, failure)
    else:
        fail_or_retry(turn, node, failure)


def _returned(turn: Turn, message: Returned) -> None:
    state = turn.state
    node = state.nodes[message.node]
    released(turn, node, message.attempt, message.release)
    if not _is_current(turn, node, message.attempt, reconciles=message.reconciling):
        node.hanging = max(0, node.hanging - 1)
        turn.event(EventKind.LATE_RESULT, node, attempt=message.attempt, outcome=type(message.outcome).__name__.lower())
        return
    outcome = message.outcome
    if isinstance(outcome, Failed) and outcome.code is FailureCode.CANCELLED and node.stopping is not None:
        outcome = Aborted(reason=node.stopping)  # its publication was refused before it heard of the stop itself
    node.cleared = clearing.ended_whole(outcome)
    _ended(turn, node, outcome)


def _is_current(turn: Turn, node: NodeState, attempt: int, *, reconciles: bool) -> bool:
    """Say whether that attempt, or its reconciliation, is what *node* waits for."""
    return (
        node.status is Status.RUNNING
        and attempt == node.record.attempt
        and not node.recovering
        and node.reconciling is reconciles
        and node.key not in turn.state.deferred
    )


def _ended(turn: Turn, node: NodeState, outcome: Outcome, *, given_up: bool = False) -> None:
    """Settle a running node by how its attempt, or its reconciliation, has ended.

    Args:
        turn: The turn.
        node: The node.
        outcome: How.
        given_up: Whether it has not really ended: nobody waits for it any longer.

    """
    node.hanging += given_up
    if node.reconciling:
        reconciling.found(turn, node, outcome)
        return
    if isinstance(outcome, Value):
        leave(turn, node, DEADLINE, OVERDUE)
        verifying.take_result(turn, node, outcome)
        return
    if isinstance(outcome, Found):
        raise TypeError(f"only a reconciliation finds {outcome.finding}")
    if node.record.gate_passed and node.planned.policy.resume in RECOVERABLE and turn.state.has(node, Port.RECONCILE):
        if given_up or (isinstance(outcome, Aborted) and outcome.left):
            reconciling.defer(turn, node, "something of it still runs")
        else:
            forget(turn, node, node.record.attempt, [DEADLINE, OVERDUE])
            reconciling.reconcile(turn, node)
        return
    leave(turn, node, DEADLINE, OVERDUE)
    status, failure = _settled(node, outcome)
    if status is Status.FAILED and failure is not None:
        fail_or_retry(turn, node, failure)
    else:
        _settle(turn, node, status, failure)


def _settle(turn: Turn, node: NodeState, status: Status, failure: Failure | None) -> None:
    if status is Status.READY and node.record.cancelling:
        fail(turn, node, Status.CANCELLED, None)
    elif status is Status.READY:
        turn.move(node, Status.READY)
        turn.state.push_ready(node)
    else:
        fail(turn, node, status, failure)


def _settled(node: NodeState, outcome: Failed | Aborted) -> tuple[Status, Failure | None]:
    return settled(
        outcome,
        resume=node.planned.policy.resume,
        trusted=node.trusted,
        gate_passed=node.record.gate_passed,
    )


def _publication(turn: Turn, message: PublicationWanted) -> None:
    node = turn.state.nodes[message.node]
    current = _is_current(turn, node, message.attempt, reconciles=message.reconciling)
    if not current or node.stopping is not None:
        why = f"the attempt was stopped by {node.stopping}" if node.stopping else "the attempt is over"
        _refuse_publication(turn, message, FailureCode.CANCELLED, why)
        return
    turn.change(node, gate_passed=True)
    turn.after.append(AnswerPublication(reply_to=message.reply_to, answer=PublicationAllowed()))


def _refuse_publication(turn: Turn, message: PublicationWanted, code: FailureCode, why: str) -> None:
    refusal = PublicationRefused(code=code, message=why, todo="nothing was published")
    turn.now.append(AnswerPublication(reply_to=message.reply_to, answer=refusal))


def _due(turn: Turn, timer: TimerName) -> None:
    state = turn.state
    if timer.kind == DRAIN:
        for node in _working(state):
            stop(turn, node, DRAIN)
        return
    if timer.kind == GIVE_WAY:
        _give_way(turn)
        return
    if timer.kind == LIMIT:
        run_out_of_time(turn)
        return
    node = state.nodes[timer.node]
    if timer.kind == RETRY:
        if node.status is Status.CORRECTIVE and timer.attempt == node.record.failures:
            retrying.try_again(turn, node)
        return
    if timer.kind == PLANNING:
        planning.overdue(turn, node, timer.attempt)
        return
    if timer.kind == WAIT:
        if not is_answer(node, timer.attempt):
            return
        if node.reconciling:
            reconciling.stop_asking(turn, node, "the machine had no room for it")
        else:
            state.active -= 1
            withdraw(turn, node)
            failure = Failure(
                code=FailureCode.TIMEOUT,
                message=f"the machine had no room for it within {node.planned.policy.max_wait_seconds:g} s",
                todo="see who holds it with: hostler top",
            )
            fail_or_retry(turn, node, failure)
        return
    if not _is_current(turn, node, timer.attempt, reconciles=node.reconciling):
        return
    if timer.kind == DEADLINE:
        stop(turn, node, "timeout")
    elif timer.kind == OVERDUE and (state.draining or node.stopping == "timeout"):
        # a callback that ignores its end keeps its lease and keys until it returns; the run does not wait for it
        _ended(turn, node, Aborted(reason=node.stopping or DRAIN), given_up=True)


def _drain(turn: Turn, grace_s: float) -> None:
    """Take nothing up any more; what waits goes back, what runs has *grace_s* seconds.

    The grace is first of all for what would become ambiguous: while some of it runs, what can be made again gives way
    after half of it. Asked again, a drain also shortens the grace of what was told to stop; asked a third time, it
    waits for nothing else either.
    """
    state = turn.state
    state.draining = True
    state.drains += 1
    for node in _working(state):
        if state.drains > 1:
            hurry(turn, node)
        if state.drains > 2:
            stop(turn, node, DRAIN, grace_s=HURRIED_S)
    for node in state.nodes.values():
        if node.status is Status.PREPARING:
            unask(turn, node)
            turn.move(node, Status.READY)
            state.push_ready(node)
        if node.reconciling and node.asking:
            reconciling.stop_asking(turn, node, "the host was stopped")
        if node.status is Status.QUEUED:
            state.active -= 1
            withdraw(turn, node)
            turn.move(node, Status.READY)
            state.push_ready(node)
    turn.now.append(SetTimer(timer=TimerName(kind=GIVE_WAY), seconds=grace_s / 2))
    turn.now.append(SetTimer(timer=TimerName(kind=DRAIN), seconds=grace_s))


def _give_way(turn: Turn) -> None:
    """Stop what can be made again, if something runs that would become ambiguous."""
    running = _working(turn.state)
    repeatable = [node for node in running if is_repeatable(node.planned.policy.resume, trusted=node.trusted)]
    if len(repeatable) < len(running):
        for node in repeatable:
            stop(turn, node, DRAIN)


def _working(state: RunState) -> list[NodeState]:
    """Return the nodes of which an attempt, or its reconciliation, is at work here."""
    return [
        node
        for node in state.nodes.values()
        if node.status is Status.RUNNING and not node.recovering and node.key not in state.deferred
    ]
