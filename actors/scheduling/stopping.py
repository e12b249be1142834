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
STALL: Final = "stall"
"""Kind of the timer after which an attempt is looked at for a sign of life, and reason of its stop."""
RECOVER: Final = "recover"
"""Reason of a stop that somebody asked for, to have the node tried again."""
GRACE_S: Final = 5.0
"""Between TERM and KILL of a process tree."""
KILLED_S: Final = 6.0
"""After KILL, whatever can be ended has ended within this, and what could not has been named."""
HURRIED_S: Final = 1.0
"""Between TERM and KILL when somebody asks a second time."""
OVERDUE_AFTER_S: Final = GRACE_S + KILLED_S
"""After this a callback that still runs is given up on."""


def stop(turn: Turn, node: NodeState, reason: str, *, grace_s: float = GRACE_S) -> None:
    """Ask the attempt of a running node to stop.

    Args:
        turn: The turn.
        node: A running node.
        reason: cancel, timeout, drain, stall or recover; a drain after a cancel only ends the wait for it, a timeout
            after anything changes nothing.
        grace_s: Between TERM and KILL.

    """
    first = node.stopping is None
    if not first and not (reason == "drain" and node.stopping == "cancel"):
        return
    node.stopping = node.stopping or reason
    if first:
        _abort(turn, node, node.stopping, grace_s)
    if reason != "cancel":  # who cancels is told the truth: nothing is cancelled while it still runs
        _give_up_after(turn, node, grace_s + KILLED_S)


def hurry(turn: Turn, node: NodeState) -> None:
    """Shorten the grace of an attempt that was asked to stop already."""
    if node.stopping is not None:
        _abort(turn, node, node.stopping, HURRIED_S)
        _give_up_after(turn, node, 2 * HURRIED_S)


def _abort(turn: Turn, node: NodeState, reason: str, grace_s: float) -> None:
    turn.after.append(
        Abort(
            node=node.key,
            attempt=node.record.attempt,
            reason=reason,
            grace_s=grace_s,
            reconciling=node.reconciling,
        )
    )


def _give_up_after(turn: Turn, node: NodeState, seconds: float) -> None:
    """Go on without the attempt of *node* if it has not ended by then: no process of it lives any more."""
    timer = TimerName(kind=OVERDUE, node=node.key, attempt=node.record.attempt, reconciling=node.reconciling)
    turn.now.append(SetTimer(timer=timer, seconds=seconds))
