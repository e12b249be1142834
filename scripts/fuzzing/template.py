"""The store that is damaged in every case: one run that ended, one that rests, with all there is."""

from pathlib import Path
from typing import Final

from scripts.fuzzing.promises import FuzzError
from store.clock import SystemClock
from store.contracts import EventKind, Grant, GrantAction, Request, RequestKind, RunRecord, Summary
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import RunStatus, Status
from store.limits import INLINE_BYTES
from store.plans import ComputeExecutor, GraphPlan, NodePlan, OperationExecutor, PlannedNode
from store.policy import Policy
from store.records import graph_plan_sha256
from store.requests import post
from store.run_store import RunStore
from store.transactions import Claimed, FrozenPlan, NewEvent, Output, Transaction
from store.values import Domain, digest, digest_bytes

RUN: Final = "run_" + "0" * 25 + "1"
OTHER: Final = "run_" + "0" * 25 + "2"
AT: Final = "2026-01-01T00:00:00.000Z"
HUMAN: Final = "human:ada"
OPERATION: Final = OperationExecutor(operation="t.a", version=1)
COMPUTE: Final = ComputeExecutor(compute="double")
CODE: Final = b"def double(): ..."


def build(folder: Path) -> None:
    """Make the store that is damaged in every case: one run that ended, one that rests, with all there is."""
    home = Home.open(folder, create=True)
    store = RunStore.open(home, clock=SystemClock())
    identity = HostIdentity.register(home)
    try:
        for run_id in (RUN, OTHER):
            _create(store, run_id)
            claim = store.claim(run_id, identity)
            for kind in (RequestKind.RETRY, RequestKind.CANCEL):
                post(home, request_of(run_id, kind, f"{kind}:{run_id}"), clock=SystemClock())
            _work(store, claim, ends=run_id == RUN)
    finally:
        identity.close()
        store.close()


def _create(store: RunStore, run_id: str) -> None:
    plan = GraphPlan(
        workflow="fuzz",
        version=1,
        inputs={"name": "é", "large": "x" * (INLINE_BYTES if run_id == RUN else 10)},
        nodes=(
            PlannedNode(key="a", executor=OPERATION, input={"n": 1.5}, policy=Policy()),
            PlannedNode(key="b", executor=COMPUTE, input=None, dependencies=("a",), policy=Policy()),
        ),
        bundle_sha256=digest_bytes(Domain.BUNDLE, CODE),
    )  # fmt: skip
    record = RunRecord(
        run_id=run_id,
        workflow="fuzz",
        workflow_version=1,
        plan_sha256=graph_plan_sha256(plan),
        bundle_sha256=digest_bytes(Domain.BUNDLE, CODE),
        folder="/films",
        created_at=AT,
        principal=HUMAN,
    )
    store.create(record, plan, bundle=CODE)


def request_of(run_id: str, kind: RequestKind, request_id: str) -> Request:
    """Return what somebody asks of node `a` of a run."""
    return Request(request_id=request_id, run_id=run_id, kind=kind, node="a", principal=HUMAN, at=AT, data={"n": 1})


def _work(store: RunStore, claim: Claimed, *, ends: bool) -> None:
    """Take a run to its end, or to where a person must replay its code."""
    run_id, (a, b) = claim.fence.run_id, claim.nodes
    frozen = [_frozen(run_id, node.key) for node in (a, b)]
    outputs = Output.of("a", {"text": "x" * 300_000}), Output.of("b", [1, 2.5, None])
    done = [
        node.model_copy(
            update={
                "status": Status.COMPLETED, "attempt": 1, "plan_sha256": plan.sha256, "started_at": AT,
                "finished_at": AT, "output_sha256": output.sha256,
            }
        )
        for node, plan, output in zip((a, b), frozen, outputs, strict=True)
    ]  # fmt: skip
    left = done[1].model_copy(update={"status": Status.AMBIGUOUS_CODE, "output_sha256": None, "finished_at": None})
    grant = Grant(
        grant_id=f"grant:{run_id}", run_id=run_id, node="a", action=GrantAction.EFFECT, plan_sha256=frozen[0].sha256,
        allowed=True, principal=HUMAN, rule="r", at=AT,
    )  # fmt: skip
    counts = {"cancelled": 0, "completed": 2, "failed": 0, "pending": 0, "resting": 0, "running": 0, "skipped": 0}
    answers = store.write(
        [
            Transaction(
                fence=claim.fence,
                stamp=SystemClock().now(),
                started=True,
                nodes=(done[0], done[1] if ends else left),
                plans=tuple(frozen),
                outputs=outputs if ends else outputs[:1],
                grants=(grant,),
                consumed=(f"retry:{run_id}",),
                events=(NewEvent(kind=EventKind.NODE_STATUS, node="a", attempt=1, data={"status": "completed"}),) * 3,
                summary=Summary(status=RunStatus.COMPLETED, counts=counts, outputs={"n": 1}) if ends else None,
                release=True,
            )
        ]
    )
    if answers != [None]:
        raise FuzzError(answers)


def _frozen(run_id: str, node: str) -> FrozenPlan:
    return FrozenPlan.of(
        NodePlan(
            run_id=run_id, node=node, executor=OPERATION, input=None,
            input_sha256=digest(Domain.INPUT, None), dependencies={}, policy=Policy(),
        )
    )  # fmt: skip
