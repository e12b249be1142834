"""Small plans, runs and moves for the tests of the store."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store.clock import Stamp, instant
from store.contracts import EventKind, Grant, GrantAction, NodeRecord, Request, RequestKind, RunRecord
from store.home import Home
from store.hosts import HostIdentity
from store.ids import new_run_id
from store.lifecycle import Status
from store.limits import Limits
from store.plans import ComputeExecutor, Executor, GateExecutor, GraphPlan, NodePlan, OperationExecutor, PlannedNode
from store.policy import Policy
from store.receipts import Receipt
from store.records import graph_plan_sha256
from store.rules import Action
from store.run_store import RunStore
from store.transactions import Claimed, FrozenPlan, NewEvent, Output, Transaction
from store.values import Domain, digest, digest_bytes

EPOCH_MS = 1_700_000_000_000
HUMAN = "human:ada"
OPERATION = OperationExecutor(operation="test.echo", version=1)
COMPUTE = ComputeExecutor(compute="double")
GATE = GateExecutor(gate="publication")


@dataclass
class FakeClock:
    """Moves on by a millisecond a reading."""

    ticks: Any = field(default_factory=lambda: itertools.count(1))

    def now(self) -> Stamp:
        tick = next(self.ticks)
        return Stamp(at=instant(EPOCH_MS + tick), boot_ns=tick * 1_000_000)


CLOCK = FakeClock()
STAMP = Stamp(at=instant(EPOCH_MS), boot_ns=1)
_ids = itertools.count(1)


def run_id() -> str:
    """Return a new id, later ones sort after earlier ones."""
    number = next(_ids)
    return new_run_id(EPOCH_MS + number, number.to_bytes(10, "big"))


def plan_of(
    nodes: Mapping[str, Sequence[str]],
    *,
    executors: Mapping[str, Executor] | None = None,
    bundle_sha256: str | None = None,
    inputs: dict[str, JsonValue] | None = None,
) -> GraphPlan:
    """Return a plan of nodes with those dependencies."""
    return GraphPlan(
        workflow="test",
        version=1,
        inputs=inputs or {},
        nodes=tuple(
            PlannedNode(
                key=key,
                executor=(executors or {}).get(key, OPERATION),
                input={"x": 1},
                dependencies=tuple(sorted(dependencies)),
                policy=Policy(),
            )
            for key, dependencies in nodes.items()
        ),
        bundle_sha256=bundle_sha256,
    )


DIAMOND = plan_of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})


def record_of(plan: GraphPlan, *, bundle: bytes | None = None, **changes: Any) -> RunRecord:
    """Return the record of a run of *plan*."""
    fields: dict[str, Any] = {
        "run_id": run_id(),
        "workflow": plan.workflow,
        "workflow_version": plan.version,
        "plan_sha256": graph_plan_sha256(plan),
        "bundle_sha256": None if bundle is None else digest_bytes(Domain.BUNDLE, bundle),
        "folder": "/tmp",
        "created_at": STAMP.at,
        "principal": HUMAN,
    }
    return RunRecord(**fields | changes)


def node_plan(run: str, node: str, value: JsonValue = None) -> FrozenPlan:
    """Return a frozen plan of a node."""
    return FrozenPlan.of(
        NodePlan(
            run_id=run,
            node=node,
            executor=OPERATION,
            input=value,
            input_sha256=digest(Domain.INPUT, value),
            dependencies={},
            policy=Policy(),
        )
    )


def grant_of(run: str, node: str, action: GrantAction, **changes: Any) -> Grant:
    """Return an allowed grant."""
    fields: dict[str, Any] = {
        "grant_id": f"grant-{next(_ids)}",
        "run_id": run,
        "node": node,
        "action": action,
        "plan_sha256": "0" * 64,
        "allowed": True,
        "principal": HUMAN,
        "rule": "default.human-approve",
        "at": STAMP.at,
    }
    return Grant(**fields | changes)


def receipt_of(run: str, node: str, plan_sha256: str, **changes: Any) -> Receipt:
    """Return an open receipt for an approval."""
    fields: dict[str, Any] = {
        "receipt_id": "night",
        "run_id": run,
        "node": node,
        "action": Action.APPROVE,
        "plan_sha256": plan_sha256,
        "approver": HUMAN,
        "subject": "agent:night",
        "rule": "default.human-approve",
        "lasts_ms": 3_600_000,
        "created_at": STAMP.at,
        "expires_at": instant(EPOCH_MS + 3_600_000),
        "request_id": "request-of-night",
    }
    return Receipt(**fields | changes)


def request_of(run: str, kind: RequestKind, **changes: Any) -> Request:
    """Return a request."""
    fields: dict[str, Any] = {
        "request_id": f"request-{next(_ids)}",
        "run_id": run,
        "kind": kind,
        "principal": HUMAN,
        "at": STAMP.at,
    }
    return Request(**fields | changes)


def moved(record: NodeRecord, status: Status, **changes: Any) -> NodeRecord:
    """Return *record* with other fields, validated."""
    return NodeRecord(**{**record.model_dump(), "status": status, **changes})


NOTE = NewEvent(kind=EventKind.NODE_STATUS, node="a", data={"to": "ready"})


class Setting:
    """A home, a host and a store; whoever makes one closes it."""

    def __init__(self, folder: Path, *, limits: Limits | None = None) -> None:
        self.home = Home.open(folder, create=True)
        self.store = RunStore.open(self.home, clock=CLOCK, limits=limits)
        self.identity = HostIdentity.register(self.home)

    def close(self) -> None:
        self.store.close()
        self.identity.close()

    def created(self, plan: GraphPlan = DIAMOND, *, entrusted: bool = False, **more: Any) -> str:
        """Create a run of *plan*."""
        record = record_of(plan, **more)
        self.store.create(record, plan, bundle=more.get("bundle"), entrusted=entrusted)
        return record.run_id

    def claimed(self, plan: GraphPlan = DIAMOND, **more: Any) -> Claimed:
        """Create and claim a run of *plan*."""
        return self.store.claim(self.created(plan, **more), self.identity)

    def write(self, claimed: Claimed, **parts: Any) -> HostlerError | None:
        """Write one transaction."""
        return self.store.write([transaction(claimed, **parts)])[0]

    def accept(self, claimed: Claimed, **parts: Any) -> None:
        """Write one transaction that must be accepted."""
        refusal = self.write(claimed, **parts)
        assert refusal is None, refusal


def transaction(claimed: Claimed, **parts: Any) -> Transaction:
    """Return a transaction under that claim."""
    return Transaction(**{"fence": claimed.fence, "stamp": CLOCK.now(), **parts})


def finish_node(setting: Setting, claimed: Claimed, key: str, value: JsonValue) -> NodeRecord:
    """Take a ready node to completed, in the steps that a scheduler takes."""
    record = next(node for node in claimed.nodes if node.key == key)
    output = Output.of(key, value)
    running = moved(record, Status.RUNNING, attempt=record.attempt + 1, started_at=STAMP.at)
    done = moved(running, Status.COMPLETED, output_sha256=output.sha256, finished_at=STAMP.at)
    setting.accept(claimed, started=True, nodes=(running,))
    setting.accept(claimed, nodes=(done,), outputs=(output,))
    return done


def assert_refused(refusal: BaseException | None, code: Code, *parts: str) -> None:
    """Check a refusal's code and that its text names *parts*, on one line."""
    assert isinstance(refusal, HostlerError), refusal
    assert refusal.code is code, refusal
    assert "\n" not in str(refusal)
    for part in parts:
        assert part in refusal.what, refusal
