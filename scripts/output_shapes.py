"""Types of what commands print with `--json`; `scripts/write-tables` writes `hostler/output_schemas/` from them."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON
from typing import Any, Final, Literal, NotRequired, Union

from pydantic import JsonValue, TypeAdapter
from typing_extensions import TypedDict

from hostler.json_format import FIELD, FORMAT_VERSION
from hostres.rows import ADMITTED, REVOKED, WAITING
from store.approvals import RequestKind
from store.contracts import EventKind
from store.fields import Instant, NodeKey, RunId, Sha256
from store.lifecycle import RunStatus, Status
from store.plans import NodePlan
from store.policy import FailureCode, Isolation, Policy
from store.receipts import Action
from store.rules import Verdict
from store.terms import EvidenceType

Units = dict[str, int]
Number = int | str
"""Money and seconds are texts, since they are exact."""
Usage = dict[str, Number]


class Versioned(TypedDict):
    format_version: Literal[1]


class Waiting(TypedDict):
    node: NodeKey
    reason: Status
    message: str
    plan_sha256: NotRequired[Sha256]
    command: str
    otherwise: NotRequired[list[str]]


class Owner(TypedDict):
    host: str
    alive: bool


class Imported(TypedDict):
    sha256: Sha256


class Left(TypedDict):
    limit: Number
    left: Number


Budget = dict[Literal["tokens", "cost", "seconds", "tasks", "retries"], Left]


class Piece(TypedDict):
    id: str
    type: EvidenceType


class Evidence(TypedDict):
    due: list[Piece]
    brought: list[Piece]


class Failure(TypedDict):
    code: FailureCode
    message: str
    retryable: bool
    todo: str


class Correction(TypedDict):
    revision: int
    input: JsonValue
    at: Instant
    principal: str
    reason: str
    after_attempt: int
    replaced_plan_sha256: NotRequired[Sha256]


class LogCut(TypedDict):
    attempt: int
    stream: str
    bytes: int
    message: str


class Node(TypedDict):
    key: NodeKey
    executor: str
    status: Status
    attempt: int
    dependencies: list[NodeKey]
    claims: Units
    cancelling: NotRequired[Literal[True]]
    isolation: NotRequired[Isolation]
    started_at: NotRequired[Instant]
    finished_at: NotRequired[Instant]
    due_at: NotRequired[Instant]
    output_sha256: NotRequired[Sha256]
    preparation_sha256: NotRequired[Sha256]
    plan_sha256: NotRequired[Sha256]
    evidence: NotRequired[Evidence]
    failure: NotRequired[Failure]
    revision: NotRequired[int]
    corrections: NotRequired[list[Correction]]
    log_cuts: NotRequired[list[LogCut]]
    usage: NotRequired[Usage]
    budget: NotRequired[Budget]
    delegated: NotRequired[Usage]


class Run(Versioned):
    run_id: RunId
    workflow: str
    status: RunStatus
    plan_sha256: Sha256
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    counts: Units
    cancelling: NotRequired[Literal[True]]
    imported: NotRequired[Imported]
    owner: NotRequired[Owner]
    waiting_on: list[Waiting]
    budget: NotRequired[Budget]
    usage: NotRequired[Usage]
    outputs: NotRequired[JsonValue]
    nodes: list[Node]


class Detached(Versioned):
    run_id: RunId
    log: str


class Ruling(TypedDict):
    action: str
    what: str
    verdict: Verdict
    rule: str
    certain: bool


class PlannedNode(TypedDict):
    key: NodeKey
    label: str | None
    executor: str
    input: JsonValue
    dependencies: list[NodeKey]
    priority: int
    policy: Policy
    terms: dict[str, JsonValue] | None
    asks: bool
    authority: list[Ruling]


class Drawn(Versioned):
    run_id: RunId
    file: str
    bytes: int


class Address(Versioned):
    url: str
    port: int


class Plan(Versioned):
    workflow: str
    version: int
    plan_sha256: Sha256
    inputs: dict[str, JsonValue]
    nodes: list[PlannedNode]
    claims: Units
    largest_claims: Units
    approvals: list[NodeKey]
    denied: list[NodeKey]
    limits: dict[str, JsonValue]
    outputs: JsonValue


class Submitted(Versioned):
    run_id: RunId
    plan_sha256: Sha256
    command: str


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


class Question(Waiting):
    plan: NotRequired[NodePlan]


class Questions(Versioned):
    run_id: RunId
    waiting_on: list[Question]


class Answered(Versioned):
    run_id: RunId
    node: NodeKey
    answer: RequestKind


class Budgeted(Versioned):
    run_id: RunId
    node: NodeKey | None
    status: RunStatus
    budget: Budget | None
    usage: Usage


class ReceiptGiven(Versioned):
    run_id: RunId
    node: NodeKey
    receipt: str
    plan_sha256: Sha256 | None


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


class Listed(TypedDict):
    run_id: RunId
    workflow: str
    status: RunStatus
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    imported: NotRequired[Literal[True]]
    owner: NotRequired[Owner]


class Runs(Versioned):
    runs: list[Listed]
    more: bool


class Why(Versioned):
    run_id: RunId
    status: RunStatus | Status
    why: str
    node: NotRequired[NodeKey]
    command: NotRequired[str]
    otherwise: NotRequired[list[str]]


class Event(Versioned):
    run_id: RunId
    seq: int
    at: Instant
    boot_ns: int
    kind: EventKind
    node: NotRequired[NodeKey]
    attempt: NotRequired[int]
    principal: NotRequired[str]
    data: dict[str, JsonValue]
    prev_sha256: Sha256
    sha256: Sha256


class Process(TypedDict):
    number: int
    program: NotRequired[str]
    stdout: NotRequired[str]
    stderr: NotRequired[str]


class Logs(Versioned):
    run_id: RunId
    node: NodeKey
    attempt: int
    stdout: NotRequired[str]
    stderr: NotRequired[str]
    processes: NotRequired[list[Process]]
    error: NotRequired[str]


class LogLine(Versioned):
    stream: str
    line: str


class Problem(TypedDict):
    code: str
    table: str
    node: NotRequired[str]
    event: NotRequired[int]
    what: str


class OutputFile(TypedDict):
    code: str
    node: NodeKey
    path: str
    what: str


class Verdicts(TypedDict):
    file: NotRequired[str]
    run_id: str
    ok: bool
    status: RunStatus | None
    nodes: int
    events: int
    grants: int
    problems: list[Problem]
    files: list[OutputFile]


class Database(TypedDict):
    ok: bool
    problems: list[Problem]


class Verified(Versioned):
    ok: bool
    results: list[Verdicts]
    database: NotRequired[Database]


class Exported(Versioned):
    run_id: RunId
    file: str
    bytes: int
    sha256: Sha256


class BroughtIn(Versioned):
    run_id: RunId
    sha256: Sha256
    new: bool


class Bytes(TypedDict):
    files: int
    database: int
    reserved: int


class Collected(Versioned):
    dry_run: bool
    runs: list[RunId]
    plans: int
    bundles: int
    leftovers: int
    bytes: Bytes
    failed: list[str]
    kept: Units


class Finding(TypedDict):
    name: str
    state: Literal["ok", "note", "wrong"]
    said: str
    todo: NotRequired[str]
    facts: NotRequired[dict[str, JsonValue]]


class Setting(TypedDict):
    key: str
    value: str
    source: Literal["file", "environment", "machine", "default"]
    line: NotRequired[int]


class Findings(Versioned):
    ok: bool
    settings: list[Setting]
    findings: list[Finding]


class Capacity(TypedDict):
    units: int
    used: int
    source: Literal["configuration", "decision", "default", "program"]
    configured: int | None


class Machine(Versioned):
    profile: str
    turnaround_s: float | None
    folder: str
    configuration: str
    capacity: dict[str, Capacity]
    claims: dict[str, dict[str, Number]]
    memory: Literal["claimed", "available"]
    available_mb: int | None
    nice: int
    ionice: str | None


class Holder(TypedDict):
    pid: int
    command: str


class Blocked(TypedDict):
    resource: str
    wanted: int
    free: int
    tickets: list[int]
    reserved_for: NotRequired[int]
    really_available: NotRequired[int]


class Ticket(TypedDict):
    ticket: int
    state: Literal["admitted", "waiting", "revoked"]
    claims: Units
    name: str
    pid: int
    processes: list[Holder]
    since: Instant
    cpus: NotRequired[list[int]]
    blocked_by: NotRequired[list[Blocked]]
    inside: NotRequired[int]
    stopped: NotRequired[Literal[True]]
    patient: NotRequired[Literal[True]]


assert {ADMITTED, WAITING, REVOKED} == {"admitted", "waiting", "revoked"}


class TicketRevoked(Ticket, Versioned):
    pass


class TicketGone(Versioned):
    ticket: int
    state: Literal["revoked"]
    processes: list[Holder]


class Top(Versioned):
    capacity: Units
    used: Units
    tickets: list[Ticket]


class UnitInstalled(Versioned):
    manager: str
    path: str
    unit: str
    next: list[str]


class UnitRemoved(Versioned):
    manager: str
    removed: str | None
    next: list[str]


class ServiceStatus(Versioned):
    running: bool
    home: str
    manager: str
    pid: NotRequired[int]
    since: NotRequired[Instant]
    version: NotRequired[str]
    unit: str | None


class Work(Versioned):
    objective: str
    input: JsonValue
    evidence: list[Piece]
    budget: dict[str, JsonValue] | None
    authority: dict[str, JsonValue] | None
    idempotency_key: str
    run_id: RunId
    node: NodeKey
    attempt: int
    workspace: str
    worker: str
    lease_s: float
    expires_at: Instant
    max_seconds: float


class WorkKept(Versioned):
    idempotency_key: str
    expires_at: Instant


class WorkSettled(Versioned):
    idempotency_key: str
    settled: Literal[True]


class WorkGivenBack(Versioned):
    idempotency_key: str
    given_back: Literal[True]


class Schemas(Versioned):
    commands: list[str]


SHAPES: Final[dict[str, Any]] = {
    "run": Union[Run, Detached],  # noqa: UP007 (both are types at run time only)
    "plan": Plan,
    "submit": Submitted,
    "resume": Run,
    "watch": Run,
    "cancel": Cancelled,
    "approve": Union[Answers, Questions],  # noqa: UP007
    "receipt create": ReceiptGiven,
    "receipt list": Receipts,
    "receipt revoke": ReceiptRevoked,
    "retry": Answered,
    "correct": Answered,
    "recover": Answered,
    "replay": Answered,
    "settle": Answered,
    "work next": Work,
    "work beat": WorkKept,
    "work submit": WorkSettled,
    "work give-back": WorkGivenBack,
    "budget": Budgeted,
    "runs": Runs,
    "show": Run,
    "why": Why,
    "events": Event,
    "logs": Union[Logs, LogLine],  # noqa: UP007
    "timeline": Drawn,
    "ui": Address,
    "verify": Verified,
    "export": Exported,
    "import": BroughtIn,
    "gc": Collected,
    "service install": UnitInstalled,
    "service uninstall": UnitRemoved,
    "service status": ServiceStatus,
    "machine show": Machine,
    "machine set": Machine,
    "machine revoke": Union[TicketRevoked, TicketGone],  # noqa: UP007
    "top": Top,
    "doctor": Findings,
    "schema": Schemas,
}
"""Command, with its action → what one object of it looks like; of `events` and `logs --follow` one line."""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of(command: str) -> dict[str, Any]:
    """Return the JSON Schema of what a command prints with `--json`."""
    found = TypeAdapter(SHAPES[command]).json_schema(mode="serialization")
    return {"$schema": DIALECT, "title": f"hostler {command} --json", FIELD: FORMAT_VERSION, **_open(found)}


def _open(schema: Any) -> Any:
    """Return a schema that lets further fields pass, as readers should, without names that are only ours."""
    match schema:
        case dict():
            return {name: _open(value) for name, value in schema.items() if not _is_ours(name, value)}
        case list():
            return [_open(each) for each in schema]
        case _:
            return schema


def _is_ours(name: str, value: Any) -> bool:
    return (name == "additionalProperties" and value is False) or (name == "title" and isinstance(value, str))
