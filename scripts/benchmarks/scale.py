"""What a node costs in a run of many nodes, against what it costs in many small runs: processor time."""

from typing import Final

from scripts.benchmarks.effort import Effort
from scripts.benchmarks.engine import took
from scripts.benchmarks.results import Goal, Row, informing, ratio

SMALL: Final = 100
GRAPHS: Final = {"chain": "chain", "fan": "fan", "random graph": "dag"}


def rows(effort: Effort) -> list[Row]:
    """Run a large graph of each shape between two halves of as many nodes in small ones."""
    size = min(SMALL, effort.large)
    runs = max(1, effort.large // size // 2)
    jobs: list[str] = []
    for shape in GRAPHS.values():
        half = f"{shape}:pure:{size}:{runs}"
        jobs += [half, f"{shape}:pure:{effort.large}:1", half]
    used = [one["processor_s"] for one in took(*jobs)]
    found: list[Row] = []
    for place, name in enumerate(GRAPHS):
        before, large, after = used[3 * place : 3 * place + 3]
        node = large / effort.large
        found += [
            ratio(
                f"{name}, a node of {effort.large} / of {size}",
                node,
                (before + after) / (2 * runs * size),
                Goal(limit=1.3),
                "processor time",
            ),
            informing(f"processor time of a node of {effort.large}, {name}", node * 1e6, "µs"),
        ]
    return found
