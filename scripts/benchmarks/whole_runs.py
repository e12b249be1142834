"""`python -m scripts.benchmarks.whole_runs SHAPE:KIND:NODES:RUNS…`: run graphs in one host, print what each took.

SHAPE is chain or fan; KIND is pure, effect, or claim (an effect that claims a cpu); RUNS are one after the other. A
process of its own, so that
strace can count its syncs and its peak memory is its own.
"""

import json
import os
import resource
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
from store.contracts import Effect

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


def main(jobs: list[str]) -> list[dict[str, Any]]:
    """Run each of *jobs* and return what it took: seconds, commits, and the process's peak memory so far."""
    with tempfile.TemporaryDirectory(prefix="hostler-bench.") as place:
        os.environ.update(
            HOSTLER_HOME=f"{place}/home", HOSTLER_MACHINE_DIR=f"{place}/machine", HOSTLER_CONFIG=f"{place}/none"
        )
        with Host() as host:
            host.submit(chain, kind="pure", nodes=1).wait()
            return [_job(host, Path(place), *job.split(":")) for job in jobs]


def _job(host: Host, place: Path, shape: str, kind: str, nodes: str, runs: str) -> dict[str, Any]:
    seconds, before = 0.0, host.commits
    for _ in range(int(runs)):
        inputs = {"kind": kind, "nodes": int(nodes)}
        compiled = compile_workflow({"chain": chain, "fan": fan}[shape], inputs, folder=place, max_nodes=int(nodes))
        began = time.perf_counter()
        outcome = host.start(compiled).wait()
        seconds += time.perf_counter() - began
        if outcome.status != "completed":
            raise RuntimeError(outcome)
    return {
        "seconds": seconds,
        "commits": host.commits - before - 2 * int(runs),  # without those that create and claim
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
