"""The graph of a run as a tree that fits a terminal: what stands straight below another comes after it. Pure.

A node hangs below the one of those it waits for that is furthest from the start. Only where several hang below one
does the tree branch, so that a long chain stays a column.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from store.plans import GraphPlan

STEP: Final = 2
"""Columns that a branch takes."""
FORK: Final = "├ "
LAST: Final = "└ "
PAST: Final = "│ "
BELOW: Final = "  "


@dataclass(frozen=True, slots=True)
class Tree:
    """Where each node hangs.

    Attributes:
        above: Key → the key of the node that it hangs below, None for one that waits for nothing; in the order of the
            plan.

    """

    above: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: GraphPlan) -> "Tree":
        """Return the tree of a plan."""
        waits_for = {node.key: node.dependencies for node in plan.nodes}
        depth = _depths(waits_for)
        order = {key: place for place, key in enumerate(waits_for)}
        return cls(
            {
                key: max(before, key=lambda one: (depth[one], order[one]), default=None)
                for key, before in waits_for.items()
            }
        )

    def branches(self, shown: Collection[str]) -> list[tuple[str, str]]:
        """Return the keys that are shown, each after what it hangs below, with the branches in front of each.

        Args:
            shown: What is left out does not break the tree: what hangs below it hangs below what is above it.

        """
        below: dict[str | None, list[str]] = {}
        nearest: dict[str | None, str | None] = {None: None}
        chosen = set(shown)
        for key in self.above:
            if key in chosen:
                below.setdefault(self._nearest(self.above[key], chosen, nearest), []).append(key)
        return list(_walk(below))

    def _nearest(self, key: str | None, chosen: Collection[str], nearest: dict[str | None, str | None]) -> str | None:
        """Return the first that is shown of a node and what it hangs below."""
        passed = []
        while key not in nearest:
            if key in chosen:
                nearest[key] = key
                break
            passed.append(key)
            assert key is not None
            key = self.above[key]
        nearest.update(dict.fromkeys(passed, nearest[key]))
        return nearest[key]


def _depths(waits_for: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return how far each node is from the start, by the longest way; a plan has each after those it waits for."""
    depth: dict[str, int] = {}
    for key, before in waits_for.items():
        depth[key] = max((depth[one] + 1 for one in before), default=0)
    return depth


def _walk(below: Mapping[str | None, list[str]]) -> Iterator[tuple[str, str]]:
    todo = _hung(below.get(None, ()), "")
    while todo:
        key, branch, further = todo.pop()
        yield key, branch
        todo += _hung(below.get(key, ()), further)


def _hung(keys: Collection[str], further: str) -> list[tuple[str, str, str]]:
    """Return what hangs below a node, last first: the key, its branches, those of what hangs below it."""
    if len(keys) == 1:
        return [(key, further, further) for key in keys]
    last = len(keys) - 1
    return [
        (key, further + (LAST if place == last else FORK), further + (BELOW if place == last else PAST))
        for place, key in enumerate(keys)
    ][::-1]


def clipped(branch: str, columns: int) -> str:
    """Return branches in at most *columns* columns: of deep ones the last, which tell the most."""
    if len(branch) <= columns:
        return branch
    steps = columns // STEP
    return "… " + branch[len(branch) - (steps - 1) * STEP :] if steps > 1 else ""
