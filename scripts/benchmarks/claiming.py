"""What a transition costs in a large run, and what it costs to claim one."""

import statistics
import time
from collections.abc import Iterator
from typing import Final

from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, judged, ratio
from scripts.benchmarks.stored_runs import CLOCK, Stored
from scripts.benchmarks.surroundings import scratch
from store.transactions import Transaction

SMALL: Final = 100
BATCH: Final = 50


def rows(effort: Effort) -> list[Row]:
    """Write to a small and a large run in turn; medians count."""
    claims, times = [], dict[int, list[float]]()
    with scratch(on_disk=True) as place:
        stored = Stored(place / "home")
        run_id = stored.create(effort.large)
        for _ in range(max(1, effort.rounds)):
            began = time.perf_counter()
            claimed = stored.store.claim(run_id, stored.identity)
            claims.append(time.perf_counter() - began)
            stored.store.write([Transaction(fence=claimed.fence, stamp=CLOCK.now(), release=True)])
        runs = {nodes: stored.transitions(nodes) for nodes in (SMALL, effort.large)}
        for nodes, transitions in runs.items():
            _write(stored, transitions)
            times[nodes] = []
        for _ in range(max(2, effort.rounds * effort.batches)):
            for nodes, transitions in runs.items():
                times[nodes].append(_write(stored, transitions))
        stored.close()
    small, large = (statistics.median(found) for found in times.values())
    return [
        ratio(f"a transition in a run of {effort.large} / of {SMALL} nodes", large, small, Goal(limit=1.3)),
        judged(f"claiming a run of {effort.large} nodes", statistics.median(claims), "s", Goal(limit=1.5)),
        informing(f"a transition in a run of {effort.large} nodes", large / BATCH * 1e6, "µs", f"{BATCH} a commit"),
    ]


def _write(stored: Stored, transitions: Iterator[Transaction]) -> float:
    group = [next(transitions) for _ in range(BATCH)]
    began = time.perf_counter()
    if any(stored.store.write(group)):
        raise AssertionError
    return time.perf_counter() - began
