"""Who a node works for, and who its parent works for. Pure."""

from collections.abc import Callable

from store.plans import PlannedNode


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
