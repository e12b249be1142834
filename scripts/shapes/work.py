"""What `work` tells a worker."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON
from typing import Literal

from pydantic import JsonValue

from scripts.shapes.common import Piece, Versioned
from store.fields import Instant, NodeKey, RunId


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
