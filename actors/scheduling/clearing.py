"""Never two copies: before an attempt is made again, everything of those before it has ended.

What a dead host left running is ended when its run is taken up; but an attempt may also have outlived its node's end in
the store: it was given up on, or could not be ended and a person asked for another try. So whatever the reason for
which a node with an attempt behind it starts again, its leftovers are looked for first.
"""

from actors.actions import EndLeftovers
from actors.messages import LeftoversEnded
from actors.outcomes import Aborted, Failed, Outcome, storable
from actors.scheduling.endings import fail
from actors.scheduling.state import NodeState
from actors.scheduling.turn import Turn
from store.contracts import EventKind, Failure
from store.lifecycle import Status
from store.policy import FailureCode


def is_clear(turn: Turn, node: NodeState) -> bool:
    """Say whether nothing of an earlier attempt of a ready node lives; if that is not known, find out first.

    Where one of this host's own is known not to have ended, the node fails.
    """
    if node.hanging:
        _fail(turn, node, f"attempt {node.record.attempt} of it was given up on and has not ended", "end this program")
        return False
    if node.record.attempt == 0 or node.cleared:
        return True
    node.clearing = True
    turn.state.active += 1
    turn.now.append(EndLeftovers(nodes=(node.key,)))
    return False


def ended_whole(outcome: Outcome) -> bool:
    """Say whether an attempt that returned has left nothing behind."""
    match outcome:
        case Aborted(left=left):
            return not left
        case Failed(code=code):
            return code is not FailureCode.CONFLICT  # which a program's step gives that could not be ended
        case _:
            return True


def ended(turn: Turn, node: NodeState, message: LeftoversEnded) -> None:
    """Let a node that waited for it start, unless something could not be ended."""
    node.clearing = False
    turn.state.active -= 1
    remaining = log_ended(turn, node, message)
    if node.status is not Status.READY:
        return
    if remaining is not None:
        _fail(turn, node, f"could not be ended: {remaining}", "end these processes")
        return
    node.cleared = True
    turn.state.push_ready(node)


def log_ended(turn: Turn, node: NodeState, message: LeftoversEnded) -> str | None:
    """Log what was found of earlier attempts of *node*; return what could not be ended."""
    found, remaining = message.ended.get(node.key), message.remaining.get(node.key)
    if found:
        turn.event(EventKind.LEFTOVER, node, attempt=node.record.attempt, ended=list(found))
    if remaining:
        turn.event(EventKind.CLEANUP_ERROR, node, attempt=node.record.attempt, message=remaining)
    return remaining


def _fail(turn: Turn, node: NodeState, why: str, todo: str) -> None:
    failure = Failure(
        code=FailureCode.CONFLICT,
        message=storable(why, 4000),
        todo=f"{todo}, then: hostler retry {turn.state.run_id} {node.key}",
    )
    fail(turn, node, Status.FAILED, failure)
