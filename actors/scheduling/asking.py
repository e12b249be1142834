"""A node asks the machine for its claims: one ask at a time, each with a number, so that no late answer counts."""

from actors.actions import AskMachine, SetTimer, TimerName, WithdrawAsk
from actors.scheduling.endings import forget
from actors.scheduling.state import NodeState
from actors.scheduling.stopping import WAIT
from actors.scheduling.turn import Turn
from store.plans import NodePlan


def ask(turn: Turn, node: NodeState, plan: NodePlan, *, at_once: bool) -> None:
    """Ask for the claims and keys of *plan*.

    Args:
        turn: The turn.
        node: A node that does not ask already.
        plan: Its exact plan.
        at_once: Whether the ask may leave before the commit.

    """
    node.asks += 1
    node.asking = True
    actions = turn.now if at_once else turn.after
    actions.append(AskMachine(node=node.key, number=node.asks, claims=plan.policy.claims, keys=plan.keys))
    timer = TimerName(kind=WAIT, node=node.key, attempt=node.asks)
    actions.append(SetTimer(timer=timer, seconds=plan.policy.max_wait_seconds))


def is_answer(node: NodeState, number: int) -> bool:
    """Say whether *node* waits for the answer to that ask."""
    return node.asking and number == node.asks


def answered(turn: Turn, node: NodeState) -> None:
    """Wait no more: the answer is there."""
    node.asking = False
    forget(turn, node, node.asks, [WAIT])


def withdraw(turn: Turn, node: NodeState) -> None:
    """Take the ask back; an answer that has crossed this is given back when it comes."""
    answered(turn, node)
    turn.after.append(WithdrawAsk(node=node.key, number=node.asks))
