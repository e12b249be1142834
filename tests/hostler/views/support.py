"""Runs as the store gives them, made by hand."""

from typing import Any

from store.contracts import Failure, NodeRecord, RunRecord
from store.lifecycle import Status
from store.plans import CommandExecutor, Executor, GateExecutor, GraphPlan, OperationExecutor, PlannedNode
from store.policy import Effect, FailureCode, Policy

RUN_ID = "run_01jd0000000000000000000000"
PLAN_SHA = "a" * 64
NODE_SHA = "b" * 64
AT = "2030-01-01T00:00:00.000Z"


def planned(key: str, executor: Executor | None = None, **policy: Any) -> PlannedNode:
    """Return a node of a plan; without an executor a command."""
    after = policy.pop("after", ())
    return PlannedNode(
        key=key,
        executor=executor or CommandExecutor(),
        input={"argv": ["true"]},
        dependencies=after,
        policy=Policy(**policy),
    )


PLAN = GraphPlan(
    workflow="podcast",
    version=1,
    inputs={"source": "talk.mp4"},
    nodes=(
        planned("audio", OperationExecutor(operation="media.extract-audio", version=1), claims={"ffmpeg": 1, "cpu": 1}),
        planned("text", claims={"whisper": 1, "cpu": 1}, after=("audio",)),
        planned("upload", effect=Effect.PAID_CLOUD, after=("text",)),
        planned("release", GateExecutor(gate="publication"), after=("upload",)),
    ),
    outputs={"text": {"$ref": {"node": "text", "path": []}}},
)


def node(key: str, status: Status, **known: Any) -> NodeRecord:
    """Return a record."""
    return NodeRecord(key=key, status=status, **known)


def record() -> RunRecord:
    """Return what the run is."""
    return RunRecord(
        run_id=RUN_ID,
        workflow="podcast",
        workflow_version=1,
        plan_sha256=PLAN_SHA,
        folder="/work\x1b",
        created_at=AT,
        principal="human:ann",
    )


FAILURE = Failure(
    code=FailureCode.SUBPROCESS, message="ffmpeg ended\x1b[2J with 1", todo="read its log with: hostler logs"
)
