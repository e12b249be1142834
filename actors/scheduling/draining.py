"""A host takes nothing up any more and hands its runs back; what runs has a grace, some of it more than the rest."""

from typing import Final

from actors.actions import SetTimer, TimerName
from actors.scheduling import reconciling
from actors.scheduling.asking import withdraw
from actors.scheduling.outcomes import is_repeatable
from actors.scheduling.planning import unask
from actors.scheduling.state import NodeState, RunState
from actors.scheduling.stopping import GRACE_S, HURRIED_S, hurry, stop
from actors.scheduling.turn import Turn
from store.lifecycle import Status

DRAIN: Final = "drain"
"""Reason of a stop, and kind of the timer that ends the grace of a drained host."""
GIVE_WAY: Final = "give-way"
"""Kind of the timer after which, in a drained host, what can be made again gives way."""


def drain(turn: Turn, grace_s: float) -> None:
    """Take nothing up any more; what waits goes back, what runs has *grace_s* seconds.

    The grace is first of all for what would become ambiguous: while some of it runs, what can be made again gives way
    after half of it. What still runs then is told to stop, and killed if it does not. Asked again, a drain also
    shortens the time between the two; asked a third time, it waits for nothing else either.
    """
    state = turn.state
    state.draining = True
    state.drains += 1
    for node in working(state):
        if state.drains > 1:
            hurry(turn, node)
        if state.drains > 2:
            stop(turn, node, DRAIN, grace_s=HURRIED_S)
    give_back(turn)
    for node in state.nodes.values():
        if node.reconciling and node.asking:
            reconciling.stop_asking(turn, node, "the host was stopped")
    turn.now.append(SetTimer(timer=TimerName(kind=GIVE_WAY), seconds=grace_s / 2))
    turn.now.append(SetTimer(timer=TimerName(kind=DRAIN), seconds=grace_s))


def give_back(turn: Turn) -> None:
    """Let what was taken up and has not started be ready again."""
    state = turn.state
    for node in state.nodes.values():
        if node.status is Status.PREPARING:
            unask(turn, node)
        elif node.status is Status.QUEUED:
            state.active -= 1
            withdraw(turn, node)
        else:
            continue
        turn.move(node, Status.READY)
        state.push_ready(node)


def end(turn: Turn) -> None:
    """Stop what still runs after the grace."""
    for node in working(turn.state):
        stop(turn, node, DRAIN, grace_s=_grace_s(turn.state))


def give_way(turn: Turn) -> None:
    """Stop what can be made again, if something runs that would become ambiguous."""
    running = working(turn.state)
    repeatable = [node for node in running if is_repeatable(node.planned.policy.resume, trusted=node.family.trusted)]
    if len(repeatable) < len(running):
        for node in repeatable:
            stop(turn, node, DRAIN, grace_s=_grace_s(turn.state))


def _grace_s(state: RunState) -> float:
    """Return what is between TERM and KILL: who asks a second time does not wait for that either."""
    return GRACE_S if state.drains < 2 else HURRIED_S


def working(state: RunState) -> list[NodeState]:
    """Return the nodes of which an attempt, or its reconciliation, is at work here."""
    return [
        node
        for node in state.nodes.values()
        if node.status is Status.RUNNING
        and not node.recovering
        and node.worker is None
        and node.key not in state.deferred
    ]
