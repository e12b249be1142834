"""An attempt is asked to stop, and what happens if it does not."""

from typing import Final

from actors.actions import Abort, SetTimer, TimerName
from actors.scheduling.state import NodeState
from actors.scheduling.turn import Turn

DEADLINE: Final = "deadline"
"""Kind of the timer that ends an attempt."""
WAIT: Final = "wait"
"""Kind of the timer that ends the wait for the machine."""
OVERDUE: Final = "overdue"
"""Kind of the timer after which an attempt that was stopped and has not ended is given up on."""
GRACE_S: Final = 5.0
"""Between TERM and KILL of a process tree."""
OVERDUE_AFTER_S: Final = GRACE_S + 5.0
"""After this a callback that still runs is given up on."""


def stop(turn: Turn, node: NodeState, reason: str) -> None:
    """Ask the attempt of a running node to stop.

    Args:
        turn: The turn.
        node: A running node.
        reason: cancel, timeout or drain; a drain after a cancel changes nothing, a timeout after anything neither.

    """
    first = node.stopping is None
    if not first and not (reason == "drain" and node.stopping == "cancel"):
        return
    node.stopping = node.stopping or reason
    if first:
        attempt = node.record.attempt
        turn.after.append(
            Abort(node=node.key, attempt=attempt, reason=reason, grace_s=GRACE_S, reconciling=node.reconciling)
        )
    if reason != "cancel":  # who cancels is told the truth: nothing is cancelled while it still runs
        give_up_after(turn, node, OVERDUE_AFTER_S)


def give_up_after(turn: Turn, node: NodeState, seconds: float) -> None:
    """Go on without the attempt of *node* if it has not ended by then."""
    timer = TimerName(kind=OVERDUE, node=node.key, attempt=node.record.attempt)
    turn.now.append(SetTimer(timer=timer, seconds=seconds))
