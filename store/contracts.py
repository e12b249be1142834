"""What is recorded of a run: itself, its nodes, its log, what was asked of it and answered.

All of it is frozen, strict pydantic, validated where it comes in. JSON inside (`data`, `outputs`) is read-only by
convention; `store.values` gives its canonical bytes.
"""

from enum import StrEnum

from pydantic import Field, JsonValue

from store.fields import (
    MAX_SAFE_INTEGER,
    Attempt,
    Contract,
    Counts,
    Id,
    Instant,
    Name,
    NodeKey,
    Principal,
    Reason,
    Revisions,
    RunId,
    Sha256,
    Text,
)
from store.lifecycle import RunStatus, Status
from store.policy import FailureCode
from store.terms import Evidence


class Failure(Contract):
    """Why a node is not completed. Its fields stand in the order of their names, as in its canonical bytes.

    Attributes:
        message: What is wrong, one line.
        todo: What a person can do, one line.

    """

    code: FailureCode = Field(strict=False)
    message: str = Field(max_length=4000)
    retryable: bool = False
    todo: str = Field(default="", max_length=1000)


class NodeRecord(Contract):
    """What is known of a node. Its fields stand in the order of their names, as in its canonical bytes.

    Attributes:
        attempt: How often it was started.
        preparation_sha256: Digest of its frozen preparation, where its operation has a planner.
        plan_sha256: Digest of its frozen node plan.
        failures: How often it failed since it was last reopened; interruptions do not count.
        due_at: When the next try is due.
        delay_ms: How long that was put off, milliseconds: no restart makes it longer.
        evidence: What its result has brought to show for it; of a completed node, all that was due.
        output_sha256: Digest of its result, which stands from then on when it is verified, and is there to be verified
            again when it is blocked.
        gate_passed: Whether this attempt was let through to an outside write.
        revision: How often a person has given it another input than the plan of the run.
        cancelling: Whether a person wants it cancelled while it runs; a crash must not forget that.

    """

    attempt: Attempt = 0
    cancelling: bool = False
    delay_ms: int = Field(default=0, ge=0, le=3_600_000)
    due_at: Instant | None = None
    evidence: tuple[Evidence, ...] = Field(default=(), max_length=64, strict=False)
    failure: Failure | None = None
    failures: int = Field(default=0, ge=0, le=MAX_SAFE_INTEGER)
    finished_at: Instant | None = None
    gate_passed: bool = False
    key: NodeKey
    output_sha256: Sha256 | None = None
    plan_sha256: Sha256 | None = None
    preparation_sha256: Sha256 | None = None
    revision: Revisions = 0
    started_at: Instant | None = None
    status: Status = Field(default=Status.PENDING, strict=False)

    @property
    def frozen_sha256(self) -> str | None:
        """What it waits with and what an answer must name: its plan, or its preparation before it has one."""
        return self.plan_sha256 or self.preparation_sha256


class RunRecord(Contract):
    """What a run is; written once, when it is created.

    Attributes:
        folder: Absolute; relative paths of inputs and publish targets resolve against it.
        source: Where the workflow came from: `path` or `path:name` or `module:name`; None for one built in a program.
        bundle_sha256: Digest of the code bundle of a Python workflow.
        principal: Who created it, `kind:id`.
        submission: What whoever asked for it calls it: asking again under that name gives this run.

    """

    run_id: RunId
    workflow: Name
    workflow_version: int = Field(ge=1, le=MAX_SAFE_INTEGER)
    plan_sha256: Sha256
    bundle_sha256: Sha256 | None = None
    folder: Text
    source: str | None = Field(default=None, max_length=8192)
    created_at: Instant
    principal: Principal
    submission: Id | None = None


class EventKind(StrEnum):
    """The kinds of events, a closed list."""

    RUN_CREATED = "run-created"
    RUN_CLAIMED = "run-claimed"
    RUN_RELEASED = "run-released"
    RUN_STATUS = "run-status"
    RUN_FINALIZED = "run-finalized"
    RUN_REOPENED = "run-reopened"
    NODE_STATUS = "node-status"
    NODE_PLAN = "node-plan"
    NODE_RUNNING = "node-running"
    LEASE_RELEASED = "lease-released"
    NODES_REUSED = "nodes-reused"
    APPROVAL_REQUIRED = "approval-required"
    GRANT = "grant"
    RECEIPT = "receipt"
    REQUEST = "request"
    SPENDING = "spending"
    LATE_RESULT = "late-result"
    LEFTOVER = "leftover"
    CLEANUP_ERROR = "cleanup-error"
    LOG_CUT = "log-cut"
    REQUEST_REFUSED = "request-refused"


class Event(Contract):
    """One entry of a run's log; each names the digest of the one before.

    `sha256` covers every other field.
    """

    run_id: RunId
    seq: int = Field(ge=1, le=MAX_SAFE_INTEGER)
    at: Instant
    boot_ns: int = Field(ge=0, le=(1 << 63) - 1)
    kind: EventKind = Field(strict=False)
    node: NodeKey | None = None
    attempt: Attempt | None = None
    principal: Principal | None = None
    data: dict[str, JsonValue]
    prev_sha256: Sha256
    sha256: Sha256


class GrantAction(StrEnum):
    """What a grant is for."""

    PREPARATION = "preparation"
    EFFECT = "effect"
    GATE = "gate"
    REPLAY = "replay"
    SETTLE = "settle"
    RETRY = "retry"
    EVIDENCE = "evidence"
    CORRECT = "correct"


class Revision(Contract):
    """A node as a person has corrected it; the plan of the run stays what it was.

    Attributes:
        number: Which revision of the node; the plan of the run has revision 0.
        input: Its input in place of the plan's, with references to outputs of the same dependencies.

    """

    number: int = Field(ge=1, le=MAX_SAFE_INTEGER)
    input: JsonValue


class Grant(Contract):
    """A durable answer, bound to exactly one node plan (or, for replay and settlement, to one attempt).

    Attributes:
        plan_sha256: What it is bound to; a retry or a correction of a node that failed before it had a plan names none.
        attempt: The attempt that a replay starts, that a settlement is about, or whose result is approved.
        bundle_sha256: The code bundle that a replay may run.
        compute: The compute function that a replay may run.
        allowed: False is a denial.
        rule: Id of the authority rule that let it be given.
        request_id: The request it answers.
        revision: What the node becomes by a correction.
        receipt_id: The receipt that it uses up; its principal is then the receipt's approver, not who used it.

    """

    grant_id: Id
    run_id: RunId
    node: NodeKey
    action: GrantAction = Field(strict=False)
    plan_sha256: Sha256 | None
    attempt: Attempt | None = None
    bundle_sha256: Sha256 | None = None
    compute: Name | None = None
    allowed: bool
    principal: Principal
    rule: Id
    request_id: Id | None = None
    receipt_id: Id | None = None
    reason: Reason = ""
    revision: Revision | None = None
    at: Instant


class RequestKind(StrEnum):
    """What a person or another process can ask of a run's owner."""

    APPROVE = "approve"
    DENY = "deny"
    CANCEL = "cancel"
    RETRY = "retry"
    REPLAY = "replay"
    SETTLE = "settle"
    CORRECT = "correct"
    RECOVER = "recover"
    ACCEPT_INCOMPATIBLE = "accept-incompatible"
    LEASE_WORK = "lease-work"
    SUBMIT_WORK = "submit-work"
    GIVE_BACK_WORK = "give-back-work"
    BUDGET = "budget"
    RECEIPT = "receipt"
    REVOKE = "revoke"


class Request(Contract):
    """What somebody wants of a run; inserted without a fence, unique by id, consumed by the owner.

    Attributes:
        request_id: Unique; a cancel has one per run and node, so that the first writer wins.
        plan_sha256: The exact node plan that is meant, where one is.
        data: What the kind needs besides.

    """

    request_id: Id
    run_id: RunId
    kind: RequestKind = Field(strict=False)
    node: NodeKey | None = None
    plan_sha256: Sha256 | None = None
    principal: Principal
    reason: Reason = ""
    data: dict[str, JsonValue] = Field(default_factory=dict)
    at: Instant


class Summary(Contract):
    """How a run ended; must agree with its nodes."""

    status: RunStatus = Field(strict=False)
    counts: Counts
    outputs: JsonValue = None
