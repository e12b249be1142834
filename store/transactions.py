"""What the owner of a run hands to the store: messages, frozen, with every digest already computed."""

from collections.abc import Mapping
from dataclasses import field

from pydantic import JsonValue

from store.clock import Stamp
from store.contracts import EventKind, Grant, NodeRecord, Request, RunRecord, Summary
from store.lazy_dataclass import dataclass
from store.leases import HeldLease, NewLease
from store.ledgers import Ledger
from store.lifecycle import RunStatus
from store.plans import GraphPlan, NodePlan
from store.receipts import Receipt
from store.records import encode
from store.values import Domain, canonical, digest_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """One claim on a run; every write of its owner names it.

    Attributes:
        generation: Rises by one with every claim of the run and is never used again.
        token: Random.

    """

    run_id: str
    host_id: str
    generation: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event before it has its place in the run's log."""

    kind: EventKind
    node: str | None = None
    attempt: int | None = None
    principal: str | None = None
    data: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPlan:
    """A node plan with its digest and canonical bytes."""

    plan: NodePlan
    sha256: str
    data: bytes

    @classmethod
    def of(cls, plan: NodePlan) -> "FrozenPlan":
        """Freeze *plan*."""
        data = encode(plan)
        return cls(plan=plan, sha256=digest_bytes(Domain.NODE_PLAN, data), data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a node gave, with its digest and canonical bytes."""

    node: str
    value: JsonValue
    sha256: str
    data: bytes

    @classmethod
    def of(cls, node: str, value: JsonValue) -> "Output":
        """Freeze *value*.

        Raises:
            HostlerError: invalid-data, naming the path of what is not a JSON value.

        """
        data = canonical(value)
        return cls(node=node, value=value, sha256=digest_bytes(Domain.OUTPUT, data), data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Everything one decision of a scheduler writes: all of it becomes durable, or nothing.

    Attributes:
        fence: The claim it is made under.
        stamp: The moment of the decision; its events carry it.
        status: The run's status after it; None leaves it to what the nodes say.
        started: A scheduler takes the run up for the first time.
        summary: How the run ended.
        nodes: Whole new node records, in order.
        plans: Node plans that its node records freeze.
        outputs: Outputs that its node records name.
        events: What the run's log says of it, in order.
        grants: Answers that it stores.
        receipts: Receipts that it makes, uses up with one of the grants, or takes back.
        consumed: Ids of the requests that it answers; each can be consumed once.
        leases: Work that workers outside take with it.
        unleased: Nodes whose work is no worker's any more.
        ledgers: Whole new ledgers, as its events change them.
        release: Give the claim back.

    """

    fence: Fence
    stamp: Stamp
    status: RunStatus | None = None
    started: bool = False
    summary: Summary | None = None
    nodes: tuple[NodeRecord, ...] = ()
    plans: tuple[FrozenPlan, ...] = ()
    outputs: tuple[Output, ...] = ()
    events: tuple[NewEvent, ...] = ()
    grants: tuple[Grant, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    consumed: tuple[str, ...] = ()
    leases: tuple[NewLease, ...] = ()
    unleased: tuple[str, ...] = ()
    ledgers: tuple[Ledger, ...] = ()
    release: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A run as its new owner finds it, its identity verified whole.

    Attributes:
        nodes: In the order of the plan.
        started_at: When a scheduler first took it up; None if none ever did.
        outputs: Of the completed nodes, and of those whose result is verified; their digests are.
        plans: Of each node that may still go on, the plan that its record names last: its preparation or its effect.
        requests: Not yet consumed, oldest first.
        receipts: All that were ever made, oldest first.
        leases: Of the nodes that workers outside work on.
        ledgers: Of the nodes that reserved or spent something, and of the run; they are what its log adds up to.

    """

    fence: Fence
    record: RunRecord
    plan: GraphPlan
    status: RunStatus
    started_at: str | None
    nodes: tuple[NodeRecord, ...]
    outputs: Mapping[str, JsonValue]
    plans: Mapping[str, NodePlan]
    grants: tuple[Grant, ...]
    requests: tuple[Request, ...]
    leases: tuple[HeldLease, ...] = ()
    ledgers: tuple[Ledger, ...] = ()
    receipts: tuple[Receipt, ...] = ()
