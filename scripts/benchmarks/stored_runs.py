"""Runs in a store of their own, and transitions of their nodes that never come to an end."""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from store.clock import SystemClock
from store.contracts import EventKind, NodeRecord, RunRecord
from store.home import Home
from store.hosts import HostIdentity
from store.ids import new_run_id
from store.lifecycle import Status
from store.plans import GraphPlan, OperationExecutor, PlannedNode
from store.policy import Policy
from store.records import graph_plan_sha256
from store.run_store import RunStore
from store.transactions import Claimed, NewEvent, Transaction

CLOCK: Final = SystemClock()
ROWS: Final = 3
"""What one transition writes: the node, the event, the run."""

_EXECUTOR: Final = OperationExecutor(operation="bench.step", version=1)


def chain_of(nodes: int) -> GraphPlan:
    """Return a plan of so many nodes in a row."""
    return GraphPlan(
        workflow="bench",
        version=1,
        inputs={},
        nodes=tuple(
            PlannedNode(
                key=f"n{number:05}",
                executor=_EXECUTOR,
                input={"i": number},
                dependencies=(f"n{number - 1:05}",) if number else (),
                policy=Policy(),
            )
            for number in range(nodes)
        ),
    )


class Stored:
    """A host with its store."""

    def __init__(self, root: Path) -> None:
        self.home = Home.open(root, create=True)
        self.identity = HostIdentity.register(self.home)
        self.store = RunStore.open(self.home, clock=CLOCK)

    def create(self, nodes: int) -> str:
        """Create a run and return its id."""
        plan = chain_of(nodes)
        record = RunRecord(
            run_id=new_run_id(time.time_ns() // 1_000_000, secrets.token_bytes(10)),
            workflow=plan.workflow,
            workflow_version=plan.version,
            plan_sha256=graph_plan_sha256(plan),
            folder=str(self.home.root),
            created_at=CLOCK.now().at,
            principal="human:bench",
        )
        self.store.create(record, plan, bundle=None)
        return record.run_id

    def transitions(self, nodes: int) -> Iterator[Transaction]:
        """Create and claim a run and return transitions of its nodes in turn."""
        return transitions(self.store.claim(self.create(nodes), self.identity))

    def close(self) -> None:
        """Close the store, and end the host."""
        self.store.close()
        self.identity.close()


def transitions(claimed: Claimed) -> Iterator[Transaction]:
    """Start every node in turn, then interrupt every node in turn, and so on: a row, an event and the run each."""
    records = list(claimed.nodes)
    started = True
    while True:
        for position, record in enumerate(records):
            stamp = CLOCK.now()
            records[position] = after = _moved(record, stamp.at)
            yield Transaction(
                fence=claimed.fence,
                stamp=stamp,
                started=started,
                nodes=(after,),
                events=(
                    NewEvent(
                        kind=EventKind.NODE_RUNNING if after.status is Status.RUNNING else EventKind.NODE_STATUS,
                        node=after.key,
                        attempt=after.attempt,
                        data={"status": after.status.value, "from": record.status.value},
                    ),
                ),
            )
            started = False


def _moved(record: NodeRecord, at: str) -> NodeRecord:
    if record.status is Status.RUNNING:
        return record.model_copy(update={"status": Status.READY, "started_at": None})
    return record.model_copy(update={"status": Status.RUNNING, "attempt": record.attempt + 1, "started_at": at})
