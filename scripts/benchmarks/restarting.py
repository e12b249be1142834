"""A host killed in the middle of a chain: how soon the next step begins, and whether a completed one begins again."""

import signal
import statistics
import subprocess
import time
from pathlib import Path

from scripts.benchmarks.effort import Effort
from scripts.benchmarks.flows import CHAIN, hostler, settings
from scripts.benchmarks.results import Goal, Row, informing, judged
from scripts.benchmarks.surroundings import scratch
from store.home import Home
from store.lifecycle import Status
from store.reader import Reader


def rows(effort: Effort) -> list[Row]:
    """Kill at places spread over the chain, each time in a store of its own."""
    steps, kills = effort.chain, effort.kills
    nexts: list[float] = []
    again = missing = 0
    for kill in range(kills):
        with scratch(on_disk=True) as place:
            seconds, twice, never = _trial(place, steps, at=steps * (kill + 1) // (kills + 1))
        nexts.append(seconds)
        again += twice
        missing += never
    told = f"{kills} kills in chains of {steps}"
    return [
        judged(
            "after kill -9: start of hostler resume until the next step begins",
            statistics.median(nexts),
            "s",
            Goal(limit=0.5),
            "p50",
        ),
        informing("after kill -9: that time, the worst", max(nexts), "s"),
        judged("after kill -9: completed steps that ran again", again, "", Goal(limit=0), told),
        judged("after kill -9: steps that never ran", missing, "", Goal(limit=0), told),
    ]


def _trial(place: Path, steps: int, *, at: int) -> tuple[float, int, int]:
    """Return the seconds to the next step, how many completed steps ran again, and how many never ran."""
    flow, log, environment = place / "chain.py", place / "steps.log", settings(place)
    flow.write_text(CHAIN, encoding="utf-8")
    first = subprocess.run(
        hostler("run", str(flow), "-i", f"log={log}", "-i", f"steps={steps}"),
        env={**environment, "BENCH_KILL_AT": f"n{at:05}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if first.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the host ended with {first.returncode} before it was killed")
    with Reader.open(Home.open(place / "home", create=False)) as reader:
        run_id = reader.find("-")
        completed = {node.key for node in reader.nodes(run_id) if node.status is Status.COMPLETED}
    began = time.monotonic_ns()
    second = subprocess.run(
        hostler("resume", run_id), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False
    )
    if second.returncode != 0:
        raise RuntimeError(f"the resume ended with {second.returncode}")
    noted = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    killed = noted[0][0]
    later = [(node, int(moment)) for pid, node, moment in noted if pid != killed]
    twice = sum(node in completed for node, _ in later)
    return (later[0][1] - began) / 1e9, twice, steps - len({node for _, node, _ in noted})
