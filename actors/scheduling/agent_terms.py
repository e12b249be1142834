"""On what terms an agent works, and what an attempt says that it spent."""

from actors.agent_requests import AgentTask
from actors.outcomes import Found, Outcome
from actors.scheduling.state import NodeState
from actors.scheduling.turn import Turn
from store.amounts import Budget
from store.contracts import EventKind
from store.plans import AgentExecutor
from store.terms import Terms

NO_TERMS = Terms()


def task_of(node: NodeState) -> AgentTask | None:
    """Return on what terms an agent works; None for any other node."""
    if not isinstance(node.planned.executor, AgentExecutor):
        return None
    terms = node.planned.terms or NO_TERMS
    return AgentTask(evidence=terms.evidence, budget=budget_left(node), authority=terms.authority)


def budget_left(node: NodeState) -> Budget | None:
    """Return what *node* may still spend; None is no limit."""
    return None if node.planned.terms is None else node.planned.terms.budget


def spent(turn: Turn, node: NodeState, attempt: int, outcome: Outcome) -> None:
    """Log what an attempt says that it spent, however it ended and whether or not it still counts."""
    if isinstance(outcome, Found) or outcome.usage is None:
        return
    usage = outcome.usage.model_dump(mode="json")
    turn.event(EventKind.SPENDING, node, attempt=attempt, **usage)
