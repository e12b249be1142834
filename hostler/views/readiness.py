"""What keeps a node that is ready from starting: the limits of its run, or the room of its host. Pure."""

from collections.abc import Sequence

from actors.scheduling.lanes import OWNER
from actors.scheduling.shares import OCCUPYING, Caps
from store.contracts import NodeRecord
from store.plans import GraphPlan

_LISTED = 5


def readiness_text(plan: GraphPlan, nodes: Sequence[NodeRecord], key: str) -> str:
    """Say what a ready node waits for, in a sentence.

    Args:
        plan: The graph plan of its run.
        nodes: The nodes of its run.
        key: The node.

    """
    active = [node.key for node in nodes if node.status in OCCUPYING]
    caps = Caps(plan)
    for each in active:
        caps.enter(each)
    lane = caps.full(key, set())
    limits = plan.limits
    allowed: int | None
    if limits.active is not None and len(active) >= limits.active:
        allowed, whose = limits.active, ""
    elif lane is not None and lane.kind == OWNER:
        allowed, whose = limits.per_owner, f" for {lane.holder}"
    elif lane is not None:
        allowed, whose = limits.per_parent, f" below {lane.holder}"
    else:
        room = "it starts when its host has room for another node"
        return f"Everything it waits for is there; {room}{_listed(' beside', active)}."
    limit = f"the limits of the run allow {_nodes(allowed)} at a time{whose}"
    return f"Everything it waits for is there; {limit}; active:{_listed('', active)}."


def _nodes(count: int | None) -> str:
    return "one node" if count == 1 else f"{count} nodes"


def _listed(word: str, active: Sequence[str]) -> str:
    if not active:
        return ""
    more = f" and {len(active) - _LISTED} more" if len(active) > _LISTED else ""
    return f"{word} {', '.join(active[:_LISTED])}{more}"
