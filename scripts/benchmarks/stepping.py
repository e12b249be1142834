"""What the whole engine does for a step: how many commits and syncs, and what a node costs in a large run."""

from typing import Final

from scripts.benchmarks.effort import Effort
from scripts.benchmarks.engine import syncs_a_step, syncs_row, took
from scripts.benchmarks.results import Goal, Row, informing, judged, ratio

SMALL: Final = 100


def rows(effort: Effort) -> list[Row]:
    """Count on a chain and a fan; time one large run against small ones of as many nodes."""
    return [*_commits(effort.chain), *_syncs(effort.chain), *_large(effort.large)]


def _commits(nodes: int) -> list[Row]:
    kinds = ("chain:effect", "chain:claim", "chain:pure", "fan:pure")
    found = took(*(f"{kind}:{nodes}:1" for kind in kinds))
    effect, claim, *pure = (one["commits"] / nodes for one in found)
    slack = 1 + 2 / nodes  # the end of the run is a commit of its own
    return [
        judged("commits a step, chain without claims", effect, "", Goal(limit=slack)),
        judged("commits a step, chain with claims", claim, "", Goal(limit=1 + slack)),
        *(
            informing(f"commits a step, {shape} of pure steps", value, "")
            for shape, value in zip(("chain", "fan"), pure, strict=True)
        ),
    ]


def _syncs(nodes: int) -> list[Row]:
    named = [
        ("syncs a step, chain without claims", ("chain", "effect"), Goal(limit=1.1)),
        ("syncs a step, fan of pure steps", ("fan", "pure"), Goal(limit=0.2)),
    ]
    return [syncs_row(name, syncs_a_step(*run, nodes), goal) for name, run, goal in named]


def _large(nodes: int) -> list[Row]:
    size = min(SMALL, nodes)
    (small,), (large,) = took(f"chain:pure:{size}:{nodes // size}"), took(f"chain:pure:{nodes}:1")
    return [
        ratio(f"a node of a run of {nodes} / of runs of {size}", large["seconds"], small["seconds"], Goal(limit=1.3)),
        judged(f"peak memory of a run of {nodes} nodes", large["peak_mb"], "MB", Goal(limit=250)),
        informing(f"a node of a chain of {nodes} pure steps", large["seconds"] / nodes * 1e6, "µs"),
    ]
