"""What a scheduler knows of its run."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappush

from pydantic import JsonValue

from store.approvals import DEFAULT_RULES, Rule
from store.contracts import (
    ComputeExecutor,
    Effect,
    GateExecutor,
    GrantAction,
    GraphPlan,
    NodeRecord,
    OperationExecutor,
    PlannedNode,
    Resume,
    RunRecord,
)
from store.lifecycle import RunStatus, Status
from store.transactions import Claimed, Fence


@dataclass(slots=True, eq=False)
class NodeState:
    """One node: its plan, its record, and what only this host needs to know of it.

    Attributes:
        waiting: How many of its dependencies are not completed.
        stopping: Why its attempt was asked to stop, if it was.
        recovering: Whether it waits until leftovers of a dead attempt are ended.

    """

    planned: PlannedNode
    record: NodeRecord
    dependents: list["NodeState"] = field(default_factory=list)
    waiting: int = 0
    stopping: str | None = None
    recovering: bool = False

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
    def noticeable(self) -> bool:
        """Whether anybody could notice that it ran; only then must its intent be durable before it starts."""
        policy = self.planned.policy
        return not (
            policy.effect is Effect.PURE
            and policy.resume is Resume.DETERMINISTIC
            and isinstance(self.planned.executor, OperationExecutor)
        )


@dataclass(slots=True, eq=False)
class RunState:
    """A claimed run in memory.

    Attributes:
        jobs: How many nodes may be queued or running; 0 takes nothing up and only settles requests.
        release_at_rest: Whether the run is handed back when it rests, as a command does, or kept, as a program does.
        tally: Number of nodes by status.
        ready: Heap of keys that may be taken up; an entry whose node is not ready any more is skipped.
        active: Number of nodes queued or running, those that recover included.
        outputs: Values of completed nodes.
        granted: (node, plan digest) of effects and gates that a person let through.
        judging: Requests that authority has not answered yet.
        reused: Nodes that were completed before this host took the run up.

    """

    record: RunRecord
    plan: GraphPlan
    fence: Fence
    nodes: dict[str, NodeState]
    status: RunStatus
    started: bool
    jobs: int
    release_at_rest: bool
    rules: tuple[Rule, ...] = DEFAULT_RULES
    tally: Counter[Status] = field(default_factory=Counter)
    ready: list[str] = field(default_factory=list)
    active: int = 0
    outputs: dict[str, JsonValue] = field(default_factory=dict)
    granted: set[tuple[str, str]] = field(default_factory=set)
    seen_requests: set[str] = field(default_factory=set)
    judging: set[str] = field(default_factory=set)
    reused: frozenset[str] = frozenset()
    draining: bool = False
    left: bool = False

    @property
    def run_id(self) -> str:
        """The run."""
        return self.record.run_id

    def push_ready(self, node: NodeState) -> None:
        """Let *node* be taken up when there is room."""
        heappush(self.ready, node.key)

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


def load(claimed: Claimed, *, jobs: int, release_at_rest: bool, rules: Sequence[Rule] = DEFAULT_RULES) -> RunState:
    """Build the state of a run from what its claim found in the store, in time linear in its nodes and edges.

    Args:
        claimed: The run as stored, digests verified.
        jobs: How many nodes may be queued or running here.
        release_at_rest: Whether to hand the run back when it rests.
        rules: Authority.

    """
    planned = {node.key: node for node in claimed.plan.nodes}
    nodes = {record.key: NodeState(planned=planned[record.key], record=record) for record in claimed.nodes}
    state = RunState(
        record=claimed.record,
        plan=claimed.plan,
        fence=claimed.fence,
        nodes=nodes,
        status=claimed.status,
        started=claimed.started,
        jobs=jobs,
        release_at_rest=release_at_rest,
        rules=tuple(rules),
        outputs=dict(claimed.outputs),
        reused=frozenset(record.key for record in claimed.nodes if record.status is Status.COMPLETED),
        granted={
            (grant.node, grant.plan_sha256)
            for grant in claimed.grants
            if grant.allowed and grant.action in {GrantAction.EFFECT, GrantAction.GATE}
        },
    )
    for node in nodes.values():
        state.tally[node.status] += 1
        for key in node.planned.dependencies:
            dependency = nodes[key]
            dependency.dependents.append(node)
            node.waiting += dependency.status is not Status.COMPLETED
        if node.status is Status.READY:
            state.push_ready(node)
    return state
