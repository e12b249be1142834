"""What the nodes of a run share: its budgets, and the caps on how many of them are active for one owner or parent."""

from collections.abc import Mapping

from actors.scheduling.lanes import BUDGET, OWNER, PARENT, Lane, Lanes
from store.budgets import Books
from store.lifecycle import Status
from store.plans import GraphPlan, PlannedNode

OCCUPYING = frozenset({Status.PREPARING, Status.QUEUED, Status.RUNNING, Status.VERIFYING})
"""Where a node counts as active for its owner and its parent."""

Group = tuple[str, str]
"""Kind of the cap, and for whom."""


class Caps:
    """Who is active for which owner and parent.

    Args:
        plan: Its limits, and for whom its nodes work.

    """

    def __init__(self, plan: GraphPlan) -> None:
        self._limits: dict[str, int] = {}
        for kind, limit in ((OWNER, plan.limits.per_owner), (PARENT, plan.limits.per_parent)):
            if limit is not None:
                self._limits[kind] = limit
        self._members: dict[Group, set[str]] = {}
        self._groups: Mapping[str, tuple[Group, ...]] = (
            {node.key: tuple(group for group in _groups(node) if group[0] in self._limits) for node in plan.nodes}
            if self._limits
            else {}
        )

    def __bool__(self) -> bool:
        return bool(self._limits)

    def enter(self, key: str) -> None:
        """Count a node as active."""
        for group in self._groups.get(key, ()):
            self._members.setdefault(group, set()).add(key)

    def leave(self, key: str) -> list[Lane]:
        """Count a node no more; return what may be let through now."""
        for group in self._groups.get(key, ()):
            self._members.get(group, set()).discard(key)
        return self.lanes_of(key)

    def lanes_of(self, key: str) -> list[Lane]:
        """Return what can hold a node back."""
        return [Lane(kind=kind, holder=holder) for kind, holder in self._groups.get(key, ())]

    def full(self, key: str, deferred: set[str]) -> Lane | None:
        """Return what holds a node back; nodes that are left to a later owner do not."""
        for group in self._groups.get(key, ()):
            if not self._has_room(group, deferred):
                return Lane(kind=group[0], holder=group[1])
        return None

    def has_room(self, lane: Lane, deferred: set[str]) -> bool:
        """Say whether what holds a lane back does so no longer."""
        return lane.holder is not None and self._has_room((lane.kind, lane.holder), deferred)

    def _has_room(self, group: Group, deferred: set[str]) -> bool:
        return len(self._members.get(group, set()) - deferred) < self._limits[group[0]]


def _groups(node: PlannedNode) -> tuple[Group, ...]:
    if node.terms is None:
        return ()
    owner, parent = node.terms.owner, node.terms.parent
    return (
        *([(OWNER, f"{owner.role}:{owner.id}")] if owner is not None else ()),
        *([(PARENT, parent)] if parent is not None else ()),
    )


class Shares:
    """What the nodes of a run share.

    Attributes:
        books: What is reserved and spent.
        caps: Who is active for whom.
        lanes: The ready nodes that one of these holds back.
        called: Node that was let out of a lane to be looked at → that lane.
        offered: Ready nodes that wait for a worker, as keys in the order in which they came; none that a budget is
            known to hold back.

    """

    def __init__(self, books: Books, caps: Caps) -> None:
        self.books = books
        self.caps = caps
        self.lanes = Lanes()
        self.called: dict[str, Lane] = {}
        self.offered: dict[str, None] = {}

    @property
    def short(self) -> int:
        """How many ready nodes no budget lets go any more: none as long as something reserved may come back."""
        return 0 if self.books.reservations else self.lanes.short

    def lets_through(self, lane: Lane, deferred: set[str]) -> bool:
        """Say whether what holds a lane back does so no longer."""
        if lane.kind != BUDGET:
            return self.caps.has_room(lane, deferred)
        left = self.books.left(lane.holder, lane.counter)
        return left is None or left >= max(lane.needed, 0)
