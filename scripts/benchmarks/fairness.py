"""Many runs in one host, all begun at once: does any of them starve?

`python -m scripts.benchmarks.fairness RUNS NODES` prints the seconds that each took.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from actors.actions import RunLeft
from actors.context import Context
from hostler import Host, Policy, operation, workflow
from hostler.building import Build
from hostler.compiler import compile_workflow
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, judged
from store.policy import Effect

LIMIT_S: Final = 120.0
EFFECT: Final = Policy(effect=Effect.LOCAL_READ)


def rows(effort: Effort) -> list[Row]:
    """Let the runs of a process race, once a round; the middle round counts."""
    runs, nodes = effort.runs, max(3, effort.chain // 15)
    words = [sys.executable, "-m", "scripts.benchmarks.fairness", str(runs), str(nodes)]
    rounds: list[list[float]] = [
        json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
        for _ in range(max(1, effort.rounds))
    ]
    value = statistics.median(max(seconds) / statistics.median(seconds) for seconds in rounds)
    whole = statistics.median(max(seconds) for seconds in rounds)
    return [
        judged(
            f"{runs} runs in one host, the last to complete / the median",
            value,
            "×",
            Goal(limit=1.5),
            f"chains of {nodes} effectful steps",
        ),
        informing(f"nodes a second, {runs} runs in one host", runs * nodes / whole, "/s"),
    ]


class Number(BaseModel):
    """What each step takes and gives."""

    i: int


def race(runs: int, nodes: int) -> list[float]:
    """Run as many chains at once and return what each took in seconds, from the moment when all had begun."""
    start = threading.Barrier(runs + 1)

    @operation("bench.start", version=1, policy=EFFECT)
    def ready(_: Context, input: Number) -> Number:
        start.wait(LIMIT_S)
        return input

    @operation("bench.step", version=1, policy=EFFECT)
    def step(_: Context, input: Number) -> Number:
        return Number(i=input.i + 1)

    @workflow("racer", version=1)
    def racer(build: Build) -> Any:
        last: Any = build.call(ready, key="start", input={"i": 0})["i"]
        for number in range(nodes):
            last = build.call(step, key=f"n{number:05}", input={"i": last})["i"]
        return {"i": last}

    ended: dict[int, float] = {}

    def note(number: int) -> Callable[[Any], None]:
        def hear(report: Any) -> None:
            if isinstance(report, RunLeft):
                ended[number] = time.perf_counter()

        return hear

    with tempfile.TemporaryDirectory(prefix="hostler-bench.") as place:
        os.environ.update(
            HOSTLER_HOME=f"{place}/home", HOSTLER_MACHINE_DIR=f"{place}/machine", HOSTLER_CONFIG=f"{place}/none"
        )
        compiled = compile_workflow(racer, {}, folder=Path(place), max_nodes=nodes + 1)
        with Host() as host:
            begun = [host.start(compiled) for _ in range(runs)]
            for number, run in enumerate(begun):
                run.subscribe(note(number))
            start.wait(LIMIT_S)
            began = time.perf_counter()
            for run in begun:
                outcome = run.wait(LIMIT_S)
                if outcome.status != "completed":
                    raise RuntimeError(outcome)
    return [moment - began for moment in ended.values()]


if __name__ == "__main__":
    print(json.dumps(race(int(sys.argv[1]), int(sys.argv[2]))))
