"""A compiled workflow that has not run: JSON, text and a mermaid diagram."""

from collections import Counter
from typing import Any

from hostler.views.naming import claims_text, executor_name
from hostler.views.terminal import harmless, table
from store.contracts import Effect, GateExecutor, GraphPlan, PlannedNode

ASKED_EFFECTS = frozenset({Effect.PAID_CLOUD, Effect.LIVE_CONTROL})


def will_ask(node: PlannedNode) -> bool:
    """Say whether a person will be asked before *node* runs."""
    return isinstance(node.executor, GateExecutor) or node.policy.effect in ASKED_EFFECTS


def summed_claims(plan: GraphPlan) -> dict[str, int]:
    """Return what all nodes together claim, in units of each resource."""
    total: Counter[str] = Counter()
    for node in plan.nodes:
        total.update(node.policy.claims)
    return dict(sorted(total.items()))


def plan_json(plan: GraphPlan, plan_sha256: str) -> dict[str, Any]:
    """Return a plan as `plan --json` prints it.

    Args:
        plan: The graph plan.
        plan_sha256: Its digest.

    """
    return {
        "workflow": plan.workflow,
        "version": plan.version,
        "plan_sha256": plan_sha256,
        "inputs": plan.inputs,
        "nodes": [_node_json(node) for node in plan.nodes],
        "claims": summed_claims(plan),
        "approvals": [node.key for node in plan.nodes if will_ask(node)],
        "outputs": plan.outputs,
    }


def _node_json(node: PlannedNode) -> dict[str, Any]:
    return {
        "key": node.key,
        "label": node.label,
        "executor": executor_name(node.executor),
        "input": node.input,
        "dependencies": list(node.dependencies),
        "policy": node.policy.model_dump(mode="json"),
        "asks": will_ask(node),
    }


def plan_text(plan: GraphPlan, plan_sha256: str) -> str:
    """Return a plan for people.

    Args:
        plan: The graph plan.
        plan_sha256: Its digest.

    """
    rows = [
        (
            node.key,
            executor_name(node.executor),
            node.policy.effect.value,
            node.policy.resume.value,
            claims_text(node.policy.claims),
            ", ".join(node.dependencies) or "–",
        )
        for node in plan.nodes
    ]
    asks = [node.key for node in plan.nodes if will_ask(node)]
    return "\n".join(
        [
            f"{plan.workflow}@{plan.version}: {len(plan.nodes)} nodes",
            f"plan {plan_sha256}",
            f"claims in all: {claims_text(summed_claims(plan))}",
            f"asks for approval: {harmless(', '.join(asks)) or 'nothing'}",
            "",
            table(("NODE", "RUNS", "EFFECT", "RESUME", "CLAIMS", "AFTER"), rows),
        ]
    )


def plan_mermaid(plan: GraphPlan) -> str:
    """Return a plan as a mermaid flowchart; nodes that ask a person are hexagons."""
    number = {node.key: f"n{index}" for index, node in enumerate(plan.nodes)}
    lines = ["flowchart TD"]
    for node in plan.nodes:
        text = f'"{_quoted(node.label or node.key)}<br/><small>{_quoted(executor_name(node.executor))}</small>"'
        shape = "{{%s}}" if will_ask(node) else "[%s]"
        lines.append(f"  {number[node.key]}{shape % text}")
    lines += [
        f"  {number[dependency]} --> {number[node.key]}" for node in plan.nodes for dependency in node.dependencies
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    # Mermaid knows HTML entities written with # and numbers them so.
    return "".join(f"#{ord(char)};" if char in '"<>&#' else char for char in harmless(text))
