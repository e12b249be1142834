"""What `plan` and `submit` tell before anything runs."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON

from pydantic import JsonValue
from typing_extensions import TypedDict

from scripts.shapes.common import Units, Versioned
from store.fields import NodeKey, RunId, Sha256
from store.policy import Policy
from store.rules import Verdict


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
