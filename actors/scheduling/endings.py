"""How nodes end, and what that does to those that depend on them."""

from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue

from actors.actions import CancelTimer, TimerName
from actors.outcomes import Release, Value
from actors.scheduling.state import NodeState
from actors.scheduling.stopping import OVERDUE, STALL
from actors.scheduling.turn import Turn
from store.contracts import EventKind, Failure
from store.lifecycle import RESTING, Status


def complete(turn: Turn, node: NodeState, value: Value, **told: JsonValue) -> None:
    """Complete *node* with *value*; see `finish`."""
    turn.output(node, value)
    finish(turn, node, value.sha256, **told)


def finish(turn: Turn, node: NodeState, output_sha256: str, **told: JsonValue) -> None:
    """Complete *node*, whose output is stored, and make ready what waited for it alone.

    Args:
        turn: The turn.
        node: The node.
        output_sha256: Digest of its output.
        **told: What its event tells besides.

    """
    node.plan = None
    turn.move(
        node,
        Status.COMPLETED,
        data={"output_sha256": output_sha256, **told},
        output_sha256=output_sha256,
        failure=None,
    )
    for dependent in node.dependents:
        dependent.waiting -= 1
        if dependent.waiting == 0 and dependent.status is Status.PENDING:
            turn.move(dependent, Status.READY)
            turn.state.push_ready(dependent)


def fail(turn: Turn, node: NodeState, status: Status, failure: Failure | None, **changes: Any) -> None:
    """End *node* with *status* and let its pending dependents share its fate.

    Args:
        turn: The turn.
        node: The node.
        status: Failed, incompatible or cancelled; a resting status leaves the dependents as they are.
        failure: Why, for people.
        **changes: Further fields of its record.

    """
    turn.move(node, status, failure=failure, **changes)
    if status in RESTING or status is Status.READY:
        return
    share = Status.CANCELLED if status is Status.CANCELLED else Status.SKIPPED
    for dependent in turn.state.dependents_of(node):
        if dependent.status is Status.PENDING:
            turn.move(dependent, share)


def leave(turn: Turn, node: NodeState, *kinds: str) -> None:
    """Make room for another node, and forget the timers of the attempt, or the reconciliation, that has ended."""
    turn.state.active -= 1
    if node.stopping is not None:
        kinds = (*kinds, OVERDUE)
    forget(turn, node, node.record.attempt, kinds, reconciling=node.reconciling)
    if node.planned.policy.heartbeat is not None:
        forget(turn, node, node.record.attempt, [STALL])


def forget(turn: Turn, node: NodeState, attempt: int, kinds: Iterable[str], *, reconciling: bool = False) -> None:
    """Forget timers of an attempt, or of its reconciliation; those of what nobody could notice wait for no commit."""
    actions = turn.after if node.family.noticeable else turn.now
    actions += [
        CancelTimer(timer=TimerName(kind=kind, node=node.key, attempt=attempt, reconciling=reconciling))
        for kind in kinds
    ]


def released(turn: Turn, node: NodeState, attempt: int, release: Release | None) -> None:
    """Log that the machine has its units back."""
    if release is not None:
        turn.event(
            EventKind.LEASE_RELEASED,
            node,
            attempt=attempt,
            ticket=release.ticket,
            released_boot_ns=release.released_boot_ns,
        )
