"""What people and other processes ask of a run, once authority has ruled on it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from actors.actions import Judge
from actors.outcomes import Value, storable
from actors.scheduling import liveness, receipts, revising, spending
from actors.scheduling.asking import withdraw
from actors.scheduling.compatibility import (
    accept,
    code_is_lacking,
    is_acceptance,
    leave_alone,
    must_wait,
    nothing_to_accept,
)
from actors.scheduling.endings import complete, fail
from actors.scheduling.leasing import expire, take_from_worker
from actors.scheduling.planning import unask
from actors.scheduling.retrying import forget_try, try_anew
from actors.scheduling.state import LETS_THROUGH, NodeState, RunState
from actors.scheduling.stopping import stop
from actors.scheduling.turn import Turn
from actors.scheduling.verifying import approve as approve_result
from actors.scheduling.verifying import verify_again
from hostres.errors import Code
from store.approvals import Accepted, Refused, Standing, judge
from store.contracts import EventKind, Failure, Grant, GrantAction, Request, RequestKind, Revision
from store.evidence import asked_status, awaits_approval, documents, evidence_refusal, is_judged_again
from store.lifecycle import RESTING, Status
from store.plans import ComputeExecutor, PlanPhase
from store.policy import FailureCode
from store.receipts import FIELD
from store.values import Domain, canonical, digest_bytes

WAITS = RESTING - {Status.AMBIGUOUS} | {Status.PENDING, Status.READY, Status.PREPARING, Status.CORRECTIVE}
"""What a cancel ends at once; whether an ambiguous effect happened is for a settlement to say."""

REOPENS = frozenset({RequestKind.RETRY, RequestKind.REPLAY, RequestKind.CORRECT})
"""What makes a node run again that had ended or rested."""

CHARGED = frozenset({RequestKind.RETRY, RequestKind.CORRECT})
"""What costs a retry."""

UNDONE = frozenset({Status.FAILED, Status.SKIPPED, Status.CANCELLED, Status.INCOMPATIBLE})


def judge_requests(turn: Turn, requests: Iterable[Request]) -> None:
    """Ask authority about each request that was not seen before."""
    state = turn.state
    for request in requests:
        if request.request_id in state.seen_requests:
            continue
        state.seen_requests.add(request.request_id)
        state.judging.add(request.request_id)
        node = state.nodes.get(request.node) if request.node else None
        turn.now.append(Judge(request=request, standing=_standing(turn, request, node)))


def obey(turn: Turn, request: Request, ruling: Accepted | Refused) -> None:
    """Consume *request* together with all that follows from it.

    A node may have moved on while authority ruled; what no longer fits is refused.
    """
    state = turn.state
    if isinstance(ruling, Accepted) and must_wait(state, request):
        state.postponed.append((request, ruling))
        return
    state.judging.discard(request.request_id)
    turn.consume([request.request_id])
    node = state.nodes.get(request.node) if request.node else None
    if isinstance(ruling, Accepted):
        ruling = _ruled_again(turn, request, node)
    if isinstance(ruling, Refused):
        log_refused(turn, node, request, ruling)
        leave_alone(turn, asked=False)
        return
    log_obeyed(turn, node, request)
    if request.kind is RequestKind.BUDGET:
        spending.add(turn, request)
    elif request.kind is RequestKind.REVOKE:
        receipts.revoke(turn, request, ruling)
    elif node is not None:
        _obey_of_node(turn, node, request, ruling)
        return
    elif is_acceptance(request):
        accept(turn, request)
    else:
        cancel_run(turn)
    leave_alone(turn, asked=False)


def _obey_of_node(turn: Turn, node: NodeState, request: Request, ruling: Accepted) -> None:
    match request.kind:
        case RequestKind.APPROVE:
            _approve(turn, node, request, ruling)
        case RequestKind.RECEIPT:
            receipts.make(turn, node, request, ruling)
        case RequestKind.DENY:
            _deny(turn, node, request, ruling)
        case RequestKind.CANCEL:
            _cancel_node(turn, node)
        case RequestKind.RETRY:
            _grant(turn, node, request, ruling, GrantAction.RETRY)
            if _judges_again(request, node):
                verify_again(turn, node)
            else:
                spending.charge_retry(turn, node)
                _reopen(turn, node)
        case RequestKind.CORRECT:
            revision = revising.revision_of(node, request)
            _grant(turn, node, request, ruling, GrantAction.CORRECT, revision=revision)
            spending.charge_retry(turn, node)
            _reopen(turn, node)
            revising.revise(turn, node, revision)
        case RequestKind.RECOVER if node.worker is not None:
            expire(turn, node)
        case RequestKind.RECOVER:
            liveness.recover(turn, node)
        case RequestKind.REPLAY:
            _grant(turn, node, request, ruling, GrantAction.REPLAY)
            try_anew(turn, node)
        case RequestKind.SETTLE:
            _grant(turn, node, request, ruling, GrantAction.SETTLE)
            spending.settled_by_person(turn, node, request)
            _settle(turn, node, request)


def log_refused(turn: Turn, node: NodeState | None, request: Request, ruling: Refused) -> None:
    """Log that a request is refused, and why."""
    turn.event(
        EventKind.REQUEST_REFUSED,
        node,
        principal=request.principal,
        request_id=request.request_id,
        request=request.kind.value,
        code=ruling.code.value,
        message=ruling.what,
        todo=ruling.todo,
    )


def log_obeyed(turn: Turn, node: NodeState | None, request: Request) -> None:
    """Log that a request is taken up."""
    turn.event(
        EventKind.REQUEST,
        node,
        principal=request.principal,
        request_id=request.request_id,
        request=request.kind.value,
        reason=request.reason,
    )


def obey_postponed(turn: Turn) -> None:
    """Obey what waited for leftovers to be ended."""
    postponed, turn.state.postponed = turn.state.postponed, []
    for request, ruling in postponed:
        obey(turn, request, ruling)


def _standing(turn: Turn, request: Request, node: NodeState | None) -> Standing:
    receipt = turn.state.receipts.get(str(request.data[FIELD])) if FIELD in request.data else None
    if node is None:
        return Standing(receipt=receipt, at=turn.stamp.at)
    return Standing(
        status=asked_status(node.record, request.kind),
        plan_sha256=node.record.frozen_sha256,
        attempt=node.record.attempt,
        revision=node.record.revision,
        matter=replace(node.matter, parents_owner=turn.state.parents_owner(node)),
        receipt=receipt,
        at=turn.stamp.at,
    )


def _ruled_again(turn: Turn, request: Request, node: NodeState | None) -> Accepted | Refused:
    """Judge *request* by how its node stands now, and by what this host can do."""
    state = turn.state
    ruling = judge(request, _standing(turn, request, node), rules=state.rules)
    refused = None
    if is_acceptance(request):
        refused = nothing_to_accept(state, request)
    elif node is not None and request.kind is RequestKind.RECOVER:
        refused = liveness.cannot_be_recovered(state, node)
    elif node is not None and (awaits_approval(node.record) or (node.family.is_gate and node.evidence_due)):
        refused = evidence_refusal(request)
    if node is not None and refused is None and _runs_again(request, node):
        refused = code_is_lacking(state, node) or revising.misfit_of(state, node, request)
    if refused is None and isinstance(ruling, Accepted):
        refused = _budget_refuses(state, request, node)
    return refused if refused is not None and isinstance(ruling, Accepted) else ruling


def _runs_again(request: Request, node: NodeState) -> bool:
    """Say whether *request* makes the node run again, which needs its code."""
    again = request.data.get("outcome") == "retry" and not node.record.cancelling
    return (request.kind in REOPENS or again) and not _judges_again(request, node)


def _judges_again(request: Request, node: NodeState) -> bool:
    """Say whether *request* has the stored result of a node judged again."""
    return request.kind is RequestKind.RETRY and is_judged_again(node.record) and request.data.get("anew") is not True


def _budget_refuses(state: RunState, request: Request, node: NodeState | None) -> Refused | None:
    """Refuse another try that no budget has left, and an addition to a budget that there is not."""
    todo = f"see its budgets with `hostler budget {request.run_id}`"
    if request.kind is RequestKind.BUDGET:
        why = spending.addition_refused(state, request)
        return None if why is None else Refused(code=Code.CONFLICT, what=why, todo=todo)
    if node is None or request.kind not in CHARGED or _judges_again(request, node):
        return None
    misfit = spending.retry_misfit(state, node)
    if misfit is None:
        return None
    whose = "" if misfit.holder is None else f" {misfit.holder}"
    todo = f"raise it with `hostler budget {request.run_id}{whose} --add retries=1`"
    return Refused(code=Code.CONFLICT, what=f"node {request.node} cannot be tried again: {misfit}", todo=todo)


def cancel_run(turn: Turn) -> None:
    """Cancel what waits, take back what queues, stop what runs and may be stopped."""
    for node in turn.state.nodes.values():
        _cancel(turn, node)


def run_out_of_time(turn: Turn) -> None:
    """End a run whose time limit is over: what waits is cancelled, what runs is stopped, cancellable or not."""
    limit = turn.state.plan.limits.seconds
    failure = Failure(
        code=FailureCode.TIMEOUT,
        message=f"the run's time limit of {limit:g} s is over",
        todo="raise seconds in its limits, and start it anew",
    )
    for node in turn.state.nodes.values():
        _cancel(turn, node, failure)
        if node.status is Status.RUNNING and not node.recovering and not node.reconciling and node.worker is None:
            stop(turn, node, "timeout")


def _cancel_node(turn: Turn, node: NodeState) -> None:
    for each in (node, *turn.state.dependents_of(node)):
        _cancel(turn, each)


def _cancel(turn: Turn, node: NodeState, failure: Failure | None = None) -> None:
    state = turn.state
    if node.status in WAITS:
        if node.status is Status.PREPARING:
            unask(turn, node)
        if node.status is Status.CORRECTIVE:
            forget_try(turn, node)
        turn.move(node, Status.CANCELLED, failure=failure)
    elif node.status is Status.QUEUED:
        state.active -= 1
        withdraw(turn, node)
        turn.move(node, Status.CANCELLED, failure=failure)
    elif node.worker is not None and (failure is not None or node.planned.policy.cancellable):
        take_from_worker(turn, node)
        turn.move(node, Status.CANCELLED, failure=failure)
    elif node.status in {Status.VERIFYING, Status.AMBIGUOUS}:
        turn.change(node, cancelling=True)  # whether it was integrated, or happened, is found out first
    elif node.status is Status.RUNNING:
        turn.change(node, cancelling=True)
        stoppable = not node.recovering and not node.reconciling and node.worker is None
        if failure is None and node.planned.policy.cancellable and stoppable:
            stop(turn, node, "cancel")


def _grant(
    turn: Turn,
    node: NodeState,
    request: Request,
    ruling: Accepted,
    action: GrantAction,
    *,
    allowed: bool = True,
    revision: Revision | None = None,
) -> None:
    plan_sha256 = node.record.frozen_sha256
    replay, executor = action is GrantAction.REPLAY, node.planned.executor
    principal = request.principal if ruling.receipt is None else ruling.receipt.approver
    turn.grant(
        Grant(
            grant_id=f"grant:{request.request_id}",
            run_id=turn.state.run_id,
            node=node.key,
            action=action,
            plan_sha256=plan_sha256,
            attempt=node.record.attempt + 1 if replay else node.record.attempt or None,
            bundle_sha256=turn.state.plan.bundle_sha256 if replay else None,
            compute=executor.compute if replay and isinstance(executor, ComputeExecutor) else None,
            allowed=allowed,
            principal=principal,
            rule=ruling.rule,
            request_id=request.request_id,
            receipt_id=ruling.receipt.receipt_id if ruling.receipt else None,
            reason=request.reason,
            revision=revision,
            at=turn.stamp.at,
        )
    )
    with_receipt: dict[str, Any] = {FIELD: ruling.receipt.receipt_id} if ruling.receipt else {}
    turn.event(
        EventKind.GRANT,
        node,
        principal=principal,
        action=action.value,
        allowed=allowed,
        plan_sha256=plan_sha256,
        rule=ruling.rule,
        **revising.told(revision),
        **with_receipt,
    )
    receipts.use(turn, node, request, ruling)
    if allowed and action in LETS_THROUGH and plan_sha256 is not None:
        turn.state.granted.add((node.key, plan_sha256))


def _approve(turn: Turn, node: NodeState, request: Request, ruling: Accepted) -> None:
    _grant(turn, node, request, ruling, _asked_for(node))
    if node.status is Status.BLOCKED:
        approve_result(turn, node)
    elif node.family.is_gate:
        turn.change(node, evidence=node.evidence_due)
        told = {"evidence": documents(node.evidence_due)} if node.evidence_due else {}
        complete(turn, node, as_value({"approved_by": request.principal, "reason": request.reason}), **told)
    else:
        try_anew(turn, node)


def _asked_for(node: NodeState) -> GrantAction:
    """Return what a node that requires approval waits to be let through to, or to have approved."""
    if node.family.is_gate:
        return GrantAction.GATE
    if node.status is Status.BLOCKED:
        return GrantAction.EVIDENCE
    prepares = node.plan is not None and node.plan.phase is PlanPhase.PREPARATION
    return GrantAction.PREPARATION if prepares else GrantAction.EFFECT


def _deny(turn: Turn, node: NodeState, request: Request, ruling: Accepted) -> None:
    _grant(turn, node, request, ruling, _asked_for(node), allowed=False)
    reason = f": {request.reason}" if request.reason else ""
    failure = Failure(
        code=FailureCode.AUTHORIZATION_REQUIRED,
        message=storable(f"denied by {request.principal}{reason}", 4000),
        todo="change what it does, then start a new run",
    )
    fail(turn, node, Status.FAILED, failure)


def _reopen(turn: Turn, node: NodeState) -> None:
    """Make *node* ready again, and pending what was skipped for its sake and for nothing else."""
    try_anew(turn, node)
    nodes = turn.state.nodes
    for dependent in turn.state.dependents_of(node):
        others = (nodes[key].status for key in dependent.planned.dependencies)
        if dependent.status is Status.SKIPPED and not any(status in UNDONE for status in others):
            turn.move(dependent, Status.PENDING, finished_at=None)


def _settle(turn: Turn, node: NodeState, request: Request) -> None:
    match request.data.get("outcome"):
        case "completed":
            complete(turn, node, as_value(request.data.get("value")))
        case "retry" if node.record.cancelling:  # it has not happened, and is not to happen any more
            fail(turn, node, Status.CANCELLED, None)
        case "retry":
            try_anew(turn, node)
        case _:
            failure = Failure(
                code=FailureCode.AMBIGUOUS,
                message=storable(f"settled as failed by {request.principal}", 4000),
                todo="retry it when it is safe to",
            )
            fail(turn, node, Status.FAILED, failure)


def as_value(value: JsonValue) -> Value:
    """Return *value* as the outcome of a node."""
    data = canonical(value)
    return Value(value=value, data=data, sha256=digest_bytes(Domain.OUTPUT, data))
