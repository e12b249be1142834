"""The scheduler's one decision: what a message means for a run."""

from typing import Final

from actors.actions import (
    AnswerPublication,
    EndLeftovers,
    GiveBack,
    LookAtLease,
    PublicationAllowed,
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
    LeaseSeen,
    LeftoversEnded,
    LogCut,
    NotAdmitted,
    PlannerAnswered,
    Probed,
    PublicationWanted,
    PulseTaken,
    RequestsArrived,
    Returned,
    SchedulingMessage,
    SpendingReported,
)
from actors.outcomes import Aborted, Failed, Found, storable
from actors.scheduling import (
    attempt_end,
    clearing,
    draining,
    external,
    liveness,
    planning,
    reconciling,
    retrying,
    spending,
    verifying,
)
from actors.scheduling.asking import answered, is_answer, withdraw
from actors.scheduling.compatibility import is_acceptance, leave_alone
from actors.scheduling.draining import DRAIN, GIVE_WAY
from actors.scheduling.endings import fail, released
from actors.scheduling.leasing import LEASE
from actors.scheduling.operators import judge_requests, obey, obey_postponed, run_out_of_time
from actors.scheduling.outcomes import FAILURE_OF_CODE, interrupted
from actors.scheduling.planning import PLANNING
from actors.scheduling.refusing import refuse_publication, too_late
from actors.scheduling.retrying import RETRY, fail_or_retry
from actors.scheduling.run_end import conclude
from actors.scheduling.state import NodeState, RunState
from actors.scheduling.stopping import DEADLINE, OVERDUE, RECOVER, STALL, WAIT, stop
from actors.scheduling.taking_up import fill, run
from actors.scheduling.turn import Decision, Turn
from store.clock import Stamp, unix_ms
from store.contracts import EventKind, Failure, Request
from store.lifecycle import Status
from store.policy import FailureCode

GIVEN_UP: Final = frozenset({"timeout", STALL, RECOVER})
"""Reasons of a stop that is not waited for, should the work ignore it."""
LIMIT: Final = "limit"
"""Kind of the timer that ends a run which has a time limit."""


def decide(state: RunState, stamp: Stamp, *messages: SchedulingMessage, full: bool = False) -> Decision:
    """Change *state* by *messages* and return what must be written and done.

    Args:
        state: The run; changed in place, at once.
        stamp: When, for the records; never a reason for a decision.
        *messages: What happened. Of several each is about another node: no node starts more than once a transaction.
        full: Whether the disk of the store has room for the end of what runs alone.

    Returns:
        One transaction, and the actions before and after it.

    """
    turn = Turn(state, stamp)
    if state.left:  # the run is no longer this host's; nothing may be written
        for message in messages:
            too_late(turn, message)
        return turn.decision()
    if full and not state.full and not isinstance(messages[0], Begin):  # until then nothing was taken up here
        draining.give_back(turn)
    state.full = full
    for message in messages:
        _take(turn, message)
    fill(turn)
    conclude(turn)
    return turn.decision()


def _take(turn: Turn, message: SchedulingMessage) -> None:  # noqa: C901 - a line a message
    state = turn.state
    match message:
        case Begin():
            _begin(turn, message.requests)
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
        case SpendingReported():
            spending.reported(turn, message)
        case LogCut(stream=stream, missing=missing):
            node, why = state.nodes[message.node], storable(message.why, 1000)
            turn.event(EventKind.LOG_CUT, node, attempt=message.attempt, stream=stream, bytes=missing, message=why)
        case RequestsArrived():
            judge_requests(turn, message.requests)
        case LeaseSeen():
            external.seen(turn, state.nodes[message.node], message.attempt, message.left_s)
        case Judged():
            obey_judged = external.obey_work if message.request.kind in external.KINDS else obey
            obey_judged(turn, message.request, message.ruling)
        case Due():
            _due(turn, message.timer)
        case PulseTaken() | Probed():
            _seen(turn, message)
        case Drain():
            draining.drain(turn, message.grace_s)


def _seen(turn: Turn, message: PulseTaken | Probed) -> None:
    node = turn.state.nodes[message.node]
    if not _is_current(turn, node, message.attempt, reconciles=False):
        return
    if isinstance(message, Probed):
        liveness.probed(turn, node, message)
    else:
        liveness.taken(turn, node, message)


def _begin(turn: Turn, requests: tuple[Request, ...]) -> None:
    """Take the run up: what was never dispatched is ready again, what ran is looked after first."""
    state = turn.state
    turn.begins = True
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
        elif node.worker is not None:
            external.take_over(turn, node, requests)
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
                fail(turn, node, *attempt_end.settled_as(node, Aborted(reason="recovery", left=(remaining,))))
            continue
        if reconciling.recover(turn, node):
            continue
        status, failure = interrupted(
            resume=node.planned.policy.resume, trusted=node.family.trusted, cancelling=node.record.cancelling
        )
        attempt_end.settle(turn, node, status, failure)
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
    if not isinstance(message.outcome, Found):
        spending.report(turn, node, message.attempt, message.outcome.usage)
    if not _is_current(turn, node, message.attempt, reconciles=message.reconciling):
        node.hanging -= {(message.attempt, message.reconciling)}
        turn.event(EventKind.LATE_RESULT, node, attempt=message.attempt, outcome=type(message.outcome).__name__.lower())
        return
    outcome = message.outcome
    if isinstance(outcome, Failed) and outcome.code is FailureCode.CANCELLED and node.stopping is not None:
        outcome = Aborted(reason=node.stopping)  # its publication was refused before it heard of the stop itself
    node.cleared = clearing.ended_whole(outcome)
    attempt_end.ended(turn, node, outcome)


def _is_current(turn: Turn, node: NodeState, attempt: int, *, reconciles: bool) -> bool:
    """Say whether that attempt, or its reconciliation, is what *node* waits for."""
    return (
        node.status is Status.RUNNING
        and attempt == node.record.attempt
        and not node.recovering
        and node.reconciling is reconciles
        and node.key not in turn.state.deferred
    )


def _publication(turn: Turn, message: PublicationWanted) -> None:
    node = turn.state.nodes[message.node]
    current = _is_current(turn, node, message.attempt, reconciles=message.reconciling)
    if not current or node.stopping is not None:
        why = f"the attempt was stopped by {node.stopping}" if node.stopping else "the attempt is over"
        refuse_publication(turn, message, FailureCode.CANCELLED, why)
        return
    turn.change(node, gate_passed=True)
    turn.after.append(AnswerPublication(reply_to=message.reply_to, answer=PublicationAllowed()))


def _due(turn: Turn, timer: TimerName) -> None:
    state = turn.state
    if timer.kind == DRAIN:
        draining.end(turn)
        return
    if timer.kind == GIVE_WAY:
        draining.give_way(turn)
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
    if _is_current(turn, node, timer.attempt, reconciles=timer.reconciling):
        _due_of_attempt(turn, node, timer)


def _due_of_attempt(turn: Turn, node: NodeState, timer: TimerName) -> None:
    if timer.kind == LEASE:
        turn.now.append(LookAtLease(node=node.key, attempt=timer.attempt))
    elif timer.kind == DEADLINE and node.worker is not None:
        external.out_of_time(turn, node)
    elif timer.kind == DEADLINE:
        stop(turn, node, "timeout")
    elif timer.kind == STALL and not node.reconciling:
        liveness.look(turn, node)
    elif timer.kind == OVERDUE and (turn.state.draining or node.stopping in GIVEN_UP):
        # a callback that ignores its end keeps its lease and keys until it returns; the run does not wait for it
        attempt_end.ended(turn, node, Aborted(reason=node.stopping or DRAIN), given_up=True)
