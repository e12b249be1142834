"""`python -m scripts.benchmarks.whole_runs [--jobs=N] JOB…`: run graphs in one host, print what each took.

A JOB is SHAPE:KIND:NODES:RUNS or floor:COMMITS. SHAPE is chain, fan or dag (up to three dependencies each, drawn from a
seed); KIND is pure, effect, or claim (an effect that claims a cpu); RUNS are one after the other. The floor is bare
commits. A process of its own, so that strace can count its syncs and its peak memory is its own.
"""

import argparse
import contextlib
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from actors.context import Context
from hostler import Host, Policy, operation, workflow
from hostler.building import Build
from hostler.compiler import compile_workflow
from scripts.benchmarks.bare_commits import BareCommits
from store.policy import Effect

POLICIES: Final = {
    "pure": Policy(),
    "effect": Policy(effect=Effect.LOCAL_READ),
    "claim": Policy(effect=Effect.LOCAL_READ, claims={"cpu": 1}),
}


class Number(BaseModel):
    """What each step takes and gives."""

    i: int


def _step(kind: str) -> Any:
    @operation(f"bench.{kind}", version=1, policy=POLICIES[kind])
    def step(_: Context, input: Number) -> Number:
        return Number(i=input.i + 1)

    return step


STEPS: Final = {kind: _step(kind) for kind in POLICIES}


@workflow("chain", version=1)
def chain(build: Build, kind: str, nodes: int) -> Any:
    """Each step waits for the one before."""
    last: Any = 0
    for number in range(nodes):
        last = build.call(STEPS[kind], key=f"n{number:05}", input={"i": last})["i"]
    return {"i": last}


@workflow("fan", version=1)
def fan(build: Build, kind: str, nodes: int) -> Any:
    """No step waits for another."""
    steps = [build.call(STEPS[kind], key=f"n{number:05}", input={"i": number}) for number in range(nodes)]
    return {"last": steps[-1]["i"]}


@workflow("dag", version=1)
def dag(build: Build, kind: str, nodes: int) -> Any:
    """Each step waits for up to three of those before, the same ones each time."""
    draw = random.Random(nodes)
    steps: list[Any] = []
    for number in range(nodes):
        after = draw.sample(steps, min(number, draw.randint(0, 3)))
        first = after.pop()["i"] if after else number
        steps.append(build.call(STEPS[kind], key=f"n{number:05}", input={"i": first}, after=after))
    return {"last": steps[-1]["i"]}


SHAPES: Final = {"chain": chain, "fan": fan, "dag": dag}


def main(words: list[str]) -> list[dict[str, Any]]:
    """Do each job and return what it took: seconds, processor time, commits, and the process's peak memory so far."""
    parser = argparse.ArgumentParser()
    parser.add_argument("jobs", nargs="+")
    parser.add_argument("--jobs", dest="width", type=int, help="nodes of a run at once; by default the machine's CPUs")
    args = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="hostler-bench.") as place:
        os.environ.update(
            HOSTLER_HOME=f"{place}/home", HOSTLER_MACHINE_DIR=f"{place}/machine", HOSTLER_CONFIG=f"{place}/none"
        )
        with contextlib.closing(BareCommits(Path(place))) as bare, Host(jobs=args.width) as host:
            host.submit(chain, kind="pure", nodes=1).wait()
            return [
                _floor(bare, int(job.partition(":")[2]))
                if job.startswith("floor:")
                else _job(host, Path(place), *job.split(":"))
                for job in args.jobs
            ]


def _floor(bare: BareCommits, commits: int) -> dict[str, Any]:
    began = time.perf_counter()
    bare.commit(commits)
    return {"seconds": time.perf_counter() - began}


def _job(host: Host, place: Path, shape: str, kind: str, nodes: str, runs: str) -> dict[str, Any]:
    seconds, processor_s, before = 0.0, 0.0, host.commits
    for _ in range(int(runs)):
        inputs = {"kind": kind, "nodes": int(nodes)}
        compiled = compile_workflow(SHAPES[shape], inputs, folder=place, max_nodes=int(nodes))
        began, used = time.perf_counter(), time.process_time()
        outcome = host.start(compiled).wait()
        seconds += time.perf_counter() - began
        processor_s += time.process_time() - used
        if outcome.status != "completed":
            raise RuntimeError(outcome)
    return {
        "seconds": seconds,
        "processor_s": processor_s,
        "commits": host.commits - before - 2 * int(runs),  # without those that create and claim
        "peak_mb": _peak_mb(),
    }


def _peak_mb() -> float:
    """Return the most memory that this image has had; what `getrusage` says includes the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
