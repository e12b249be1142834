"""What people said about a run: each request answered once, each grant used once and for the exact plan it names."""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from store.contracts import Grant, GrantAction, Request
from store.plans import ComputeExecutor, GraphPlan
from store.requests import CANCELS, is_cancel_id
from store.revisions import input_sha256
from store.verification.examination import Examination
from store.verification.findings import Fault
from store.verification.receipts import examine_receipts
from store.verification.retelling import Retelling, ToldGrant

_BOUND_TO_ATTEMPT: Final = frozenset({GrantAction.REPLAY, GrantAction.SETTLE, GrantAction.EVIDENCE})


def examine_answers(
    examination: Examination, plan: GraphPlan, told: Retelling | None
) -> tuple[int, Mapping[tuple[str, int], JsonValue]]:
    """Examine the requests and the grants.

    Args:
        examination: Where to note what is wrong.
        plan: The graph plan.
        told: What the log says; None if it cannot be believed.

    Returns:
        How many grants there are, and the input of each revision that they made, by node and number.

    """
    _examine_requests(examination, told)
    grants = _grants(examination)
    examine_receipts(examination, told, [grant for grant in grants if grant is not None])
    if told is not None:
        _compare_with_log(examination, plan, grants, told)
    inputs = {
        (grant.node, grant.revision.number): grant.revision.input
        for grant in grants
        if grant is not None and grant.revision is not None
    }
    return len(grants), inputs


def _revision_of(grant: Grant) -> tuple[int | None, str | None]:
    return (None, None) if grant.revision is None else (grant.revision.number, input_sha256(grant.revision.input))


def _examine_requests(examination: Examination, told: Retelling | None) -> None:
    seen = set()
    query = "SELECT request_id, record, sha256, consumed_generation FROM requests WHERE run = ? ORDER BY rowid"
    for request_id, data, sha256, consumed in examination.rows(query):
        seen.add(request_id)
        what = f"request {request_id}"
        request = examination.record(Request, data, sha256, table="requests", what=what)
        if request is None:
            continue
        if (request.request_id, request.run_id) != (request_id, examination.run_id):
            examination.wrong(Fault.COLUMN, "requests", f"{what} is {request.request_id} of run {request.run_id}")
            continue
        if request_id.startswith(CANCELS) and not is_cancel_id(request_id, examination.run_id, request.node):
            examination.wrong(Fault.REQUEST, "requests", f"{what} has the name of the cancel of something else")
        answer = None if told is None else told.answers.get(request_id)
        if told is not None and (answer is None) != (consumed is None):
            says = "the log has no answer to it" if answer is None else f"event {answer.seq} answers it"
            waits = "waits" if consumed is None else "was taken up"
            examination.wrong(Fault.REQUEST, "requests", f"{what} {waits}, and {says}")
        elif answer is not None and (answer.kind, answer.principal, answer.generation) != (
            request.kind.value, request.principal, consumed,
        ):  # fmt: skip
            examination.wrong(
                Fault.REQUEST, "requests", f"{what} is not what event {answer.seq} answers", event=answer.seq
            )
    for request_id in [] if told is None else told.answers.keys() - seen:
        seq = told.answers[request_id].seq if told is not None else None
        examination.wrong(Fault.MISSING, "requests", f"request {request_id} is missing", event=seq)


def _grants(examination: Examination) -> list[Grant | None]:
    grants: list[Grant | None] = []
    used: dict[str, str] = {}
    query = "SELECT grant_id, record, sha256 FROM grants WHERE run = ? ORDER BY rowid"
    for grant_id, data, sha256 in examination.rows(query):
        grant = examination.record(Grant, data, sha256, table="grants", what=f"grant {grant_id}")
        grants.append(grant)
        if grant is None:
            continue
        if (grant.grant_id, grant.run_id) != (grant_id, examination.run_id):
            what = f"grant {grant_id} is {grant.grant_id} of run {grant.run_id}"
            examination.wrong(Fault.COLUMN, "grants", what, node=grant.node)
        if grant.request_id is not None and used.setdefault(grant.request_id, grant_id) != grant_id:
            what = f"grant {grant_id} uses request {grant.request_id}, which gave {used[grant.request_id]}"
            examination.wrong(Fault.GRANT, "grants", what, node=grant.node)
    return grants


def _compare_with_log(examination: Examination, plan: GraphPlan, grants: list[Grant | None], told: Retelling) -> None:
    if len(grants) != len(told.grants):
        what = f"there are {len(grants)} grants, the log tells of {len(told.grants)}"
        examination.wrong(Fault.GRANT, "grants", what)
        return
    computes = {node.key: node.executor.compute for node in plan.nodes if isinstance(node.executor, ComputeExecutor)}
    for grant, event in zip(grants, told.grants, strict=True):
        for why in () if grant is None else _differences(grant, event, told, plan.bundle_sha256, computes):
            examination.wrong(Fault.GRANT, "grants", why, node=event.node, event=event.seq)


def _differences(
    grant: Grant, event: ToldGrant, told: Retelling, bundle_sha256: str | None, computes: dict[str, str]
) -> Iterator[str]:
    name = f"grant {grant.grant_id}"
    said = grant.node, grant.action.value, grant.allowed, grant.plan_sha256, grant.rule, grant.principal, grant.at
    if (*said, grant.receipt_id) != (
        event.node, event.action, event.allowed, event.plan_sha256, event.rule, event.principal, event.at,
        event.receipt,
    ):  # fmt: skip
        yield f"{name} is not what event {event.seq} tells of"
    if grant.plan_sha256 != event.node_plan:
        yield f"{name} is for plan {grant.plan_sha256}, the node had {event.node_plan}"
    due = event.node_attempt + (grant.action is GrantAction.REPLAY)
    if grant.action in _BOUND_TO_ATTEMPT and grant.attempt != due:
        yield f"{name} is for attempt {grant.attempt}, it was attempt {due}"
    if grant.action is GrantAction.REPLAY and (grant.bundle_sha256, grant.compute) != (
        bundle_sha256, computes.get(grant.node),
    ):  # fmt: skip
        yield f"{name} is for other code than the plan's"
    if _revision_of(grant) != (event.revision, event.input_sha256):
        yield f"{name} is of another revision than event {event.seq} tells of"
    if grant.request_id is not None and grant.request_id not in told.answers:
        yield f"{name} answers request {grant.request_id}, which the log does not tell of"
