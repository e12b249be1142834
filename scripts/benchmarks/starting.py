"""What it costs to start a program under supervision."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Final

from hostres.coordinator import Coordinator
from hostres.lease import Lease
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.jobs import TRUE
from scripts.benchmarks.results import Goal, Row, informing, ratio
from scripts.benchmarks.surroundings import scratch

NAME: Final = "supervised start of true until reaped"


def rows(effort: Effort) -> list[Row]:
    """Measure single starts in turn; medians count."""
    ways: dict[str, Callable[[Lease], float]] = {
        "supervised": _supervised,
        "lease.run": _run,
        "Popen": _popen,
        "Popen with pipes": _popen_with_pipes,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    with scratch() as place, Coordinator(place / "machine", explicit={"slot": 1}, environ={}) as coordinator:
        lease = coordinator.lease({"slot": 1})
        for _ in range(max(1, effort.rounds * effort.starts)):
            for name, way in ways.items():
                times[name].append(way(lease))
        lease.release()
    found = {name: statistics.median(values) for name, values in times.items()}
    return [
        ratio(f"{NAME} / Popen", found["supervised"], found["Popen"], Goal(limit=2)),
        informing(f"{NAME} / Popen with pipes", found["supervised"] / found["Popen with pipes"], "×"),
        *(informing(f"start of true, {name}", value, "µs") for name, value in found.items()),
    ]


def _supervised(lease: Lease) -> float:
    began = time.perf_counter()
    process = lease.popen([TRUE], on_stdout=_ignore, on_stderr=_ignore)
    process.wait()
    took = time.perf_counter() - began
    process.end(grace_s=1.0, reason="cleanup")
    return took * 1e6


def _run(lease: Lease) -> float:
    began = time.perf_counter()
    lease.run([TRUE], on_stdout=_ignore, on_stderr=_ignore)
    return (time.perf_counter() - began) * 1e6


def _popen(lease: Lease) -> float:
    began = time.perf_counter()
    subprocess.Popen([TRUE], pass_fds=(lease.fd,), start_new_session=True).wait()
    return (time.perf_counter() - began) * 1e6


def _popen_with_pipes(lease: Lease) -> float:
    began = time.perf_counter()
    process = subprocess.Popen(
        [TRUE],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
        pass_fds=(lease.fd,),
        start_new_session=True,
    )
    process.communicate()
    return (time.perf_counter() - began) * 1e6


def _ignore(_: bytes) -> None:
    pass
