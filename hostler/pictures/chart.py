"""What a drawing of a graph shows: a pure function from a plan, or from a run, to a frozen value."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hostler.pictures.colours import STATUSES
from hostler.views.naming import claims_text, executor_name
from store.contracts import NodeRecord
from store.lifecycle import Status
from store.plans import GateExecutor, GraphPlan, PlannedNode

PLAIN: Final = "#eef3f9"
ASKS: Final = "#ffe58a"
DENIED: Final = "#f5b5b0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One node.

    Attributes:
        name: What it is called.
        below: What it runs.
        tip: All that there is to say of it.
        fill: `#rrggbb`, light enough for dark text.
        asks: Whether it waits for a person's word: its ends are pointed.

    """

    name: str
    below: str
    tip: str
    fill: str
    asks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A graph.

    Attributes:
        edges: From, to: the places of boxes.
        legend: Text, fill and whether the ends are pointed, of each kind of box that there is.

    """

    title: str
    summary: str
    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]
    legend: tuple[tuple[str, str, bool], ...]


def plan_chart(plan: GraphPlan, *, asks: Collection[str], denied: Collection[str]) -> Chart:
    """Return a plan as a chart.

    Args:
        plan: The plan.
        asks: Keys of the nodes that will ask a person.
        denied: Keys of those that no rule will let through.

    """

    def kind(node: PlannedNode) -> tuple[str, str, bool]:
        if node.key in denied:
            return "denied, and will fail", DENIED, node.key in asks
        return ("asks a person", ASKS, True) if node.key in asks else ("node", PLAIN, False)

    return _chart(plan, f"{plan.workflow}@{plan.version}", "", [kind(node) for node in plan.nodes])


def run_chart(plan: GraphPlan, nodes: Sequence[NodeRecord], *, title: str, status: str) -> Chart:
    """Return a run as a chart: each node by its status.

    Args:
        plan: The plan of the run.
        nodes: Its nodes, in the order of the plan.
        title: What it is a picture of.
        status: Where the run stands.

    """
    found: Mapping[str, Status] = {node.key: node.status for node in nodes}
    kinds = [
        (found[node.key].value, STATUSES[found[node.key]], isinstance(node.executor, GateExecutor))
        for node in plan.nodes
    ]
    return _chart(plan, title, f"{status} · ", kinds)


def _chart(plan: GraphPlan, title: str, before: str, kinds: Sequence[tuple[str, str, bool]]) -> Chart:
    number = {node.key: place for place, node in enumerate(plan.nodes)}
    edges = sorted({(number[each], number[node.key]) for node in plan.nodes for each in node.dependencies})
    nodes = f"{len(plan.nodes)} node{'' if len(plan.nodes) == 1 else 's'}"
    links = f"{len(edges)} dependenc{'y' if len(edges) == 1 else 'ies'}"
    return Chart(
        title=title,
        summary=f"{before}{nodes} · {links}",
        boxes=tuple(_box(node, *kind) for node, kind in zip(plan.nodes, kinds, strict=True)),
        edges=tuple(edges),
        legend=tuple(sorted(set(kinds))),
    )


def _box(node: PlannedNode, kind: str, fill: str, asks: bool) -> Box:  # noqa: FBT001 - the parts of one tuple
    runs = executor_name(node.executor)
    name = node.label or node.key
    return Box(
        name=name,
        below=runs,
        tip=f"{node.key}{f' ({node.label})' if node.label else ''}: {kind}; runs {runs}; effect"
        f" {node.policy.effect.value}; claims {claims_text(node.policy.claims)}",
        fill=fill,
        asks=asks,
    )
