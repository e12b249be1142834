"""Who was delegated by whom: parents exist, nobody is delegated by itself, and no line of them is too long. Pure."""

from collections.abc import Callable, Iterable
from typing import Final

from store.plans import PlannedNode

MAX_DEPTH: Final = 8
"""So many nodes may stand one above the other over a node."""


def delegation_fault(nodes: Iterable[PlannedNode]) -> tuple[str, str] | None:
    """Say what is wrong with the parents of *nodes*; None if nothing is.

    Returns:
        The node, and why it may not have that parent.

    """
    keys: set[str] = set()
    parents: dict[str, str] = {}
    for node in nodes:
        keys.add(node.key)
        if node.terms is not None and node.terms.parent is not None:
            parents[node.key] = node.terms.parent
    for key, parent in parents.items():
        if parent not in keys:
            return key, f"its parent {parent} does not exist"
        line = [key]
        while line[-1] in parents:
            line.append(parents[line[-1]])
            if line[-1] == key:
                return key, f"it is delegated by itself: {' from '.join(line)}"
            if len(line) - 1 > MAX_DEPTH:
                return key, f"more than {MAX_DEPTH} nodes stand above it"
    return None


def parents_owner(planned: PlannedNode, find: Callable[[str], PlannedNode | None]) -> str | None:
    """Return the id of the owner of the node that delegated *planned*; None where nobody is named.

    Args:
        planned: A node.
        find: Gives a node of the same plan by its key.

    """
    if planned.terms is None or planned.terms.parent is None:
        return None
    parent = find(planned.terms.parent)
    if parent is None or parent.terms is None or parent.terms.owner is None:
        return None
    return parent.terms.owner.id
