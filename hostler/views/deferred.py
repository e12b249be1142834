"""Attempts of which it could not be found out what they did: why, and what a person can do. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from hostler.views.terminal import harmless
from store.contracts import Event, NodeRecord
from store.lifecycle import Status
from store.plans import GraphPlan
from store.policy import Resume

_WITHOUT: Final = {
    Resume.VERIFIED_RECEIPT: "then it is incompatible",
    Resume.RECOVERABLE_TRANSACTION: "then it is incompatible",
}
_RESTS: Final = "then it rests as ambiguous, for a person to settle"


def deferred(nodes: Iterable[NodeRecord], events: Mapping[str, Event]) -> dict[str, str]:
    """Return why it could not be found out what the attempt of a node did, and what helps, by node.

    Args:
        nodes: The nodes of the run.
        events: By node, the event that tells of the last time that it could not be.

    """
    found = {}
    for node in nodes:
        event = events.get(node.key)
        if event is not None and (node.status, node.attempt) == (Status.RUNNING, event.attempt):
            todo = str(event.data.get("todo") or "").replace("RUN NODE", f"{event.run_id} {node.key}")
            found[node.key] = f"{event.data.get('message')}{'; ' if todo else ''}{todo}"
    return found


def deferred_text(node: NodeRecord, why: str, plan: GraphPlan, *, owned: bool) -> str:
    """Say in a few sentences why a node still counts as running whose attempt is over, and what can be done.

    Args:
        node: The node.
        why: Why it could not be found out what its attempt did, and what helps.
        plan: The plan of the run.
        owned: Whether a host works on the run.

    """
    failed = f", failed ({node.failure.code}: {node.failure.message})" if node.failure is not None else ""
    again = "asked for with recover" if owned else "resumed"
    resume = next(planned.policy.resume for planned in plan.nodes if planned.key == node.key)
    return harmless(
        f"Attempt {node.attempt} is over{failed}, and {why}."
        f" It is asked about once more when it is {again}."
        f" If it can never be found out, leave reconcile out of the operation: {_WITHOUT.get(resume, _RESTS)}."
    )


def deferred_lines(run_id: str, nodes: Iterable[NodeRecord], events: Mapping[str, Event]) -> list[str]:
    """Return what to say of such nodes when a command leaves a run.

    Args:
        run_id: The run.
        nodes: Its nodes.
        events: As of `deferred`.

    """
    lines = []
    for key, why in deferred(nodes, events).items():
        lines += [harmless(f"unknown: {key}: {why}"), f"  hostler why {run_id} {key}"]
    return lines
