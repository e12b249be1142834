"""A ready node is taken up: input, exact plan, authority, then the machine or the work itself."""

from heapq import heappop
from posixpath import join, normpath
from typing import Final

from pydantic import JsonValue

from actors.actions import AskMachine, Dispatch, SetTimer, TimerName
from actors.scheduling.endings import fail
from actors.scheduling.state import NodeState, RunState
from actors.scheduling.turn import Turn
from hostres.errors import HostlerError
from store.approvals import Verdict, verdict
from store.contracts import EventKind, Failure, FailureCode, GrantAction, NodePlan
from store.lifecycle import Status
from store.references import resolve
from store.transactions import FrozenPlan
from store.values import Domain, canonical, digest, digest_bytes

DEADLINE: Final = "deadline"
WAIT: Final = "wait"
LONGEST_KEY: Final = 512


def fill(turn: Turn) -> None:
    """Take up ready nodes, in order of their keys, while there is room for another.

    Nothing new starts while a request waits for its ruling: it may be a cancel.
    """
    state = turn.state
    if state.draining or state.judging:
        return
    while state.ready and state.active < state.jobs:
        node = state.nodes[heappop(state.ready)]
        if node.status is Status.READY:
            _take_up(turn, node)


def _take_up(turn: Turn, node: NodeState) -> None:
    state = turn.state
    try:
        frozen = FrozenPlan.of(_plan(state, node))
    except HostlerError as error:
        failure = Failure(code=FailureCode.INVALID_DATA, message=error.what, todo=error.todo)
        fail(turn, node, Status.FAILED, failure)
        return
    plan, sha256 = frozen.plan, frozen.sha256
    if node.record.plan_sha256 != sha256:
        turn.freeze(frozen)
        turn.event(EventKind.NODE_PLAN, node, plan_sha256=sha256, input_sha256=plan.input_sha256)
        turn.change(node, plan_sha256=sha256)
    if (node.key, sha256) in state.granted and not node.is_gate:
        _queue(turn, node, plan, sha256)
        return
    ruling, rule = (
        (Verdict.ASK, "gate")
        if node.is_gate
        else verdict(
            state.rules,
            principal=state.record.principal,
            action=GrantAction.EFFECT.value,
            effect=node.planned.policy.effect,
        )
    )
    match ruling:
        case Verdict.ALLOW:
            _queue(turn, node, plan, sha256)
        case Verdict.ASK:
            turn.move(node, Status.APPROVAL_REQUIRED)
            turn.event(EventKind.APPROVAL_REQUIRED, node, plan_sha256=sha256, rule=rule)
        case Verdict.DENY:
            failure = Failure(
                code=FailureCode.AUTHORIZATION_REQUIRED,
                message=f"authority rule {rule} denies {node.planned.policy.effect}",
                todo="ask whoever keeps the rules of this machine",
            )
            fail(turn, node, Status.FAILED, failure)


def _plan(state: RunState, node: NodeState) -> NodePlan:
    planned = node.planned
    value = resolve(planned.input, state.outputs)
    data = canonical(value)
    if len(data) > planned.policy.max_input_bytes:
        raise too_large("input", len(data), planned.policy.max_input_bytes)
    return NodePlan.model_construct(
        run_id=state.run_id,
        node=node.key,
        executor=planned.executor,
        input=value,
        input_sha256=digest_bytes(Domain.INPUT, data),
        dependencies={key: state.nodes[key].record.output_sha256 or "" for key in planned.dependencies},
        policy=planned.policy,
        keys=_keys(state.record.folder, planned.policy.publishes, value),
    )


def _keys(folder: str, fields: tuple[str, ...], value: JsonValue) -> tuple[str, ...]:
    """Name the files that the policy says this input publishes, one key a file however it is written."""
    keys: set[str] = set()
    for dotted in fields:
        found: JsonValue = value
        for name in dotted.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        for path in found if isinstance(found, list) else [found]:
            if isinstance(path, str):
                key = f"file:{normpath(join(folder, path))}"
                keys.add(key if len(key) <= LONGEST_KEY else f"file-sha256:{digest(Domain.INPUT, key)}")
    return tuple(sorted(keys))


def _queue(turn: Turn, node: NodeState, plan: NodePlan, sha256: str) -> None:
    """Commit the intent; what claims nothing goes on to run in the same transaction."""
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
        actions = turn.after if node.noticeable else turn.now
        actions.append(AskMachine(node=node.key, attempt=attempt, claims=plan.policy.claims, keys=plan.keys))
        actions.append(
            SetTimer(timer=TimerName(kind=WAIT, node=node.key, attempt=attempt), seconds=plan.policy.max_wait_seconds)
        )
        return
    turn.move(node, Status.QUEUED)
    run(turn, node, plan, sha256, ticket=None, admitted_boot_ns=None)


def run(
    turn: Turn,
    node: NodeState,
    plan: NodePlan,
    sha256: str,
    *,
    ticket: int | None,
    admitted_boot_ns: int | None,
) -> None:
    """Let a queued node run: its attempt is counted and committed before the work starts.

    Args:
        turn: The turn.
        node: A queued node.
        plan: Its exact plan.
        sha256: The plan's digest.
        ticket: The machine ticket, None for a node that claims nothing.
        admitted_boot_ns: When the machine admitted it.

    """
    attempt = node.record.attempt + 1
    turn.move(
        node,
        Status.RUNNING,
        data={
            "ticket": ticket,
            "claims": dict(plan.policy.claims),
            "admitted_boot_ns": admitted_boot_ns,
            "idempotency_key": idempotency_key(turn.state, node, attempt),
        },
        attempt=attempt,
        gate_passed=False,
        started_at=turn.stamp.at,
        finished_at=None,
        failure=None,
    )
    actions = turn.after if node.noticeable else turn.now
    actions.append(Dispatch(node=node.key, attempt=attempt, plan=plan, plan_sha256=sha256))
    actions.append(
        SetTimer(timer=TimerName(kind=DEADLINE, node=node.key, attempt=attempt), seconds=plan.policy.max_seconds)
    )


def replan(state: RunState, node: NodeState) -> NodePlan:
    """Return the exact plan that *node* was queued with; its dependencies are final, so it is the same again."""
    return _plan(state, node)


def idempotency_key(state: RunState, node: NodeState, attempt: int) -> str:
    """Name an attempt for services that can tell a repeated call."""
    return f"{state.run_id}:{node.key}:{attempt}"


def too_large(what: str, size: int, limit: int) -> HostlerError:
    """Return the refusal of a value over its limit."""
    from hostres.errors import Code  # noqa: PLC0415

    return HostlerError(Code.INVALID_DATA, f"{what} too large: {size} bytes, limit {limit}", "put it in a file")
