"""What `run`, `show`, `runs`, `why`, `events`, `logs` and `timeline` tell of a run and its nodes."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON
from typing import Literal, NotRequired

from pydantic import JsonValue
from typing_extensions import TypedDict

from scripts.shapes.common import Budget, Imported, Owner, Piece, Units, Usage, Versioned
from store.contracts import EventKind
from store.fields import Instant, NodeKey, RunId, Sha256
from store.lifecycle import RunStatus, Status
from store.policy import FailureCode, Isolation


class Rest(TypedDict):
    node: NodeKey
    reason: Status
    message: str
    plan_sha256: NotRequired[Sha256]
    otherwise: NotRequired[list[str]]


class Waiting(Rest):
    command: NotRequired[str]


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


class Drawn(Versioned):
    run_id: RunId
    file: str
    bytes: int


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
