"""Ready nodes that are held back, in lanes: all nodes of a lane are held back by the same thing.

What holds the first of a lane back holds all of it back, so only that one is looked at when something changes, and the
work does not grow with how many wait.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final

from store.amounts import Number
from store.lazy_dataclass import dataclass

Rank = tuple[float, str]
"""(-priority, key): of those that are ready at once, the smallest is taken up first."""

BUDGET: Final = "budget"
OWNER: Final = "owner"
PARENT: Final = "parent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What holds nodes back.

    Attributes:
        kind: A budget that has too little left, or a cap on the nodes that work for one owner or parent.
        holder: Whose budget (None is the run's), owner or parent.
        counter: Of a budget: what there is too little of.
        needed: Of a budget: how much each of them needs.

    """

    kind: str
    holder: str | None
    counter: str = ""
    needed: Number = 0


class Lanes:
    """All lanes of a run.

    Attributes:
        short: How many of the nodes a budget holds back.

    """

    def __init__(self) -> None:
        self.short = 0
        self._waiting: dict[Lane, list[Rank]] = {}
        self._lane_of: dict[str, Lane] = {}

    def put(self, lane: Lane, rank: Rank) -> None:
        """Hold a node back, in this lane alone."""
        if self._lane_of.get(rank[1]) == lane:
            return
        self.leave(rank[1])
        self._lane_of[rank[1]] = lane
        self.short += lane.kind == BUDGET
        heappush(self._waiting.setdefault(lane, []), rank)

    def leave(self, key: str) -> Lane | None:
        """Let go of a node, wherever it is; return the lane in which it was held back."""
        lane = self._lane_of.pop(key, None)
        if lane is not None:
            self.short -= lane.kind == BUDGET
        return lane

    def first(self, lane: Lane) -> Rank | None:
        """Return which node of a lane goes first."""
        waiting = self._waiting.get(lane)
        while waiting:
            if self._lane_of.get(waiting[0][1]) == lane:
                return waiting[0]
            heappop(waiting)  # it went elsewhere meanwhile
        self._waiting.pop(lane, None)
        return None

    def of(self, kind: str, holders: Iterable[str | None]) -> list[Lane]:
        """Return the lanes that one of *holders* holds back."""
        named = frozenset(holders)
        return [lane for lane in self._waiting if lane.kind == kind and lane.holder in named]
