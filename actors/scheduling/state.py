"""What a scheduler knows of its run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heappush
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from actors.scheduling.families import Families, Family
from actors.scheduling.lanes import Rank
from actors.scheduling.shares import Shares
from actors.scheduling.spending import held_at_rest, shares_of
from store.approvals import Accepted
from store.contracts import GrantAction, NodeRecord, Request, RunRecord
from store.delegation import parents_owner
from store.envelopes import envelope_of
from store.lifecycle import RunStatus, Status
from store.plans import GraphPlan, NodePlan, OperationExecutor, PlannedNode
from store.receipts import Receipt
from store.revisions import revised, revisions
from store.rules import DEFAULT_RULES, Matter, Rule
from store.terms import Envelope, Evidence
from store.transactions import Claimed, Fence


class Port(StrEnum):
    """What an operation may bring besides its function."""

    PREPARE = "prepare"
    PLAN = "plan"
    RECONCILE = "reconcile"
    PROBE = "probe"


Ports = Mapping[tuple[str, int], frozenset[Port]]
"""(kind, version) of each operation that this host has → what it brings."""


@dataclass(slots=True, eq=False)
class NodeState:
    """One node: its plan, its record, and what only this host needs to know of it.

    Its key and its status are read most often, so they stand beside the record, which a turn alone moves.

    Attributes:
        family: What it has in common with other nodes of its run.
        planned: What the graph plan says of it, with the input of its last revision.
        plan: What is frozen of its exact plan: its preparation, then its effect; None before that and once completed.
        given: Canonical bytes of the input of that plan, from when it is made until its first attempt starts.
        waiting: How many of its dependencies are not completed.
        asked: How often a planner was asked; an answer to an earlier question does not count.
        stopping: Why its attempt was asked to stop, if it was.
        recovering: Whether it waits until leftovers of a dead attempt are ended.
        hanging: Its attempts, and their reconciliations (true), that were given up on here and have not ended.
        clearing: Whether leftovers of its earlier attempts are being ended before it starts again.
        cleared: Whether nothing of its earlier attempts lives.
        reconciling: Whether its attempt is over and what it did is being found out.
        asks: How often the machine was asked; an answer to an earlier ask does not count.
        asking: Whether it waits for the machine.
        worker: Who outside this host works on it, if it is leased.
        leased_s: How long that lease still lasted when this host took the run up, seconds.
        probing: Whether its operation is being asked if what it waits for is still at work.
        looked_at_in_s: How long after its start, or the last look, its attempt is looked at for a sign of life.
        began_ns: When its attempt began here, CLOCK_BOOTTIME; None for one of a dead host.
        told: Whether its attempt has said what it spent.
        unknown: Whether its attempt may have spent what it has not said.
        wanted: Whether somebody asked that an attempt of which is found out what it did be made again.
        after_s: Seconds before which that attempt said itself that another try cannot help.
        integrating: Whether what it made is being brought to where it belongs.
        envelope: What it may do at most; None where nothing is kept from it.

    """

    planned: PlannedNode
    record: NodeRecord
    family: Family
    key: str = field(init=False)
    status: Status = field(init=False)
    plan: NodePlan | None = None
    given: bytes | None = None
    dependents: list["NodeState"] = field(default_factory=list)
    waiting: int = 0
    asked: int = 0
    stopping: str | None = None
    recovering: bool = False
    hanging: frozenset[tuple[int, bool]] = frozenset()
    clearing: bool = False
    cleared: bool = False
    reconciling: bool = False
    asks: int = 0
    asking: bool = False
    worker: str | None = None
    leased_s: float = 0.0
    probing: bool = False
    looked_at_in_s: float = 0.0
    began_ns: int | None = None
    told: bool = False
    unknown: bool = False
    wanted: bool = False
    after_s: float | None = None
    integrating: bool = False
    envelope: Envelope | None = None

    def __post_init__(self) -> None:
        """Take the key and the status from the record."""
        self.key, self.status = self.record.key, self.record.status

    @property
    def integrates(self) -> bool:
        """Whether what it makes is brought to where it belongs before it counts as completed."""
        workspace = self.planned.workspace
        return workspace is not None and workspace.integrate

    @property
    def evidence_due(self) -> tuple[Evidence, ...]:
        """What it must bring to show for its work."""
        terms = self.planned.terms
        return () if terms is None else terms.evidence

    @property
    def matter(self) -> Matter:
        """What the authority rules see of it."""
        return Matter(node=self.planned, keys=self.plan.keys if self.plan is not None else ())


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
        shares: Its budgets and caps, and the ready nodes that these hold back; None if it has none.
        active: Number of nodes preparing, queued or running here, those that recover, clear or integrate included.
        leased: Number of nodes that workers outside work on.
        deferred: Nodes whose attempt's effect could not be found out here; a later owner tries again.
        outputs: Values of completed nodes, and of those whose result is verified.
        granted: (node, plan digest) of preparations, effects and gates that a person let through.
        approved: (node, plan digest, attempt) of each result that a person approved.
        receipts: Receipts by id, used ones too.
        judging: Requests that authority has not answered yet.
        reused: Nodes that were completed before this host took the run up.
        lacking: Nodes whose code this host does not have, and why not.
        draining: Whether nothing is taken up any more, and the run is handed back.
        drains: How often that was asked for.
        full: Whether the disk of the store has room for the end of what runs alone: nothing is taken up meanwhile.
        postponed: Requests with their rulings that wait until leftovers have been ended.

    """

    record: RunRecord
    run_id: str = field(init=False)
    plan: GraphPlan
    fence: Fence
    nodes: dict[str, NodeState]
    status: RunStatus
    started_at: str | None
    jobs: int
    release_at_rest: bool
    rules: tuple[Rule, ...] = DEFAULT_RULES
    ports: Ports = field(default_factory=dict)
    tally: Counter[Status] = field(default_factory=lambda: Counter(dict.fromkeys(Status, 0)))
    ready: list[Rank] = field(default_factory=list)
    shares: Shares | None = None
    active: int = 0
    leased: int = 0
    deferred: set[str] = field(default_factory=set)
    outputs: dict[str, JsonValue] = field(default_factory=dict)
    granted: set[tuple[str, str]] = field(default_factory=set)
    approved: set[tuple[str, str, int]] = field(default_factory=set)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    seen_requests: set[str] = field(default_factory=set)
    judging: set[str] = field(default_factory=set)
    reused: frozenset[str] = frozenset()
    lacking: Mapping[str, str] = field(default_factory=dict)
    postponed: list[tuple[Request, Accepted]] = field(default_factory=list)
    draining: bool = False
    drains: int = 0
    full: bool = False
    left: bool = False

    def __post_init__(self) -> None:
        """Take the id from the record."""
        self.run_id = self.record.run_id

    @property
    def started(self) -> bool:
        """Whether a scheduler ever took it up."""
        return self.started_at is not None

    @property
    def room(self) -> bool:
        """Whether another node may be taken up here."""
        return self.active < self.jobs and (not self.leased or self.within_limit)

    @property
    def within_limit(self) -> bool:
        """Whether the limits of the run let another node be active, wherever it is worked on."""
        most = self.plan.limits.active
        return most is None or self.active + self.leased < most

    def push_ready(self, node: NodeState) -> None:
        """Let *node* be taken up when there is room."""
        heappush(self.ready, (-node.planned.priority, node.key))

    def push_again(self, rank: Rank) -> None:
        """Let a node that was held back be looked at in its old place."""
        heappush(self.ready, rank)

    def ports_of(self, node: NodeState) -> frozenset[Port] | None:
        """Return what the operation of *node* brings; None where this host does not have it."""
        executor = node.planned.executor
        if not isinstance(executor, OperationExecutor):
            return frozenset()
        return self.ports.get((executor.operation, executor.version))

    def has(self, node: NodeState, port: Port) -> bool:
        """Say whether the operation of *node* brings *port*."""
        return port in (self.ports_of(node) or ())

    def parents_owner(self, node: NodeState) -> str | None:
        """Return the id of the owner of the node that delegated *node*."""
        return parents_owner(node.planned, lambda key: self.nodes[key].planned if key in self.nodes else None)

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
    for key, revision in revisions(claimed.grants).items():
        planned[key] = revised(planned[key], revision)
    families = Families(claimed.record.run_id)
    nodes = {
        record.key: NodeState(
            planned=planned[record.key],
            record=record,
            family=families.of(planned[record.key]),
            plan=claimed.plans.get(record.key),
        )
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
        shares=shares_of(claimed),
        outputs=dict(claimed.outputs),
        reused=frozenset(record.key for record in claimed.nodes if record.status is Status.COMPLETED),
        granted={
            (grant.node, grant.plan_sha256)
            for grant in claimed.grants
            if grant.allowed and grant.action in LETS_THROUGH and grant.plan_sha256 is not None
        },
        approved={
            (grant.node, grant.plan_sha256, grant.attempt)
            for grant in claimed.grants
            if grant.allowed
            and grant.action is GrantAction.EVIDENCE
            and grant.plan_sha256 is not None
            and grant.attempt is not None
        },
    )
    for lease in claimed.leases:
        nodes[lease.node].worker, nodes[lease.node].leased_s = lease.worker, lease.left_s
        state.leased += 1
    state.receipts.update((receipt.receipt_id, receipt) for receipt in claimed.receipts)
    for node in nodes.values():
        if node.planned.terms is not None:
            node.envelope = envelope_of(node.key, planned)
        state.tally[node.status] += 1
        for key in node.planned.dependencies:
            dependency = nodes[key]
            dependency.dependents.append(node)
            node.waiting += dependency.status is not Status.COMPLETED
        if node.status is Status.READY and not held_at_rest(state, node):
            state.push_ready(node)
        node.unknown = node.status in {Status.RUNNING, Status.VERIFYING}
    return state
