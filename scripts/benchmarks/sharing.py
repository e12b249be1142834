"""Three processes that write one store as fast as they can, against one that has it for itself."""

import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from scripts.benchmarks.crew import crew
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, judged, ratio
from scripts.benchmarks.stored_runs import Stored
from scripts.benchmarks.surroundings import scratch

PROCESSES: Final = 3
NODES: Final = 50


def rows(effort: Effort) -> list[Row]:
    """Measure one and three in turn; medians count, but the worst share of all rounds is shown too."""
    single, total, shares, longest, refused = [], [], [], [], 0
    for _ in range(effort.rounds):
        alone, together = _trial(1, effort.shared_s), _trial(PROCESSES, effort.shared_s)
        single.append(alone[0]["rate"])
        rates = [one["rate"] for one in together]
        total.append(sum(rates))
        shares.append(min(rates) / (sum(rates) / PROCESSES))
        longest.append(max(one["longest_s"] for one in together))
        refused += sum(one["refused"] for one in together)
    return [
        ratio(
            f"{PROCESSES} processes, transitions in all / one alone",
            statistics.median(total),
            statistics.median(single),
            Goal(limit=1, at_least=True),
        ),
        judged(
            f"{PROCESSES} processes, the slowest / a fair share",
            statistics.median(shares),
            "×",
            Goal(limit=0.8, at_least=True),
            f"worst round {min(shares):.2f}",
        ),
        judged(f"{PROCESSES} processes, writes refused", refused, "", Goal(limit=0)),
        informing(f"{PROCESSES} processes, longest wait", max(longest) * 1000, "ms"),
    ]


def _trial(processes: int, seconds: float) -> list[dict[str, Any]]:
    with scratch(on_disk=True) as place, crew() as hands:
        for _ in range(processes):
            hands.start(_write, place / "home", seconds).hear()
        for member in hands.members:
            member.tell()
        return [member.hear() for member in hands.members]


def _write(line: Connection, root: Path, seconds: float) -> None:
    stored = Stored(root)
    transitions = stored.transitions(NODES)
    line.send("ready")
    line.recv()
    made, refused, longest_s = 0, 0, 0.0
    began = last = time.monotonic()
    while last - began < seconds:
        answers = stored.store.write([next(transitions)])
        now = time.monotonic()
        made, refused, longest_s, last = made + 1, refused + any(answers), max(longest_s, now - last), now
    line.send({"rate": made / (last - began), "refused": refused, "longest_s": longest_s})
    stored.close()
