"""Activation gates: in a run that has one nothing starts before a person has opened it. Pure.

They are in the plan like any other dependency: whatever waits for nothing else waits for them all, and so does all
that follows.
"""

from collections.abc import Iterable, Mapping

from store.plans import GateExecutor, GraphPlan, PlannedNode


def is_activation(node: PlannedNode) -> bool:
    """Say whether *node* is an activation gate."""
    return isinstance(node.executor, GateExecutor) and node.executor.gate == "activation"


def held_back(dependencies: Mapping[str, tuple[str, ...]], gates: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the dependencies with all that could start too early behind the gates.

    Args:
        dependencies: Key → the keys it waits for, sorted.
        gates: Keys of the activation gates, which wait for nothing.

    """
    opening = set(gates)
    if not opening:
        return dict(dependencies)
    return {
        key: waits if key in opening or set(waits) - opening else tuple(sorted(opening))
        for key, waits in dependencies.items()
    }


def early(plan: GraphPlan) -> str | None:
    """Return the first node of *plan* that does not wait for an activation gate as it must, None if all do."""
    dependencies = {node.key: node.dependencies for node in plan.nodes}
    gates = [node.key for node in plan.nodes if is_activation(node)]
    if not gates:
        return None
    right = held_back(dependencies, gates)
    return next((key for key in dependencies if right[key] != dependencies[key] or (key in gates and right[key])), None)
