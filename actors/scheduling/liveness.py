"""Whether an attempt still shows that it lives; one that does not is stopped, and the rule of retries has the word.

The core has no clock and hears no beat. A timer tells it when to look; what the host saw since comes back as a message.
"""

from typing import Final

from actors.actions import AskProbe, EndLeftovers, SetTimer, TakePulse, TimerName
from actors.messages import Probed, PulseTaken
from actors.scheduling.state import NodeState, Port, RunState
from actors.scheduling.stopping import RECOVER, STALL, stop
from actors.scheduling.turn import Turn
from hostres.errors import Code
from store.approvals import Refused
from store.lifecycle import Status
from store.policy import Heartbeat

SILENT_FOR: Final = 2
"""Intervals without a beat after which an attempt counts as stalled."""


def first_look_s(heartbeat: Heartbeat) -> float:
    """Return after how many seconds an attempt is looked at that has just started."""
    return SILENT_FOR * heartbeat.seconds if heartbeat.grace_seconds is None else heartbeat.grace_seconds


def look_again_s(heartbeat: Heartbeat, pulse: PulseTaken) -> float | None:
    """Judge what was seen of an attempt.

    Args:
        heartbeat: What its policy says.
        pulse: What was seen.

    Returns:
        In how many seconds to look at it again; None if it is stalled.

    """
    first = pulse.beats == 0 and heartbeat.grace_seconds is not None
    due_s = first_look_s(heartbeat) if first else SILENT_FOR * heartbeat.seconds
    if pulse.silent_s < due_s:
        return due_s - pulse.silent_s
    if pulse.late_s >= heartbeat.seconds:  # the host itself was held up, and beats may wait to be read
        return heartbeat.seconds
    return due_s if first and pulse.running else None


def watch(node: NodeState, seconds: float) -> SetTimer:
    """Return the timer after which the attempt of *node* is looked at."""
    node.looked_at_in_s = seconds
    return SetTimer(timer=TimerName(kind=STALL, node=node.key, attempt=node.record.attempt), seconds=seconds)


def look(turn: Turn, node: NodeState) -> None:
    """Have the attempt of *node* looked at."""
    turn.now.append(TakePulse(node=node.key, attempt=node.record.attempt, after_s=node.looked_at_in_s))


def taken(turn: Turn, node: NodeState, pulse: PulseTaken) -> None:
    """Stop a stalled attempt, or look at it again in time.

    Args:
        turn: The turn.
        node: A node whose attempt of that number runs.
        pulse: What was seen of it.

    """
    heartbeat = node.planned.policy.heartbeat
    if heartbeat is None or node.stopping is not None:
        return
    again_s = look_again_s(heartbeat, pulse)
    if again_s is not None:
        turn.now.append(watch(node, again_s))
    elif turn.state.has(node, Port.PROBE) and node.plan is not None:
        if not node.probing:
            node.probing = True
            turn.now.append(AskProbe(node=node.key, attempt=pulse.attempt, input=node.plan.input))
        turn.now.append(watch(node, SILENT_FOR * heartbeat.seconds))
    else:
        stop(turn, node, STALL)


def probed(turn: Turn, node: NodeState, message: Probed) -> None:
    """Stop a silent attempt if what it waits for does not run any more; anything else lets it go on.

    Args:
        turn: The turn.
        node: A node whose attempt of that number runs.
        message: What its probe says.

    """
    node.probing = False
    if message.running is False:
        stop(turn, node, STALL)


def cannot_be_recovered(state: RunState, node: NodeState) -> Refused | None:
    """Refuse to recover a running node of which something else becomes already."""
    if node.stopping is not None:
        why = f"its attempt is being stopped already ({node.stopping})"
    elif node.reconciling and node.key not in state.deferred:
        why = "what its attempt did is being found out already"
    else:
        return None
    return Refused(
        code=Code.CONFLICT, what=f"node {node.key}: {why}", todo=f"see `hostler why {state.run_id} {node.key}`"
    )


def recover(turn: Turn, node: NodeState) -> None:
    """Take a running node from its attempt: it is stopped, whether cancellable or not, and made again if it may be."""
    state = turn.state
    if node.recovering or node.status is not Status.RUNNING:
        return  # its host has died, and it is recovered for that already
    if node.key in state.deferred:
        state.deferred.discard(node.key)
        node.reconciling = False
        node.wanted = node.record.failure is not None  # what was interrupted is made again without a word
        node.recovering = True  # something of it may still live; nothing is asked beside that
        state.active += 1
        turn.now.append(EndLeftovers(nodes=(node.key,)))
        return
    stop(turn, node, RECOVER)
