"""A compiled workflow that has not run: JSON, text and a mermaid diagram."""

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

import orjson
from pydantic import JsonValue

from hostler.views.asking import Rulings, asking
from hostler.views.budgets import amounts_text
from hostler.views.naming import claims_text, executor_name, runs_text
from hostler.views.terminal import cut, harmless, table
from hostler.views.terms import attempts_lines, terms_lines
from store.plans import AgentExecutor, CommandExecutor, GraphPlan, PlannedNode
from store.rules import Verdict


def summed_claims(plan: GraphPlan) -> dict[str, int]:
    """Return what all nodes together claim, in units of each resource."""
    total: Counter[str] = Counter()
    for node in plan.nodes:
        total.update(node.policy.claims)
    return dict(sorted(total.items()))


def largest_claims(plan: GraphPlan) -> dict[str, int]:
    """Return the most that any one node claims, in units of each resource."""
    largest: Counter[str] = Counter()
    for node in plan.nodes:
        largest |= Counter(node.policy.claims)
    return dict(sorted(largest.items()))


def plan_json(plan: GraphPlan, plan_sha256: str, rulings: Rulings) -> dict[str, Any]:
    """Return a plan as `plan --json` prints it.

    Args:
        plan: The graph plan.
        plan_sha256: Its digest.
        rulings: What the authority rules say to its nodes.

    """
    return {
        "workflow": plan.workflow,
        "version": plan.version,
        "plan_sha256": plan_sha256,
        "inputs": plan.inputs,
        "nodes": [_node_json(node, rulings) for node in plan.nodes],
        "claims": summed_claims(plan),
        "largest_claims": largest_claims(plan),
        "approvals": asking(rulings),
        "denied": asking(rulings, Verdict.DENY),
        "limits": plan.limits.model_dump(mode="json", exclude_none=True),
        "outputs": plan.outputs,
    }


def _node_json(node: PlannedNode, rulings: Rulings) -> dict[str, Any]:
    return {
        "key": node.key,
        "label": node.label,
        "executor": executor_name(node.executor),
        "input": node.input,
        "dependencies": list(node.dependencies),
        "priority": node.priority,
        "policy": node.policy.model_dump(mode="json"),
        "terms": None if node.terms is None else node.terms.model_dump(mode="json", exclude_none=True),
        "asks": node.key in asking({node.key: rulings[node.key]}),
        "authority": [ruling.to_json() for ruling in rulings[node.key]],
    }


def plan_text(plan: GraphPlan, plan_sha256: str, rulings: Rulings, *, width: int) -> str:
    """Return a plan for people.

    Args:
        plan: The graph plan.
        plan_sha256: Its digest.
        rulings: What the authority rules say to its nodes.
        width: What each node is given is cut to so many columns.

    """
    rows = [
        (
            node.key,
            runs_text(node.executor, node.policy),
            node.policy.effect.value,
            node.policy.resume.value,
            claims_text(node.policy.claims),
            ", ".join(node.dependencies) or "–",
        )
        for node in plan.nodes
    ]
    return "\n".join(
        [
            f"{plan.workflow}@{plan.version}: {len(plan.nodes)} nodes",
            f"plan {plan_sha256}",
            f"claims in all: {claims_text(summed_claims(plan))}",
            f"claims of one node at most: {claims_text(largest_claims(plan))}",
            f"asks for approval: {harmless(', '.join(asking(rulings))) or 'nothing'}",
            *_exceptions(rulings),
            *([f"budget of the run: {amounts_text(plan.limits.budget)}"] if plan.limits.budget is not None else []),
            "",
            table(("NODE", "RUNS", "EFFECT", "RESUME", "CLAIMS", "AFTER"), rows),
            "",
            *(cut(harmless(line), width) for node in plan.nodes for line in _given(node, rulings)),
        ]
    )


def _exceptions(rulings: Rulings) -> Iterator[str]:
    """Yield the lines about what may ask, and about what will not be let through at all."""
    perhaps = [key for key in asking(rulings, certain=False) if key not in asking(rulings)]
    denied = asking(rulings, Verdict.DENY)
    for title, keys in (("may ask for approval", perhaps), ("denied, and will fail", denied)):
        if keys:
            yield f"{title}: {', '.join(keys)}"


def _given(node: PlannedNode, rulings: Rulings) -> Iterator[str]:
    """Yield what a node is given and how: words, input, files, folder, retries; references as `<node.field>`."""
    lines: list[tuple[str, str]] = []
    given = _readable(node.input)
    if isinstance(node.executor, CommandExecutor | AgentExecutor) and isinstance(given, dict):
        words = cast("dict[str, Any]", node.input)["argv"]
        lines += [("argv", " ".join(_word(word) for word in words))] if words else []
        lines += [(name, _text(given[name])) for name in ("env", "stdin") if given.get(name)]
        lines += [("asked", str(given["objective"]))] if given.get("objective") else []
        lines += [("input", _text(given["value"]))] if given.get("value") is not None else []
    elif given is not None:
        lines.append(("input", _text(given)))
    for dotted in node.policy.publishes:
        target: JsonValue = given
        for name in dotted.split("."):
            target = target.get(name) if isinstance(target, dict) else None
        if target is not None:
            lines.append(("writes", target if isinstance(target, str) else _text(target)))
    lines += [*attempts_lines(node.executor, node.policy), *terms_lines(node)]
    if node.priority:
        lines.append(("first", f"priority {node.priority}"))
    lines += [("rule", ruling.text) for ruling in rulings[node.key] if ruling.verdict is not Verdict.ALLOW]
    if lines:
        yield node.key
    for name, text in lines:
        yield f"  {name:6} {text}"


def _readable(value: JsonValue) -> JsonValue:
    match value:
        case {"$ref": {"node": node, "path": [*path]}}:
            return f"<{'.'.join(str(step) for step in (node, *path))}>"
        case dict():
            return {name: _readable(each) for name, each in value.items()}
        case list():
            return [_readable(each) for each in value]
        case _:
            return value


def _word(word: JsonValue) -> str:
    return str(_readable(word)) if isinstance(word, dict) else shlex.quote(str(word))


def _text(value: JsonValue) -> str:
    return orjson.dumps(value).decode()


def plan_mermaid(plan: GraphPlan, rulings: Rulings) -> str:
    """Return a plan as a mermaid flowchart; nodes that ask a person are hexagons."""
    number = {node.key: f"n{index}" for index, node in enumerate(plan.nodes)}
    asks = set(asking(rulings))
    lines = ["flowchart TD"]
    for node in plan.nodes:
        text = f'"{_quoted(node.label or node.key)}<br/><small>{_quoted(executor_name(node.executor))}</small>"'
        shape = "{{%s}}" if node.key in asks else "[%s]"
        lines.append(f"  {number[node.key]}{shape % text}")
    lines += [
        f"  {number[dependency]} --> {number[node.key]}" for node in plan.nodes for dependency in node.dependencies
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Return *text* as mermaid takes it for itself: what could be markup, a directive or a comment is a number.

    Mermaid knows HTML entities written with # in place of &, and numbers them so. Its own passes over the source look
    for more than quotes (`%%{`, a backtick after one, `style…:…#…;`), and it reads labels as Markdown ("1. cut" is a
    list to it: https://github.com/mermaid-js/mermaid/issues/6111), so that only what is plainly harmless stays.
    """
    line = harmless(text).strip()
    return "".join(
        char if char.isalnum() or char in _PLAIN or (char == "-" and place) else f"#{ord(char)};"
        for place, char in enumerate(line)
    )


_PLAIN: Final = frozenset(" /@,")
