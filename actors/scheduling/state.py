"""What a scheduler knows of its run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heappush
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from store.approvals import Accepted
from store.contracts import GrantAction, NodeRecord, Request, RunRecord
from store.envelopes import envelope_of
from store.lifecycle import RunStatus, Status
from store.plans import ComputeExecutor, GateExecutor, GraphPlan, NodePlan, OperationExecutor, PlannedNode
from store.policy import Effect, Resume
from store.receipts import Receipt
from store.rules import DEFAULT_RULES, Matter, Rule
from store.terms import Envelope
from store.transactions import Claimed, Fence


class Port(StrEnum):
    """What an operation may bring besides its function."""

    PREPARE = "prepare"
    PLAN = "plan"
    RECONCILE = "reconcile"


Ports = Mapping[tuple[str, int], frozenset[Port]]
"""(kind, version) of each operation that this host has → what it brings."""


@dataclass(slots=True, eq=False)
class NodeState:
    """One node: its plan, its record, and what only this host needs to know of it.

    Attributes:
        plan: What is frozen of its exact plan: its preparation, then its effect; None before that and once completed.
        waiting: How many of its dependencies are not completed.
        asked: How often a planner was asked; an answer to an earlier question does not count.
        stopping: Why its attempt was asked to stop, if it was.
        recovering: Whether it waits until leftovers of a dead attempt are ended.
        hanging: How many of its attempts were given up on here and have not ended.
        clearing: Whether leftovers of its earlier attempts are being ended before it starts again.
        cleared: Whether nothing of its earlier attempts lives.
        reconciling: Whether its attempt is over and what it did is being found out.
        asks: How often the machine was asked; an answer to an earlier ask does not count.
        asking: Whether it waits for the machine.
        envelope: What it may do at most; None where nothing is kept from it.

    """

    planned: PlannedNode
    record: NodeRecord
    plan: NodePlan | None = None
    dependents: list["NodeState"] = field(default_factory=list)
    waiting: int = 0
    asked: int = 0
    stopping: str | None = None
    recovering: bool = False
    hanging: int = 0
    clearing: bool = False
    cleared: bool = False
    reconciling: bool = False
    asks: int = 0
    asking: bool = False
    envelope: Envelope | None = None

    @property
    def key(self) -> str:
        """Its name in the run."""
        return self.record.key

    @property
    def status(self) -> Status:
        """Where it stands."""
        return self.record.status

    @property
    def trusted(self) -> bool:
        """Whether it runs code of the workflow itself, which no class of resume covers."""
        return isinstance(self.planned.executor, ComputeExecutor)

    @property
    def is_gate(self) -> bool:
        """Whether nothing runs and only a person's grant completes it."""
        return isinstance(self.planned.executor, GateExecutor)

    @property
    def matter(self) -> Matter:
        """What the authority rules see of it."""
        return Matter(node=self.planned, keys=self.plan.keys if self.plan is not None else ())

    @property
    def noticeable(self) -> bool:
        """Whether anybody could notice that it ran; only then must its intent be durable before it starts."""
        policy = self.planned.policy
        return not (
            policy.effect is Effect.PURE
            and policy.resume is Resume.DETERMINISTIC
            and isinstance(self.planned.executor, OperationExecutor)
        )


LETS_THROUGH: Final = frozenset({GrantAction.PREPARATION, GrantAction.EFFECT, GrantAction.GATE})
"""Grants for an exact plan, which count for every attempt of it."""


@dataclass(slots=True, eq=False)
class RunState:
    """A claimed run in memory.

    Attributes:
        started_at: When a scheduler first took it up.
        ports: The operations that this host has, and what they bring.
        jobs: How many nodes may be prepared, queued or running; 0 takes nothing up and only settles requests.
        release_at_rest: Whether the run is handed back when it rests, as a command does, or kept, as a program does.
        tally: Number of nodes by status.
        ready: Heap of (-priority, key) of what may be taken up; one whose node is not ready any more is skipped.
        active: Number of nodes preparing, queued or running, those that recover or are cleared included.
        deferred: Nodes whose attempt's effect could not be found out here; a later owner tries again.
        outputs: Values of completed nodes.
        granted: (node, plan digest) of preparations, effects and gates that a person let through.
        receipts: Receipts by id, used ones too.
        judging: Requests that authority has not answered yet.
        reused: Nodes that were completed before this host took the run up.
        lacking: Nodes whose code this host does not have, and why not.
        draining: Whether nothing is taken up any more, and the run is handed back.
        drains: How often that was asked for.
        postponed: Requests with their rulings that wait until leftovers have been ended.

    """

    record: RunRecord
    plan: GraphPlan
    fence: Fence
    nodes: dict[str, NodeState]
    status: RunStatus
    started_at: str | None
    jobs: int
    release_at_rest: bool
    rules: tuple[Rule, ...] = DEFAULT_RULES
    ports: Ports = field(default_factory=dict)
    tally: Counter[Status] = field(default_factory=Counter)
    ready: list[tuple[int, str]] = field(default_factory=list)
    active: int = 0
    deferred: set[str] = field(default_factory=set)
    outputs: dict[str, JsonValue] = field(default_factory=dict)
    granted: set[tuple[str, str]] = field(default_factory=set)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    seen_requests: set[str] = field(default_factory=set)
    judging: set[str] = field(default_factory=set)
    reused: frozenset[str] = frozenset()
    lacking: Mapping[str, str] = field(default_factory=dict)
    postponed: list[tuple[Request, Accepted]] = field(default_factory=list)
    draining: bool = False
    drains: int = 0
    left: bool = False

    @property
    def run_id(self) -> str:
        """The run."""
        return self.record.run_id

    @property
    def started(self) -> bool:
        """Whether a scheduler ever took it up."""
        return self.started_at is not None

    def push_ready(self, node: NodeState) -> None:
        """Let *node* be taken up when there is room."""
        heappush(self.ready, (-node.planned.priority, node.key))

    def ports_of(self, node: NodeState) -> frozenset[Port] | None:
        """Return what the operation of *node* brings; None where this host does not have it."""
        executor = node.planned.executor
        if not isinstance(executor, OperationExecutor):
            return frozenset()
        return self.ports.get((executor.operation, executor.version))

    def has(self, node: NodeState, port: Port) -> bool:
        """Say whether the operation of *node* brings *port*."""
        return port in (self.ports_of(node) or ())

    def dependents_of(self, node: NodeState) -> list[NodeState]:
        """Return all that depends on *node*, directly or through others, each after what it depends on in this set."""
        found: dict[str, NodeState] = {}
        frontier = [node]
        while frontier:
            for dependent in frontier.pop().dependents:
                if dependent.key not in found:
                    found[dependent.key] = dependent
                    frontier.append(dependent)
        return [each for key, each in self.nodes.items() if key in found] if found else []


NO_PORTS: Final[Ports] = MappingProxyType({})
NOTHING_LACKING: Final[Mapping[str, str]] = MappingProxyType({})


def load(
    claimed: Claimed,
    *,
    jobs: int,
    release_at_rest: bool,
    rules: Sequence[Rule] = DEFAULT_RULES,
    ports: Ports = NO_PORTS,
    lacking: Mapping[str, str] = NOTHING_LACKING,
) -> RunState:
    """Build the state of a run from what its claim found in the store, in time linear in its nodes and edges.

    Args:
        claimed: The run as stored, digests verified.
        jobs: How many nodes may be prepared, queued or running here.
        release_at_rest: Whether to hand the run back when it rests.
        rules: Authority.
        ports: What the operations that this host has bring.
        lacking: Nodes whose code this host does not have, and why not.

    """
    planned = {node.key: node for node in claimed.plan.nodes}
    nodes = {
        record.key: NodeState(planned=planned[record.key], record=record, plan=claimed.plans.get(record.key))
        for record in claimed.nodes
    }
    state = RunState(
        record=claimed.record,
        plan=claimed.plan,
        fence=claimed.fence,
        nodes=nodes,
        status=claimed.status,
        started_at=claimed.started_at,
        jobs=min(jobs, claimed.plan.limits.active or jobs),
        release_at_rest=release_at_rest,
        rules=tuple(rules),
        ports=ports,
        lacking=lacking,
        outputs=dict(claimed.outputs),
        reused=frozenset(record.key for record in claimed.nodes if record.status is Status.COMPLETED),
        granted={
            (grant.node, grant.plan_sha256)
            for grant in claimed.grants
            if grant.allowed and grant.action in LETS_THROUGH and grant.plan_sha256 is not None
        },
    )
    state.receipts.update((receipt.receipt_id, receipt) for receipt in claimed.receipts)
    for node in nodes.values():
        if node.planned.terms is not None:
            node.envelope = envelope_of(node.key, planned)
        state.tally[node.status] += 1
        for key in node.planned.dependencies:
            dependency = nodes[key]
            dependency.dependents.append(node)
            node.waiting += dependency.status is not Status.COMPLETED
        if node.status is Status.READY:
            state.push_ready(node)
    return state
