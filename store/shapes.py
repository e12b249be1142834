"""What of a run's plan every write is checked against, and which grants open which status. Pure."""

from collections.abc import Mapping
from typing import Final

from store.contracts import Grant, GrantAction, NodeRecord
from store.lazy_dataclass import dataclass
from store.lifecycle import Status
from store.plans import ComputeExecutor, GateExecutor, GraphPlan

REOPENS: Final = frozenset({GrantAction.RETRY, GrantAction.CORRECT})
"""Grants by which a node that has failed, and what was skipped for it, goes on."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a run's plan the checks need; it never changes.

    Attributes:
        positions: Place of each node in the plan, by key.
        gates: Keys of the pure gates.
        computes: Name of the compute function of each compute node, by key.
        bundle_sha256: Digest of the code that compute nodes run.

    """

    positions: Mapping[str, int]
    gates: frozenset[str]
    computes: Mapping[str, str]
    bundle_sha256: str | None


def shape_of(plan: GraphPlan) -> Shape:
    """Return the shape of *plan*."""
    executors = {node.key: node.executor for node in plan.nodes}
    return Shape(
        positions={key: position for position, key in enumerate(executors)},
        gates=frozenset(key for key, executor in executors.items() if isinstance(executor, GateExecutor)),
        computes={
            key: executor.compute for key, executor in executors.items() if isinstance(executor, ComputeExecutor)
        },
        bundle_sha256=plan.bundle_sha256,
    )


def is_granted(before: NodeRecord, shape: Shape, grants: tuple[Grant, ...]) -> bool:
    """Say whether one of the grants opens the status that the node is in."""
    match before.status:
        case Status.FAILED:
            return any(g.allowed and g.action in REOPENS and g.node == before.key for g in grants)
        case Status.SKIPPED:  # with its failed source, which needs that grant itself
            return any(g.allowed and g.action in REOPENS for g in grants)
        case Status.AMBIGUOUS:
            return any(_settles(grant, before) for grant in grants)
        case Status.AMBIGUOUS_CODE:
            return any(_replays(grant, before, shape) for grant in grants)
        case _:
            return False


def revision_due(before: NodeRecord, grants: tuple[Grant, ...]) -> int:
    """Return which revision the node has after the grants: another one only by a correction of it."""
    corrected = [
        g.revision.number
        for g in grants
        if g.allowed and g.action is GrantAction.CORRECT and g.node == before.key and g.revision is not None
    ]
    return corrected[-1] if corrected else before.revision


def names_its_revision(grant: Grant, after: NodeRecord) -> bool:
    """Say whether *grant* makes just the revision that its node has after it; only a correction makes one."""
    if grant.action is not GrantAction.CORRECT:
        return grant.revision is None
    return grant.allowed and grant.revision is not None and grant.revision.number == after.revision


def _settles(grant: Grant, before: NodeRecord) -> bool:
    return (grant.allowed, grant.action, grant.node, grant.attempt) == (
        True, GrantAction.SETTLE, before.key, before.attempt,
    )  # fmt: skip


def _replays(grant: Grant, before: NodeRecord, shape: Shape) -> bool:
    named = (grant.node, grant.attempt, grant.plan_sha256, grant.bundle_sha256, grant.compute)
    meant = (
        before.key, before.attempt + 1, before.plan_sha256, shape.bundle_sha256, shape.computes.get(before.key),
    )  # fmt: skip
    return grant.allowed and grant.action is GrantAction.REPLAY and named == meant
