"""What those commands tell that ask something of a run: answers, budgets, receipts."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from scripts.shapes.common import Budget, Usage, Versioned
from scripts.shapes.runs import Rest
from store.approvals import RequestKind
from store.fields import Instant, NodeKey, RunId, Sha256
from store.lifecycle import RunStatus, Status
from store.plans import NodePlan
from store.receipts import Action


class Cancelled(Versioned):
    run_id: RunId
    node: NodeKey | None
    status: RunStatus | Status
    answered: bool


class Answer(TypedDict):
    node: NodeKey
    answer: Literal[RequestKind.APPROVE, RequestKind.DENY]
    plan_sha256: str


class Answers(Versioned):
    run_id: RunId
    answers: list[Answer]
    answered: bool


class Question(Rest):
    command: str
    plan: NotRequired[NodePlan]


class Questions(Versioned):
    run_id: RunId
    waiting_on: list[Question]


class Answered(Versioned):
    run_id: RunId
    node: NodeKey
    answer: RequestKind
    answered: bool


class Budgeted(Versioned):
    run_id: RunId
    node: NodeKey | None
    status: RunStatus
    budget: Budget | None
    usage: Usage
    answered: NotRequired[bool]


class ReceiptGiven(Versioned):
    run_id: RunId
    node: NodeKey
    receipt: str
    plan_sha256: Sha256 | None
    answered: bool


class Receipt(TypedDict):
    receipt_id: str
    run_id: RunId
    node: NodeKey
    action: Action
    plan_sha256: Sha256 | None
    attempt: int | None
    approver: str
    subject: str
    rule: str
    lasts_ms: int
    expires_at: Instant
    request_id: str
    reason: str
    created_at: Instant
    ended_by: str | None
    state: Literal["open", "used", "revoked", "expired"]


class Receipts(Versioned):
    run_id: RunId
    receipts: list[Receipt]


class ReceiptRevoked(Versioned):
    run_id: RunId
    receipt: str
    state: Literal["revoked"]
    answered: bool
