"""What a fresh worker process costs a node whose function runs in one."""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from actors.assignment import Assignment
from actors.context import Context
from actors.control import Control
from actors.outcomes import Value
from actors.worker import perform_in_worker
from hostler.compiler import compile_workflow
from hostler.loading import load
from hostler.worker_code import RunEntries
from hostres.logs import Cut
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, ratio
from scripts.benchmarks.surroundings import scratch
from store.plans import NodePlan

NAME: Final = "compute function in a fresh process"
MOST: Final = 20
"""Starts of each kind in a round; each takes a quarter of a second."""

FLOW: Final = """
from hostler import compute, workflow
@compute
def same(input):
    return input
@workflow("bench")
def bench(build):
    return build.call(same, key="same", input=1)
"""
IMPORTS: Final = "from hostler import compute, workflow"


def rows(effort: Effort) -> list[Row]:
    """Measure starts in turn: the whole attempt, the imports of its file alone, and an interpreter without any."""
    times: dict[str, list[tuple[float, float]]] = {"attempt": [], "imports": [], "bare": []}
    with scratch() as place:
        attempt = _Attempt(place)
        for _ in range(max(1, effort.rounds * min(MOST, effort.starts))):
            times["attempt"].append(_timed(attempt.perform))
            times["imports"].append(_timed(lambda: _python(IMPORTS)))
            times["bare"].append(_timed(lambda: _python("pass")))
    wall = {name: statistics.median(each[0] for each in found) for name, found in times.items()}
    effort_ms = {name: statistics.median(each[1] for each in found) for name, found in times.items()}
    return [
        ratio(
            f"{NAME} / the imports of its file alone, CPU", effort_ms["attempt"], effort_ms["imports"], Goal(limit=1.1)
        ),
        informing(f"{NAME} / the imports of its file alone, until reaped", wall["attempt"] / wall["imports"], "×"),
        *(informing(f"{NAME}: {name}, until reaped", value, "ms") for name, value in wall.items()),
        *(informing(f"{NAME}: {name}, CPU", value, "ms") for name, value in effort_ms.items()),
    ]


class _Attempt:
    """One node, tried again and again, without a store and without admission."""

    def __init__(self, place: Path) -> None:
        (place / "flow.py").write_text(FLOW)
        made = compile_workflow(load("flow.py", folder=place), {}, folder=place)
        (node,) = made.plan.nodes
        (code,) = made.computes.values()
        self._place = place
        self._entry = RunEntries(
            source=made.source, bundle_sha256=made.plan.bundle_sha256, read_bundle=lambda _: made.bundle or b""
        )(code)
        self._plan = NodePlan(
            run_id="run_" + "0" * 26,
            node="same",
            executor=node.executor,
            input=1,
            input_sha256="0" * 64,
            dependencies={},
            policy=node.policy,
        )

    def perform(self) -> None:
        assignment = Assignment(run_id=self._plan.run_id, node="same", attempt=1, folder=self._place)
        control = Control()
        context = Context(assignment, control=control, host=self, lease=None)
        outcome, _ = perform_in_worker(self._plan, self._entry, context=context, host=self, control=control)
        assert isinstance(outcome, Value), outcome

    def next_logs(self) -> tuple[Path, Path]:
        return self._place / "out", self._place / "err"

    def allow_publication(self) -> None: ...

    def log_cut(self, cut: Cut) -> None: ...

    def open_workspace(self) -> Path:
        return self._place

    def progress(self, fraction: float | None, text: str, speed: float | None, left_s: float | None) -> None: ...


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    """Return how long some work took and how much CPU time its children used, in milliseconds."""
    began, before = time.perf_counter(), _children_s()
    work()
    return (time.perf_counter() - began) * 1e3, (_children_s() - before) * 1e3


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, stdin=subprocess.DEVNULL)
