"""From nothing to the first completed step: a process that starts, works on a run of one node, and is done."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, judged
from scripts.benchmarks.surroundings import scratch

STEP: Final = """
import time
from pydantic import BaseModel
from hostler import Host, operation, workflow

class Nothing(BaseModel):
    pass

@operation("bench.nothing", version=1)
def nothing(ctx, input: Nothing) -> Nothing:
    return Nothing()

@workflow("one", version=1)
def one(build):
    return {"it": build.call(nothing, key="it", input={})}

with Host() as host:
    outcome = host.submit(one).wait()
    told = time.monotonic_ns()
assert outcome.status == "completed"
"""

COMMAND: Final = """
import sys, time
from hostler.__main__ import main

assert main(["run", sys.argv[1]]) == 0
told = time.monotonic_ns()
"""

PYDANTIC: Final = """
import time
from pydantic import BaseModel
told = time.monotonic_ns()
"""

NOTHING: Final = """
import time
told = time.monotonic_ns()
"""

PEAK: Final = """
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print(told, peak, file=sys.__stderr__)
"""
"""The peak of this image alone: what `wait4` says includes the process that it was forked from."""

GRAPH: Final = """
[workflow]
id = "one"

[[nodes]]
key = "it"
executor.command = { argv = ["true"], effect = "pure" }
"""


def rows(effort: Effort) -> list[Row]:
    """Start processes in turn, each in an environment without state; medians count."""
    seconds: dict[str, list[float]] = {}
    megabytes: dict[str, list[float]] = {}
    with scratch(on_disk=True) as place:
        graph = place / "one.toml"
        graph.write_text(GRAPH, encoding="utf-8")
        ways = {
            "a program": (STEP,),
            "hostler run": (COMMAND, str(graph)),
            "pydantic": (PYDANTIC,),
            "nothing": (NOTHING,),
        }
        for name, words in ways.items():
            _start(words, place / f"{name} before")  # which leaves the modules' bytecode there
        for number in range(max(1, effort.starts // 10)):
            for name, words in ways.items():
                took, peak = _start(words, place / f"{name}{number}")
                seconds.setdefault(name, []).append(took)
                megabytes.setdefault(name, []).append(peak)
    took_s = {name: statistics.median(found) for name, found in seconds.items()}
    peak_mb = {name: statistics.median(found) for name, found in megabytes.items()}
    return [
        judged("fresh process to its first step, a program", took_s["a program"], "s", Goal(limit=0.25)),
        judged("peak memory of it", peak_mb["a program"], "MB", Goal(limit=50)),
        informing("that time / until pydantic is imported", took_s["a program"] / took_s["pydantic"], "×"),
        informing("hostler run of one node, until it has ended", took_s["hostler run"], "s"),
        informing("peak memory of it, hostler run", peak_mb["hostler run"], "MB"),
        informing("fresh process that only imports pydantic", took_s["pydantic"], "s"),
        informing("fresh process that does nothing", took_s["nothing"], "s"),
    ]


def _start(words: Sequence[str], place: Path) -> tuple[float, float]:
    """Return how long after its start a program told the time, in seconds, and its peak memory in MB."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "HOSTLER_HOME": str(place / "home"),
        "HOSTLER_MACHINE_DIR": str(place / "machine"),
        "HOSTLER_CONFIG": str(place / "none.toml"),
    }
    place.mkdir()
    code, *arguments = words
    argv = [sys.executable, "-c", f"import sys\n{code}{PEAK}", *arguments]
    began = time.monotonic_ns()
    done = subprocess.run(
        argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    told, peak_kb = done.stderr.split()[-2:]
    return (int(told) - began) / 1e9, int(peak_kb) / 1024
