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
    WithdrawAsk,
)
from actors.messages import (
    Aborted,
    Admitted,
    Begin,
    Drain,
    Due,
    Failed,
    Judged,
    LeftoversEnded,
    NotAdmitted,
    PublicationWanted,
    RequestsArrived,
    Returned,
    SchedulingMessage,
    Value,
)
from actors.scheduling.endings import complete, fail, forget, leave, released
from actors.scheduling.operators import judge_requests, obey
from actors.scheduling.outcomes import interrupted, settled, storable
from actors.scheduling.run_end import conclude
from actors.scheduling.state import NodeState, RunState
from actors.scheduling.stopping import OVERDUE, give_up_after, stop
from actors.scheduling.taking_up import DEADLINE, WAIT, fill, replan, run
from actors.scheduling.turn import Decision, Turn
from hostres.errors import Code
from store.clock import Stamp
from store.contracts import EventKind, Failure, FailureCode
from store.lifecycle import Status

DRAIN: Final = "drain"

FAILURE_OF_CODE: Final = {
    Code.INVALID_CLAIMS: FailureCode.INCOMPATIBLE,
    Code.CONFLICT: FailureCode.CONFLICT,
    Code.PROFILE_MISMATCH: FailureCode.CONFLICT,
    Code.UNSAFE_STATE: FailureCode.UNAVAILABLE,
    Code.UNAVAILABLE: FailureCode.UNAVAILABLE,
}
"""What a refusal of the machine means for a node; anything else is internal."""


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
                turn.now.append(GiveBack(node=message.node, attempt=message.attempt))
            case PublicationWanted():
                _refuse_publication(turn, message, FailureCode.CONFLICT, "this host no longer works on the run")
            case _:
                pass
        return turn.decision()
    match message:
        case Begin():
            _begin(turn)
            judge_requests(turn, message.requests)
        case LeftoversEnded():
            _recover(turn, message)
        case Admitted():
            _admitted(turn, message)
        case NotAdmitted():
            _not_admitted(turn, message)
        case Returned():
            _returned(turn, message)
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
    reused = [node for node in state.nodes.values() if node.status is Status.COMPLETED]
    if reused:
        turn.event(EventKind.NODES_REUSED, nodes=len(reused))
    for node in state.nodes.values():
        if node.status in {Status.PREPARING, Status.QUEUED}:
            turn.move(node, Status.READY)
            state.push_ready(node)
        elif node.status is Status.RUNNING:
            node.recovering = True
            state.active += 1
    recovering = tuple(key for key, node in state.nodes.items() if node.recovering)
    if recovering:
        turn.now.append(EndLeftovers(nodes=recovering))


def _recover(turn: Turn, message: LeftoversEnded) -> None:
    state = turn.state
    for key in message.nodes:
        node = state.nodes[key]
        if not node.recovering:
            continue
        node.recovering = False
        state.active -= 1
        if message.ended.get(key):
            turn.event(EventKind.LEFTOVER, node, attempt=node.record.attempt, ended=list(message.ended[key]))
        remaining = message.remaining.get(key)
        if remaining:
            turn.event(EventKind.CLEANUP_ERROR, node, attempt=node.record.attempt, message=remaining)
            fail(turn, node, *_settled(node, Aborted(reason="recovery", left=(remaining,))))
            continue
        status, failure = interrupted(
            resume=node.planned.policy.resume, trusted=node.trusted, cancelling=node.record.cancelling
        )
        _settle(turn, node, status, failure)


def _admitted(turn: Turn, message: Admitted) -> None:
    node = turn.state.nodes[message.node]
    if node.status is not Status.QUEUED or message.attempt != node.record.attempt + 1:
        turn.now.append(GiveBack(node=message.node, attempt=message.attempt))
        return
    forget(turn, node, message.attempt, [WAIT])
    plan = replan(turn.state, node)
    run(
        turn,
        node,
        plan,
        node.record.plan_sha256 or "",
        ticket=message.ticket,
        admitted_boot_ns=message.admitted_boot_ns,
    )


def _not_admitted(turn: Turn, message: NotAdmitted) -> None:
    node = turn.state.nodes[message.node]
    if node.status is not Status.QUEUED or message.attempt != node.record.attempt + 1:
        return
    forget(turn, node, message.attempt, [WAIT])
    turn.state.active -= 1
    code = FAILURE_OF_CODE.get(message.code, FailureCode.INTERNAL)
    status = Status.INCOMPATIBLE if code is FailureCode.INCOMPATIBLE else Status.FAILED
    fail(
        turn,
        node,
        status,
        Failure(code=code, message=storable(message.message, 4000), todo=storable(message.todo, 1000)),
    )


def _returned(turn: Turn, message: Returned) -> None:
    state = turn.state
    node = state.nodes[message.node]
    released(turn, node, message.attempt, message.release)
    ours = node.status is Status.RUNNING and not node.recovering and message.attempt == node.record.attempt
    if not ours:
        turn.event(EventKind.LATE_RESULT, node, attempt=message.attempt, outcome=type(message.outcome).__name__.lower())
        return
    leave(turn, node, DEADLINE, OVERDUE)
    if isinstance(message.outcome, Value):
        complete(turn, node, message.outcome)
        return
    _settle(turn, node, *_settled(node, message.outcome))


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
    current = node.status is Status.RUNNING and message.attempt == node.record.attempt
    if not current or node.stopping is not None or node.recovering:
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
        for node in state.nodes.values():
            if node.status is Status.RUNNING and not node.recovering:
                stop(turn, node, DRAIN)
        return
    node = state.nodes[timer.node]
    if timer.kind == WAIT:
        if node.status is Status.QUEUED and timer.attempt == node.record.attempt + 1:
            state.active -= 1
            turn.now.append(WithdrawAsk(node=node.key, attempt=timer.attempt))
            failure = Failure(
                code=FailureCode.TIMEOUT,
                message=f"the machine had no room for it within {node.planned.policy.max_wait_seconds:g} s",
                todo="see who holds it with: hostler top",
            )
            fail(turn, node, Status.FAILED, failure)
        return
    if node.status is not Status.RUNNING or timer.attempt != node.record.attempt:
        return
    if timer.kind == DEADLINE:
        stop(turn, node, "timeout")
    elif timer.kind == OVERDUE and (state.draining or node.stopping == "timeout"):
        # a callback that ignores its end keeps its lease and keys until it returns; the run does not wait for it
        leave(turn, node, DEADLINE)
        _settle(turn, node, *_settled(node, Aborted(reason=node.stopping or DRAIN)))


def _drain(turn: Turn, grace_s: float) -> None:
    """Take nothing up any more; what waits goes back, what runs has *grace_s* seconds.

    Asked again, with less grace, what was told to stop and has not is given up on after that.
    """
    state = turn.state
    state.draining = True
    for node in state.nodes.values():
        if node.status is Status.RUNNING and node.stopping is not None:
            give_up_after(turn, node, grace_s)
        if node.status is Status.QUEUED:
            attempt = node.record.attempt + 1
            state.active -= 1
            forget(turn, node, attempt, [WAIT])
            turn.now.append(WithdrawAsk(node=node.key, attempt=attempt))
            turn.move(node, Status.READY)
            state.push_ready(node)
    turn.now.append(SetTimer(timer=TimerName(kind=DRAIN), seconds=grace_s))
