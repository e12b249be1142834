"""What reaches the disk: frozen, strict pydantic models, validated where they come in.

JSON inside them (`input`, `data`, `outputs`) is read-only by convention; `store.values` gives its canonical bytes.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, PlainSerializer

from store.lifecycle import RunStatus, Status

MAX_SAFE_INTEGER: Final = 2**53 - 1
DAY_SECONDS: Final = 86_400.0
MIB: Final = 1 << 20

NODE_KEY_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*$"
NAME_PATTERN: Final = r"^[a-z][a-z0-9]*([._-][a-z0-9]+)*$"
SHA256_PATTERN: Final = r"^[0-9a-f]{64}$"
RUN_ID_PATTERN: Final = r"^run_[0-9a-hjkmnp-tv-z]{26}$"


def _frozen(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(sorted(mapping.items())))


NodeKey = Annotated[str, Field(min_length=1, max_length=255, pattern=NODE_KEY_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=255, pattern=NAME_PATTERN)]
Sha256 = Annotated[str, Field(pattern=SHA256_PATTERN)]
RunId = Annotated[str, Field(pattern=RUN_ID_PATTERN)]
Instant = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
"""RFC 3339, UTC, milliseconds, Z."""
Weight = Annotated[int, Field(ge=1, le=MAX_SAFE_INTEGER)]
Claims = Annotated[
    Mapping[Name, Weight],
    AfterValidator(_frozen),
    PlainSerializer(lambda mapping: dict(mapping), return_type=dict[str, int]),  # noqa: PLW0108 - pydantic needs a signature
]
"""Resource → units, read-only."""
Text = Annotated[str, Field(max_length=4096)]
"""A path, or a text of about a page."""
Reason = Annotated[str, Field(max_length=4000)]
Principal = Annotated[str, Field(min_length=1, max_length=1024)]
"""`kind:id`."""
Id = Annotated[str, Field(min_length=1, max_length=1024)]
Attempt = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Number = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Strings = Annotated[
    Mapping[Id, Text],
    AfterValidator(_frozen),
    PlainSerializer(lambda mapping: dict(mapping), return_type=dict[str, str]),  # noqa: PLW0108 - likewise
]


Counts = Annotated[
    Mapping[Id, Number],
    AfterValidator(_frozen),
    PlainSerializer(lambda mapping: dict(mapping), return_type=dict[str, int]),  # noqa: PLW0108 - likewise
]
Digests = Annotated[
    Mapping[NodeKey, Sha256],
    AfterValidator(_frozen),
    PlainSerializer(lambda mapping: dict(mapping), return_type=dict[str, str]),  # noqa: PLW0108 - likewise
]


class Contract(BaseModel):
    """Base of everything stored: frozen, strict, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Effect(StrEnum):
    """What running a node does to the world."""

    PURE = "pure"
    LOCAL_READ = "local-read"
    LOCAL_DERIVED_WRITE = "local-derived-write"
    PROJECT_MUTATION = "project-mutation"
    PAID_CLOUD = "paid-cloud"
    LIVE_CONTROL = "live-control"
    TRUSTED_CODE = "trusted-code"


class Resume(StrEnum):
    """What may be done with an attempt that was interrupted."""

    DETERMINISTIC = "deterministic"
    VERIFIED_RECEIPT = "verified-receipt"
    RECOVERABLE_TRANSACTION = "recoverable-transaction"
    AMBIGUOUS_AFTER_DISPATCH = "ambiguous-after-dispatch"
    NON_RESUMABLE_LIVE = "non-resumable-live"
    EXPLICIT_CODE_REPLAY = "explicit-code-replay"


class Isolation(StrEnum):
    """Where the Python function of an operation runs."""

    THREAD = "thread"
    PROCESS = "process"


class FailureCode(StrEnum):
    """Why a node failed; stable, in views and events."""

    AUTHORIZATION_REQUIRED = "authorization-required"
    CANCELLED = "cancelled"
    CONFLICT = "conflict"
    INCOMPATIBLE = "incompatible"
    INVALID_DATA = "invalid-data"
    SUBPROCESS = "subprocess"
    UNAVAILABLE = "unavailable"
    UNSUPPORTED_PLAN = "unsupported-plan"
    AMBIGUOUS = "ambiguous"
    INTERNAL = "internal"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    PROVIDER_TRANSIENT = "provider-transient"
    MALFORMED_OUTPUT = "malformed-output"
    BUDGET_EXHAUSTED = "budget-exhausted"


class PreparationKind(StrEnum):
    """What working out a node's exact plan looks at."""

    PROJECT_STATE = "project-state"
    RECORDING_METADATA = "recording-metadata"
    SCREEN_CAPTURE = "screen-capture"
    CAMERA = "camera"
    MICROPHONE = "microphone"
    SYSTEM_AUDIO = "system-audio"
    TYPED_TEXT = "typed-text"
    WINDOW_METADATA = "window-metadata"
    LOCAL_MEDIA = "local-media"
    PROVIDER_OPTIONS = "provider-options"


HOUR_SECONDS: Final = 3600.0
MAX_ATTEMPTS: Final = 16

Delay = Annotated[float, Field(ge=0, le=HOUR_SECONDS, allow_inf_nan=False)]


class Backoff(Contract):
    """Delays that grow from try to try.

    Attributes:
        first_s: Before the second try, seconds.
        factor: What each next delay is multiplied by.
        ceiling_s: No delay is longer, seconds.
        jitter: Up to which part of itself a delay is shortened, so that many failures do not come back at once.

    """

    first_s: Delay = 1.0
    factor: float = Field(default=2.0, ge=1, le=100, allow_inf_nan=False)
    ceiling_s: Delay = 300.0
    jitter: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)


class Retry(Contract):
    """When a failed attempt is made again by itself.

    Attributes:
        attempts: How often it may fail at most; 1 never tries again.
        delays: Seconds before the second, third… try, the last one for all further ones; or a `Backoff`.
        codes: Failures after which trying the same again may help.
        exhausted: Whether the node then fails, or is blocked until a person acts.

    """

    attempts: int = Field(default=1, ge=1, le=MAX_ATTEMPTS)
    delays: Annotated[tuple[Delay, ...], Field(max_length=MAX_ATTEMPTS - 1, strict=False)] | Backoff = ()
    codes: tuple[Annotated[FailureCode, Field(strict=False)], ...] = Field(
        default=(
            FailureCode.PROVIDER_TRANSIENT,
            FailureCode.STALLED,
            FailureCode.SUBPROCESS,
            FailureCode.TIMEOUT,
            FailureCode.UNAVAILABLE,
        ),
        strict=False,
    )
    exhausted: Literal["fail", "block"] = "fail"


class Policy(Contract):
    """What a node may do, needs and costs at most; the graph plan's hash covers it.

    Attributes:
        effect: What running it does to the world.
        resume: What may be done after an interruption.
        preparation: What working out its exact plan looks at; each kind needs authority of its own.
        claims: Machine resources it holds while it runs, in units.
        publishes: Fields of its input that name files it publishes; no two nodes on the machine publish to one
            file at a time. A field of an inner object is named with dots.
        cancellable: Whether admitted work may be aborted by a cancel; otherwise it is let finish.
        max_seconds: Time limit from admission, seconds.
        max_wait_seconds: Time limit of waiting for admission, seconds.
        max_input_bytes: Limit of the canonical input, bytes.
        max_output_bytes: Limit of the canonical output, bytes.
        retry: When a failed attempt is made again by itself.
        isolation: Whether its Python function runs in a thread of the host or in a worker process, which can be
            killed. What runs no Python function of its own is not concerned.

    """

    effect: Effect = Field(default=Effect.PURE, strict=False)
    resume: Resume = Field(default=Resume.DETERMINISTIC, strict=False)
    preparation: tuple[Annotated[PreparationKind, Field(strict=False)], ...] = Field(
        default=(), max_length=len(PreparationKind), strict=False
    )
    claims: Claims = Field(default_factory=dict, validate_default=True)
    publishes: tuple[Id, ...] = Field(default=(), max_length=64, strict=False)
    cancellable: bool = True
    max_seconds: float = Field(default=3600.0, gt=0, le=30 * DAY_SECONDS, allow_inf_nan=False)
    max_wait_seconds: float = Field(default=DAY_SECONDS, gt=0, le=DAY_SECONDS, allow_inf_nan=False)
    max_input_bytes: int = Field(default=32 * MIB, ge=1, le=32 * MIB)
    max_output_bytes: int = Field(default=32 * MIB, ge=1, le=32 * MIB)
    retry: Retry = Retry()
    isolation: Isolation = Field(default=Isolation.THREAD, strict=False)


class OperationExecutor(Contract):
    """A registered Python callable, by kind and version."""

    kind: Literal["operation"] = "operation"
    operation: Name
    version: int = Field(ge=1, le=MAX_SAFE_INTEGER)


class ComputeExecutor(Contract):
    """Trusted code of the workflow itself, by its name in the bundle."""

    kind: Literal["compute"] = "compute"
    compute: Name


class CommandExecutor(Contract):
    """A program. The node's resolved input holds what may contain references: {argv, env, stdin, value}.

    Attributes:
        cwd: Where it runs: absolute, or relative to the run's folder; None is the attempt's workspace.
        outputs: Name → path in the workspace of each file that it must leave.

    """

    kind: Literal["command"] = "command"
    cwd: Text | None = None
    outputs: Strings = Field(default_factory=dict, validate_default=True)


class GateExecutor(Contract):
    """Nothing runs; only a person's grant completes it."""

    kind: Literal["gate"] = "gate"
    gate: Literal[
        "activation",
        "scope-change",
        "external-write",
        "visual-baseline",
        "merge",
        "deploy",
        "publication",
        "final-delivery",
    ]


Executor = Annotated[OperationExecutor | ComputeExecutor | CommandExecutor | GateExecutor, Field(discriminator="kind")]


MAX_PRIORITY: Final = 10


class PlannedNode(Contract):
    """One node of a graph plan.

    Attributes:
        key: Its name in the run.
        label: For people.
        executor: What runs.
        input: The input, with references to outputs of other nodes.
        dependencies: Keys of the nodes it waits for, sorted: those that it refers to and those of `after`.
        policy: What it may do.
        priority: Of the nodes that are ready at once, the highest is taken up first.
        input_schema_sha256: Digest of the JSON schema of its input (operations and compute).
        output_schema_sha256: Likewise of its output.

    """

    key: NodeKey
    label: str | None = Field(default=None, max_length=255)
    executor: Executor
    input: JsonValue
    dependencies: tuple[NodeKey, ...] = Field(default=(), strict=False)
    policy: Policy
    priority: int = Field(default=0, ge=-MAX_PRIORITY, le=MAX_PRIORITY)
    input_schema_sha256: Sha256 | None = None
    output_schema_sha256: Sha256 | None = None


class RunLimits(Contract):
    """What a run may take as a whole; None is no limit.

    Attributes:
        seconds: From its first start, rests and restarts included.
        active: Nodes prepared, queued or running at a time.

    """

    seconds: float | None = Field(default=None, gt=0, le=365 * DAY_SECONDS, allow_inf_nan=False)
    active: int | None = Field(default=None, ge=1, le=MAX_SAFE_INTEGER)


class GraphPlan(Contract):
    """A whole workflow, compiled: everything that decides what a run of it does.

    Attributes:
        workflow: Id of the workflow.
        version: Its version.
        inputs: The concrete input values.
        nodes: In an order in which every node comes after its dependencies.
        outputs: Objects and arrays with references; what the run gives back.
        limits: What a run of it may take as a whole.
        bundle_sha256: Digest of the code bundle, only where there are compute nodes.

    """

    format: Literal[1] = 1
    workflow: Name
    version: int = Field(ge=1, le=MAX_SAFE_INTEGER)
    inputs: dict[str, JsonValue]
    nodes: tuple[PlannedNode, ...] = Field(strict=False)
    outputs: JsonValue = None
    limits: RunLimits = RunLimits()
    bundle_sha256: Sha256 | None = None


class PlanPhase(StrEnum):
    """What a node plan is a plan of."""

    PREPARATION = "preparation"
    EFFECT = "effect"


class NodePlan(Contract):
    """The exact plan of one node of one run; its digest is what a person approves. It does not cover the attempt.

    Attributes:
        phase: Whether it says what the node does, or only what working that out looks at.
        input: Exact; of a preparation, as the graph plan and the dependencies give it.
        keys: Publication keys: `file:` + absolute path, and what a planner adds.
        descriptors: What a planner says of the input that it will look at.
        max_input_bytes: A planner's bound of the exact input, within the policy's.
        max_seconds: A planner's bound of the time from admission, within the policy's.
        preparation_sha256: Of an effect: the preparation that it was worked out from.

    """

    run_id: RunId
    node: NodeKey
    phase: PlanPhase = Field(default=PlanPhase.EFFECT, strict=False)
    executor: Executor
    input: JsonValue
    input_sha256: Sha256
    dependencies: Digests
    policy: Policy
    keys: tuple[Annotated[str, Field(min_length=1, max_length=512)], ...] = Field(
        default=(), max_length=64, strict=False
    )
    descriptors: JsonValue = None
    max_input_bytes: int | None = Field(default=None, ge=1, le=32 * MIB)
    max_seconds: float | None = Field(default=None, gt=0, le=30 * DAY_SECONDS, allow_inf_nan=False)
    preparation_sha256: Sha256 | None = None


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
        gate_passed: Whether this attempt was let through to an outside write.
        cancelling: Whether a person wants it cancelled while it runs; a crash must not forget that.

    """

    attempt: Attempt = 0
    cancelling: bool = False
    delay_ms: int = Field(default=0, ge=0, le=3_600_000)
    due_at: Instant | None = None
    failure: Failure | None = None
    failures: int = Field(default=0, ge=0, le=MAX_SAFE_INTEGER)
    finished_at: Instant | None = None
    gate_passed: bool = False
    key: NodeKey
    output_sha256: Sha256 | None = None
    plan_sha256: Sha256 | None = None
    preparation_sha256: Sha256 | None = None
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


class Grant(Contract):
    """A durable answer, bound to exactly one node plan (or, for replay and settlement, to one attempt).

    Attributes:
        plan_sha256: What it is bound to; a retry of a node that failed before it had a plan names none.
        attempt: The attempt that a replay starts, or that a settlement is about.
        bundle_sha256: The code bundle that a replay may run.
        compute: The compute function that a replay may run.
        allowed: False is a denial.
        rule: Id of the authority rule that let it be given.
        request_id: The request it answers.

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
    reason: Reason = ""
    at: Instant


class RequestKind(StrEnum):
    """What a person or another process can ask of a run's owner."""

    APPROVE = "approve"
    DENY = "deny"
    CANCEL = "cancel"
    RETRY = "retry"
    REPLAY = "replay"
    SETTLE = "settle"
    ACCEPT_INCOMPATIBLE = "accept-incompatible"


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
