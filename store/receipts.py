"""Receipts: a person approves ahead, or from elsewhere, one thing that somebody else then asks for. Pure.

A receipt belongs to a run. The owner of the run alone makes it, uses it up or takes it back, each with an event and,
where it is used, in the one transaction that writes the grant; so it is used once, whoever asks how often.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from pydantic import Field

from hostres.errors import Code
from store.clock import instant, unix_ms
from store.contracts import Request, RequestKind
from store.fields import Attempt, Contract, Id, Instant, NodeKey, Principal, Reason, RunId, Sha256
from store.lazy_dataclass import dataclass
from store.policy import DAY_SECONDS
from store.rules import Action, Matter, Rule, Verdict, principal_kind, verdict

FIELD: Final = "receipt"
"""Where a request names the receipt that it is about, or is made with."""
LONGEST_MS: Final = int(30 * DAY_SECONDS) * 1000
USES: Final = {
    RequestKind.APPROVE: Action.APPROVE, RequestKind.RETRY: Action.RETRY, RequestKind.REPLAY: Action.REPLAY,
}  # fmt: skip
"""What a receipt can be for."""
_OF_ATTEMPT: Final = frozenset({Action.RETRY, Action.REPLAY})


class ReceiptState(StrEnum):
    """What became of a receipt."""

    OPEN = "open"
    USED = "used"
    REVOKED = "revoked"


class Receipt(Contract):
    """Leave, given beforehand, for one principal to have one thing done once.

    Attributes:
        receipt_id: Unique in its run.
        action: approve, retry or replay.
        plan_sha256: The exact node plan; a retry of a node that failed before it had a plan names none.
        attempt: The attempt that a retry or a replay is to follow, or whose result it is that may be approved.
        approver: The person who gives it.
        subject: Who may use it; never the approver.
        rule: Id of the authority rule by which the approver may.
        lasts_ms: How long it can be used, milliseconds.
        expires_at: Until when that is.
        request_id: The request that it was made by.
        ended_by: The request that used it up or took it back.

    """

    receipt_id: Id
    run_id: RunId
    node: NodeKey
    action: Action = Field(strict=False)
    plan_sha256: Sha256 | None
    attempt: Attempt | None = None
    approver: Principal
    subject: Principal
    rule: Id
    reason: Reason = ""
    lasts_ms: int = Field(ge=1, le=LONGEST_MS)
    created_at: Instant
    expires_at: Instant
    request_id: Id
    state: ReceiptState = Field(default=ReceiptState.OPEN, strict=False)
    ended_by: Id | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A request is refused.

    Attributes:
        code: The stable code.
        what: What is wrong, one line.
        todo: What the reader can do about it, one line.

    """

    code: Code
    what: str
    todo: str


def wanted(request: Request) -> Action | None:
    """Return what the receipt that *request* wants made is to be for; None if it is no such thing."""
    action = request.data.get("action")
    return Action(action) if isinstance(action, str) and action in set(USES.values()) else None


def written(request: Request, *, rule: str, attempt: int, of_result: bool, at: str) -> Receipt:
    """Return the receipt that an accepted request makes.

    Args:
        request: Of kind receipt.
        rule: Id of the rule by which its principal may.
        attempt: Of the node, now.
        of_result: Whether the result of that attempt waits for approval.
        at: When.

    """
    action, lasts_ms = wanted(request), request.data["lasts_ms"]
    if action is None or request.node is None or not isinstance(lasts_ms, int):
        raise AssertionError(request)
    return Receipt(
        receipt_id=str(request.data[FIELD]),
        run_id=request.run_id,
        node=request.node,
        action=action,
        plan_sha256=request.plan_sha256,
        attempt=attempt if of_result or action in _OF_ATTEMPT else None,
        approver=request.principal,
        subject=str(request.data["subject"]),
        rule=rule,
        reason=request.reason,
        lasts_ms=lasts_ms,
        created_at=at,
        expires_at=instant(unix_ms(at) + lasts_ms),
        request_id=request.request_id,
    )


def making_refusal(request: Request, before: Receipt | None) -> Refused | None:
    """Say why the receipt that *request* wants cannot be made, whoever wants it; None if it can.

    Args:
        request: Of kind receipt.
        before: The receipt of that id that the run has already.

    """
    subject, lasts_ms = request.data.get("subject"), request.data.get("lasts_ms")
    name = request.data.get(FIELD)
    if not isinstance(name, str) or not 0 < len(name) <= 1024 or wanted(request) is None:
        return Refused(
            code=Code.INVALID_DATA,
            what="the request does not say which receipt is to be made, or for what",
            todo=f"name it, and one of {', '.join(USES.values())}",
        )
    if not isinstance(subject, str) or principal_kind(subject) is None or len(subject) > 1024:
        return Refused(
            code=Code.INVALID_DATA,
            what=f"receipt {name} is for {subject!r}, which is no principal",
            todo="write it as agent:NAME, human:NAME or service:NAME",
        )
    if type(lasts_ms) is not int or not 1 <= lasts_ms <= LONGEST_MS:
        return Refused(
            code=Code.INVALID_DATA,
            what=f"receipt {name} is to last {lasts_ms!r} ms",
            todo=f"give it 1 ms to {LONGEST_MS // 86_400_000} days",
        )
    if principal_kind(request.principal) != "human":
        return _not_human(name, request.principal)
    if subject == request.principal:
        return _own(name, subject)
    if before is not None:
        return Refused(
            code=Code.RECEIPT_COLLISION,
            what=f"run {request.run_id} has a receipt {name} already",
            todo="give the new one another id",
        )
    return None


def refusal(
    receipt: Receipt | None,
    request: Request,
    *,
    plan_sha256: str | None,
    attempt: int,
    gate: bool,
    rules: Sequence[Rule],
    matter: Matter,
    at: str,
) -> Refused | None:
    """Say why *request* cannot be made with the receipt that it names; None if it can.

    Args:
        receipt: The receipt of that id that the run has; None if it has none.
        request: What somebody wants.
        plan_sha256: What its node waits with.
        attempt: Of its node.
        gate: Whether its node is a pure gate.
        rules: The authority rules, in order.
        matter: What it is about.
        at: When.

    """
    if receipt is None:
        return _unknown(request)
    named = f"receipt {receipt.receipt_id}"
    if receipt.subject != request.principal:
        return _mismatch(named, "subject", f"is for {receipt.subject}", f"used by {request.principal}")
    if principal_kind(receipt.approver) != "human":
        return _not_human(receipt.receipt_id, receipt.approver)
    if gate and principal_kind(request.principal) != "human":
        return _not_human(receipt.receipt_id, request.principal, gate=True)
    said, rule = verdict(rules, principal=receipt.approver, action=receipt.action, matter=matter)
    if receipt.approver == receipt.subject:
        return _own(receipt.receipt_id, receipt.subject)
    if said is not Verdict.ALLOW:
        return Refused(
            code=Code.RECEIPT_WRONG_APPROVER,
            what=f"{named} was given by {receipt.approver}, who may not {receipt.action} this (rule {rule})",
            todo="ask somebody who may for another one",
        )
    ended = _ended(receipt, named, at)
    if ended is not None:
        return ended
    for what, of_it, of_request in (
        ("action", receipt.action.value, request.kind.value),
        ("resource", f"{receipt.run_id}/{receipt.node}", f"{request.run_id}/{request.node}"),
        ("plan", receipt.plan_sha256, request.plan_sha256),
        ("plan", receipt.plan_sha256, plan_sha256),
        ("rule", receipt.rule, rule),
        ("attempt", receipt.attempt, attempt if receipt.attempt is not None else None),
    ):
        if of_it != of_request:
            return _mismatch(named, what, f"is for {what} {of_it}", f"not {of_request}")
    return None


def revoking_refusal(request: Request, receipt: Receipt | None) -> Refused | None:
    """Say why the receipt that *request* names cannot be taken back; None if it can."""
    if receipt is None:
        return _unknown(request)
    return _ended(receipt, f"receipt {receipt.receipt_id}", receipt.created_at)


def _unknown(request: Request) -> Refused:
    return Refused(
        code=Code.RECEIPT_UNKNOWN,
        what=f"run {request.run_id} has no receipt {str(request.data.get(FIELD))[:100]}",
        todo=f"see `hostler receipt list {request.run_id}`",
    )


def _ended(receipt: Receipt, named: str, at: str) -> Refused | None:
    todo = "ask its approver for another one"
    if receipt.state is ReceiptState.REVOKED:
        what = f"{named} was taken back"
        return Refused(code=Code.RECEIPT_REJECTED, what=what, todo=todo)
    if receipt.state is ReceiptState.USED:
        what = f"{named} was used already, by request {receipt.ended_by}"
        return Refused(code=Code.RECEIPT_CONSUMED, what=what, todo=todo)
    if not receipt.created_at <= at < receipt.expires_at:  # a clock that went back behind its making proves nothing
        what = f"{named} was good from {receipt.created_at} until {receipt.expires_at}"
        return Refused(code=Code.RECEIPT_EXPIRED, what=what, todo=todo)
    return None


def _mismatch(named: str, what: str, of_it: str, of_request: str) -> Refused:
    return Refused(
        code=Code.RECEIPT_MISMATCH,
        what=f"{named} {of_it}, {of_request}",
        todo=f"ask for a receipt for that {what}",
    )


def _not_human(name: str, principal: str, *, gate: bool = False) -> Refused:
    does = "presented at a gate" if gate else "given"
    what = f"receipt {name} is {does} by {principal}"
    return Refused(
        code=Code.RECEIPT_NOT_HUMAN,
        what=f"{what}, which only a human may",
        todo="a person must do it, from a shell that no node of a run has started",
    )


def _own(name: str, principal: str) -> Refused:
    return Refused(
        code=Code.RECEIPT_WRONG_APPROVER,
        what=f"receipt {name} is given by {principal} to {principal}",
        todo="name another subject, or approve without a receipt",
    )
