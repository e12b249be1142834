"""On what terms a node works, for people: for whom, on which budget, where, within what, and what it must bring."""

from hostler.views.budgets import amounts_text, demand_text
from store.plans import AgentExecutor, CommandExecutor, Executor, PlannedNode
from store.policy import Policy
from store.terms import Envelope, Terms
from store.workspace import GitWorkspace


def terms_lines(node: PlannedNode) -> list[tuple[str, str]]:
    """Return the terms of a node, name and text each."""
    lines = []
    if node.policy.budget is not None:
        lines.append(("keeps", demand_text(node.policy.budget)))
    if node.workspace is not None:
        lines.append(("works", workspace_text(node.workspace)))
    return lines if node.terms is None else [*lines, *_of(node.terms)]


def attempts_lines(executor: Executor, policy: Policy) -> list[tuple[str, str]]:
    """Return where an attempt runs, if its author says so, and how often it is made again, name and text each."""
    lines = []
    if isinstance(executor, CommandExecutor | AgentExecutor) and executor.cwd is not None:
        lines.append(("cwd", executor.cwd))
    retry, beats = policy.retry, policy.heartbeat
    if retry.attempts > 1:
        lines.append(("retry", f"at most {retry.attempts} attempts, then {retry.exhausted}"))
    if beats is not None:
        first = "" if beats.grace_seconds is None else f", the first within {beats.grace_seconds:g} s"
        lines.append(("beats", f"every {beats.seconds:g} s{first}"))
    return lines


def workspace_text(workspace: GitWorkspace) -> str:
    """Return where a node works that works in a repository, and what becomes of what it makes."""
    then = ", which is moved forward to what it commits" if workspace.integrate else ""
    return f"in a worktree of {workspace.repository}, from {workspace.base}{then}"


def _of(terms: Terms) -> list[tuple[str, str]]:
    lines = []
    if terms.parent is not None:
        lines.append(("parent", terms.parent))
    if terms.owner is not None:
        lines.append(("owner", f"{terms.owner.role} {terms.owner.id}"))
    if terms.budget is not None:
        lines.append(("budget", amounts_text(terms.budget)))
    if terms.authority is not None:
        lines.append(("within", _envelope_text(terms.authority)))
    if terms.evidence:
        lines.append(("brings", ", ".join(f"{piece.id} ({piece.type})" for piece in terms.evidence)))
    return lines


def _envelope_text(envelope: Envelope) -> str:
    parts = (
        ("actions", envelope.actions),
        ("paths", envelope.paths),
        ("commands", envelope.commands),
        ("providers", tuple(envelope.providers)),
    )
    return "; ".join(f"{name} {', '.join(words)}" for name, words in parts if words) or "nothing"
