"""A ready node is taken up: input, exact plan, authority, then the machine or the work itself."""

from collections.abc import Mapping
from heapq import heappop

from actors.actions import Dispatch, SetTimer, TimerName
from actors.outcomes import storable
from actors.scheduling import spending
from actors.scheduling.agent_terms import task_of
from actors.scheduling.asking import ask
from actors.scheduling.clearing import is_clear
from actors.scheduling.endings import fail
from actors.scheduling.liveness import first_look_s, watch
from actors.scheduling.planning import asks_planner
from actors.scheduling.state import NodeState, RunState
from actors.scheduling.stopping import DEADLINE
from actors.scheduling.turn import Turn
from hostres.errors import HostlerError
from store.contracts import EventKind, Failure
from store.envelopes import beyond_keys
from store.lifecycle import Status
from store.plans import NodePlan, PlanPhase
from store.policy import FailureCode
from store.rule_names import GATE_RULE
from store.rules import Action, Verdict, preparation_verdict, verdict
from store.terms import Envelope


def fill(turn: Turn) -> None:
    """Take up ready nodes, by priority and then by key, while there is room for another.

    Nothing new starts while a request waits for its ruling: it may be a cancel.
    """
    state = turn.state
    if state.draining or state.judging or state.full:
        return
    while state.ready and state.room:
        node = state.nodes[heappop(state.ready)[1]]
        if node.status is not Status.READY:
            continue
        if state.shares is None:
            _take_up(turn, node)
        else:
            if not spending.is_capped(turn, node):
                _take_up(turn, node)
            spending.looked_at(turn, node)


def _take_up(turn: Turn, node: NodeState) -> None:
    """Take a ready node as far as it goes by itself: cleared, planned, authorized, queued or running."""
    if not node.family.is_external and not is_clear(turn, node):
        return
    plan = authorized_plan(turn, node)
    if plan is None:
        return
    if node.family.is_external:
        spending.offer_to_workers(turn, node)
    else:
        _queue(turn, node, plan)


def authorized_plan(turn: Turn, node: NodeState) -> NodePlan | None:
    """Return what a ready node does next, once it is planned and may be done; None if that is still to come."""
    try:
        while node.plan is None or node.plan.phase is PlanPhase.PREPARATION:
            if node.plan is not None and not _authorized(turn, node, node.plan):
                return None
            if asks_planner(turn, node):
                return None
    except HostlerError as error:
        message, todo = storable(error.what, 4000), storable(error.todo, 1000)
        failure = Failure(code=FailureCode.INVALID_DATA, message=message, todo=todo)
        fail(turn, node, Status.FAILED, failure)
        return None
    if node.envelope is not None and not _within(turn, node, node.envelope, node.plan):
        return None
    return node.plan if _authorized(turn, node, node.plan) else None


def _within(turn: Turn, node: NodeState, envelope: Envelope, plan: NodePlan) -> bool:
    """Fail *node* if it is going to publish what its authority does not own; nobody can approve that."""
    path = beyond_keys(envelope, plan.keys, turn.state.record.folder)
    if path is None:
        return True
    failure = Failure(
        code=FailureCode.AUTHORIZATION_REQUIRED,
        message=storable(f"its authority does not own the path {path}, which it is to publish", 4000),
        todo="let its authority name it, or give it to a node that may",
    )
    fail(turn, node, Status.FAILED, failure)
    return False


def _authorized(turn: Turn, node: NodeState, plan: NodePlan) -> bool:
    """Ask the rules whether *plan* may be carried out; if a person must say so the node waits, else it fails."""
    state = turn.state
    sha256 = node.record.frozen_sha256 or ""
    if (node.key, sha256) in state.granted and not node.family.is_gate:
        return True
    ruling, rule = _ruling(state, node, plan)
    match ruling:
        case Verdict.ALLOW:
            return True
        case Verdict.ASK:
            turn.move(node, Status.APPROVAL_REQUIRED)
            turn.event(EventKind.APPROVAL_REQUIRED, node, plan_sha256=sha256, rule=rule, phase=plan.phase.value)
        case Verdict.DENY:
            wanted = plan.policy.effect if plan.phase is PlanPhase.EFFECT else "its preparation"
            failure = Failure(
                code=FailureCode.AUTHORIZATION_REQUIRED,
                message=f"authority rule {rule} denies {wanted}",
                todo="ask whoever keeps the rules of this machine",
            )
            fail(turn, node, Status.FAILED, failure)
    return False


def _ruling(state: RunState, node: NodeState, plan: NodePlan) -> tuple[Verdict, str]:
    principal, policy = state.record.principal, node.planned.policy
    if plan.phase is PlanPhase.PREPARATION:
        return preparation_verdict(state.rules, policy.preparation, principal=principal, matter=node.matter)
    if node.family.is_gate:
        return Verdict.ASK, GATE_RULE
    if plan.keys or node.planned.terms is not None:
        return verdict(state.rules, principal=principal, action=Action.EFFECT, matter=node.matter)
    if node.family.ruling is None:  # the rules see nothing else of a node
        node.family.ruling = verdict(state.rules, principal=principal, action=Action.EFFECT, matter=node.matter)
    return node.family.ruling


def _queue(turn: Turn, node: NodeState, plan: NodePlan) -> None:
    """Commit the intent; what claims nothing goes on to run in the same transaction."""
    if not spending.reserve(turn, node):
        return
    attempt = node.record.attempt + 1
    turn.state.active += 1
    node.stopping = None
    if plan.policy.claims or plan.keys:
        turn.move(
            node,
            Status.QUEUED,
            data={"attempt": attempt, "idempotency_key": idempotency_key(turn.state, node, attempt)},
            failure=None,
        )
        ask(turn, node, plan, at_once=not node.family.noticeable)
        return
    run(turn, node, plan, Status.QUEUED, ticket=None, admitted_boot_ns=None)


def run(
    turn: Turn,
    node: NodeState,
    plan: NodePlan,
    *path: Status,
    ticket: int | None,
    admitted_boot_ns: int | None,
    claims: Mapping[str, int] | None = None,
) -> None:
    """Let a node run that is queued, or is by *path*: its attempt is counted and committed before the work starts.

    Args:
        turn: The turn.
        node: A queued node.
        plan: Its exact plan.
        *path: Statuses that it takes before it runs.
        ticket: The machine ticket, None for a node that claims nothing.
        admitted_boot_ns: When the machine admitted it.
        claims: What it was admitted with, resource → units; None if that is what its plan claims.

    """
    attempt = node.record.attempt + 1
    node.cleared = node.probing = node.told = node.unknown = node.wanted = False
    node.began_ns = turn.stamp.boot_ns
    turn.move(
        node,
        *path,
        Status.RUNNING,
        data={
            "ticket": ticket,
            "claims": dict(plan.policy.claims if claims is None else claims),
            "admitted_boot_ns": admitted_boot_ns,
            "idempotency_key": idempotency_key(turn.state, node, attempt),
        },
        attempt=attempt,
        gate_passed=False,
        started_at=turn.stamp.at,
        finished_at=None,
        failure=None,
    )
    actions = turn.after if node.family.noticeable else turn.now
    actions.append(
        Dispatch(
            node=node.key,
            attempt=attempt,
            ask=None if ticket is None else node.asks,
            plan=plan,
            plan_sha256=node.record.plan_sha256 or "",
            task=task_of(turn.state, node),
            given=node.given,
        )
    )
    node.given = None
    seconds = plan.max_seconds or plan.policy.max_seconds
    actions.append(SetTimer(timer=TimerName(kind=DEADLINE, node=node.key, attempt=attempt), seconds=seconds))
    if plan.policy.heartbeat is not None:
        actions.append(watch(node, first_look_s(plan.policy.heartbeat)))


def idempotency_key(state: RunState, node: NodeState, attempt: int) -> str:
    """Name an attempt for services that can tell a repeated call."""
    return f"{state.run_id}:{node.key}:{attempt}"
