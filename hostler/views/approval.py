"""The exact plan of a node as a person sees it before answering."""

from typing import Any, Final

import orjson
from pydantic import JsonValue

from hostler.views.budgets import demand_text
from hostler.views.naming import claims_text, runs_text
from hostler.views.terminal import duration, harmless
from hostler.views.terms import attempts_lines, workspace_text
from store.contracts import NodeRecord
from store.plans import GateExecutor, NodePlan, PlanPhase

MOST_SHOWN: Final = 4000
"""Characters of an output that a person is shown before an answer."""


def node_plan_json(plan: NodePlan, plan_sha256: str) -> dict[str, Any]:
    """Return a node plan as `approve --json` prints it.

    Args:
        plan: The node plan.
        plan_sha256: Its digest.

    """
    return {"plan_sha256": plan_sha256, "plan": plan.model_dump(mode="json")}


def node_plan_text(plan: NodePlan, plan_sha256: str) -> str:
    """Return what a node will do if it is approved.

    Args:
        plan: The node plan.
        plan_sha256: Its digest.

    """
    given = [] if plan.input is None else orjson.dumps(plan.input, option=orjson.OPT_INDENT_2).decode().split("\n")
    lines = [
        f"node {plan.node} of {plan.run_id}",
        f"  plan    {plan_sha256}",
        f"  runs    {runs_text(plan.executor, plan.policy)}",
        *_what_for(plan),
        *([f"  input   corrected, revision {plan.revision}"] if plan.revision else []),
        *_where(plan),
        *(f"  writes  {harmless(key.removeprefix('file:'))}" for key in plan.keys),
        *(f"  {'     ' if index else 'input'}   {harmless(line)}" for index, line in enumerate(given)),
    ]
    return "\n".join(lines)


def _where(plan: NodePlan) -> list[str]:
    """Return where it works, if that is no private folder, and what becomes of it."""
    if plan.workspace is None:
        return []
    return [f"  works   {harmless(workspace_text(plan.workspace))}"]


def result_text(node: NodeRecord, output: JsonValue) -> str:
    """Return what a node gave, which is approved after it was made.

    Args:
        node: The node.
        output: Its output.

    """
    shown = [f"{each.id} ({each.type})" for each in node.evidence] or ["nothing"]
    text = orjson.dumps(output, option=orjson.OPT_INDENT_2).decode()
    given = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return "\n".join(
        [
            f"  result  {node.output_sha256} of attempt {node.attempt}",
            f"  shows   {harmless(', '.join(shown))}",
            *(f"  {'      ' if index else 'output'}  {harmless(line)}" for index, line in enumerate(given.split("\n"))),
        ]
    )


def _what_for(plan: NodePlan) -> list[str]:
    """Return the lines that say what an approval lets happen; a gate lets nothing but itself."""
    policy = plan.policy
    if isinstance(plan.executor, GateExecutor):
        return []
    if plan.phase is PlanPhase.PREPARATION:
        described = (
            [] if plan.descriptors is None else [f"  from    {harmless(orjson.dumps(plan.descriptors).decode())}"]
        )
        return [f"  looks   at {', '.join(policy.preparation)}; what it will do is asked again", *described]
    lines = attempts_lines(plan.executor, policy)
    if policy.budget is not None:
        lines.append(("keeps", demand_text(policy.budget)))
    return [
        f"  effect  {policy.effect}, {policy.resume}",
        f"  claims  {claims_text(policy.claims)}, at most {duration(plan.max_seconds or policy.max_seconds)}",
        *(f"  {name:6}  {harmless(text)}" for name, text in lines),
    ]
