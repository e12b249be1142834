"""On what terms an agent works, and what it may spend."""

from actors.agent_requests import AgentTask
from actors.scheduling.state import NodeState, RunState
from store.amounts import Budget
from store.plans import AgentExecutor
from store.terms import Terms

NO_TERMS = Terms()


def task_of(state: RunState, node: NodeState) -> AgentTask | None:
    """Return on what terms an agent works whose attempt begins; None for any other node."""
    if not isinstance(node.planned.executor, AgentExecutor):
        return None
    terms = node.planned.terms or NO_TERMS
    return AgentTask(evidence=terms.evidence, budget=allowance(state, node), authority=terms.authority)


def allowance(state: RunState, node: NodeState) -> Budget | None:
    """Return what the attempt of *node* that begins may spend; None is no limit."""
    return None if state.shares is None or not state.shares.books.limited else state.shares.books.allowance(node.key)
