"""Workers outside: they take a ready node, bring its result, give it back, or are not heard of any more."""

from typing import Any, Final

from pydantic import ValidationError

from actors.outcomes import Aborted, Failed, Outcome, Value
from actors.scheduling import attempt_end, spending
from actors.scheduling.compatibility import leave_alone
from actors.scheduling.endings import fail
from actors.scheduling.leasing import expire, follow_worker, give_to_worker, look_after, take_from_worker
from actors.scheduling.operators import log_obeyed, log_refused
from actors.scheduling.state import NodeState
from actors.scheduling.taking_up import authorized_plan
from actors.scheduling.turn import Turn
from hostres.errors import Code
from store.amounts import Usage
from store.approvals import Accepted, Refused
from store.contracts import EventKind, Request, RequestKind
from store.leases import LONGEST_NAME, LONGEST_S, SHORTEST_S
from store.lifecycle import Status
from store.policy import FailureCode

KINDS: Final = frozenset({RequestKind.LEASE_WORK, RequestKind.SUBMIT_WORK, RequestKind.GIVE_BACK_WORK})
"""What workers ask."""
SETTLES: Final = frozenset({RequestKind.SUBMIT_WORK, RequestKind.GIVE_BACK_WORK})
BEING_SETTLED_S: Final = 1.0
"""How long a lease that is over is let be while its own result waits to be looked at."""


def take_over(turn: Turn, node: NodeState, requests: tuple[Request, ...]) -> None:
    """Go on with what a worker has had since before this host, unless its lease is over.

    A result that has come in since then counts, also if the lease is over: nobody else has the work yet.

    Args:
        turn: The turn.
        node: A leased node.
        requests: What waits for the run.

    """
    settling = any(request.kind in SETTLES and request.node == node.key for request in requests)
    if node.leased_s == 0 and not settling:
        expire(turn, node)
        return
    node.leased_s = max(node.leased_s, BEING_SETTLED_S if settling else 0.0)
    follow_worker(turn, node)


def seen(turn: Turn, node: NodeState, attempt: int, left_s: float) -> None:
    """Go on waiting for a worker that has extended its lease, or let another have the work."""
    if node.worker is None or attempt != node.record.attempt:
        return
    if left_s > 0:
        look_after(turn, node, left_s)
    else:
        expire(turn, node)


def out_of_time(turn: Turn, node: NodeState) -> None:
    """End an attempt of a worker whose time limit is over, however often it has extended its lease."""
    _end(turn, node, Aborted(reason="timeout"))


def obey_work(turn: Turn, request: Request, ruling: Accepted | Refused) -> None:
    """Consume what a worker asks together with all that follows from it.

    Args:
        turn: The turn.
        request: What it asks.
        ruling: What authority says.

    """
    turn.state.judging.discard(request.request_id)
    turn.consume([request.request_id])
    node = turn.state.nodes.get(request.node) if request.node else None
    refused = ruling if isinstance(ruling, Refused) else None
    if refused is None and request.kind is RequestKind.LEASE_WORK:
        refused = _lease(turn, request)
    elif node is None:
        refused = refused or _refused(f"there is no node {request.node}")
    elif request.kind is RequestKind.SUBMIT_WORK:
        refused = _submit(turn, node, request, refused)
    elif refused is None:
        refused = _give_back(turn, node, request)
    if refused is not None:
        log_refused(turn, node, request, refused)
    leave_alone(turn, asked=False)


def _lease(turn: Turn, request: Request) -> Refused | None:
    """Give the worker the ready node that comes first; one that has work already keeps that."""
    state = turn.state
    worker, seconds = request.data.get("worker"), request.data.get("seconds")
    if not isinstance(worker, str) or not 0 < len(worker) <= LONGEST_NAME:
        return _refused("the request names no worker")
    if not isinstance(seconds, int | float) or not SHORTEST_S <= seconds <= LONGEST_S:
        return _refused(f"a lease of {seconds} s cannot be had")
    if any(node.worker == worker for node in state.nodes.values()):
        log_obeyed(turn, None, request)
        return None
    ready = [node for node in state.nodes.values() if node.family.is_external and node.status is Status.READY]
    for node in sorted(ready, key=lambda node: (-node.planned.priority, node.key)):
        if not state.within_limit:
            return _refused(f"{state.plan.limits.active} nodes are active, as many as the run's limits allow")
        if spending.is_capped(turn, node):
            continue
        if authorized_plan(turn, node) is not None and spending.reserve(turn, node):
            log_obeyed(turn, node, request)
            give_to_worker(turn, node, worker, float(seconds))
            return None
    return _refused("no work of the run is ready")


def _submit(turn: Turn, node: NodeState, request: Request, refused: Refused | None) -> Refused | None:
    """Settle the attempt of a worker by its result; what comes too late is ignored, but not what it spent."""
    outcome = _outcome(request.data)
    attempt = _attempt(request)
    refused = refused or _stale(node, request)
    if attempt is not None:
        spending.report(turn, node, attempt, outcome.usage)
    if refused is not None:
        if attempt is not None:
            turn.event(EventKind.LATE_RESULT, node, attempt=attempt, outcome=type(outcome).__name__.lower())
        return refused
    log_obeyed(turn, node, request)
    _end(turn, node, outcome)
    return None


def _give_back(turn: Turn, node: NodeState, request: Request) -> Refused | None:
    """Let another worker have what this one has not done: no failure, and no interruption either."""
    refused = _stale(node, request)
    if refused is not None:
        return refused
    log_obeyed(turn, node, request)
    worker = node.worker
    take_from_worker(turn, node)
    if node.record.cancelling:
        fail(turn, node, Status.CANCELLED, None)
        return None
    turn.move(node, Status.READY, data={"lease": "given back", "worker": worker})
    turn.state.push_ready(node)
    return None


def _end(turn: Turn, node: NodeState, outcome: Outcome) -> None:
    take_from_worker(turn, node)
    turn.state.active += 1  # as whatever ends is taken for active
    attempt_end.ended(turn, node, outcome)


def _stale(node: NodeState, request: Request) -> Refused | None:
    if node.worker is not None and _attempt(request) == node.record.attempt:
        return None
    return _refused(f"attempt {request.data.get('attempt')} of {node.key} is not leased any more")


def _attempt(request: Request) -> int | None:
    attempt = request.data.get("attempt")
    return attempt if isinstance(attempt, int) and attempt > 0 else None


def _outcome(data: dict[str, Any]) -> Value | Failed:
    """Return the outcome that a submission says, which its sender has looked through for secrets."""
    from actors.agent_outcomes import outcome_of  # noqa: PLC0415 - most runs have no workers outside
    from store.agent_results import AgentResult, Malformed  # noqa: PLC0415 - likewise

    try:
        if "malformed" in data:
            said = data["malformed"]
            usage = said["usage"]
            malformed = Malformed(
                why=str(said["why"]),
                excerpt=str(said["excerpt"]),
                usage=None if usage is None else Usage.model_validate(usage),
            )
            return outcome_of(malformed)
        return outcome_of(AgentResult.model_validate(data.get("result")))
    except (ValidationError, KeyError, TypeError) as error:
        why = f"its submission is no result ({type(error).__name__})"
        return Failed(code=FailureCode.MALFORMED_OUTPUT, message=why, todo="submit with hostler work submit")


def _refused(what: str) -> Refused:
    return Refused(code=Code.CONFLICT, what=what, todo="ask for other work: hostler work next")
