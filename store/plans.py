"""What is planned: the graph of a workflow, and the exact plan of each of its nodes."""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from store.amounts import Budget
from store.fields import MAX_SAFE_INTEGER, Contract, Digests, Name, NodeKey, Revisions, RunId, Sha256, Strings, Text
from store.policy import DAY_SECONDS, MIB, Policy
from store.terms import Terms
from store.workspace import GitWorkspace


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


class AgentExecutor(Contract):
    """An agent, given a request and answering with a result. The resolved input holds {argv, env, objective, value}.

    Attributes:
        external: Whether no program is started here: a worker of any process takes the work and brings the result.
        cwd: Where its program runs: absolute, or relative to the run's folder; None is the attempt's workspace.

    """

    kind: Literal["agent"] = "agent"
    external: bool = False
    cwd: Text | None = None


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


Executor = Annotated[
    OperationExecutor | ComputeExecutor | CommandExecutor | AgentExecutor | GateExecutor, Field(discriminator="kind")
]


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
        terms: On what terms it works; None where it stands for itself, without limits of its own.
        workspace: Where its work lies; None is a private folder.
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
    terms: Terms | None = None
    workspace: GitWorkspace | None = None
    input_schema_sha256: Sha256 | None = None
    output_schema_sha256: Sha256 | None = None


class RunLimits(Contract):
    """What a run may take as a whole; None is no limit.

    Attributes:
        seconds: From its first start, rests and restarts included.
        active: Nodes prepared, queued or running at a time.
        per_owner: Likewise of those that work for one owner.
        per_parent: Likewise of those that were delegated by one node.
        budget: What all of it may spend.

    """

    seconds: float | None = Field(default=None, gt=0, le=365 * DAY_SECONDS, allow_inf_nan=False)
    active: int | None = Field(default=None, ge=1, le=MAX_SAFE_INTEGER)
    per_owner: int | None = Field(default=None, ge=1, le=MAX_SAFE_INTEGER)
    per_parent: int | None = Field(default=None, ge=1, le=MAX_SAFE_INTEGER)
    budget: Budget | None = None


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
        revision: Of the node's input: 0 is the graph plan's, a higher one a person's.
        workspace: Where its work lies, and whether it is integrated; None is a private folder.

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
    revision: Revisions = 0
    workspace: GitWorkspace | None = None
