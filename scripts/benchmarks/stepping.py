"""What the whole engine does for a step: how many commits and syncs, and what a node costs in a large run."""

import json
import re
import shutil
import subprocess
import sys
from typing import Any, Final

from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, judged, ratio, unmeasured
from scripts.benchmarks.surroundings import scratch

SMALL: Final = 100
_SYNCS: Final = re.compile(r"^.*\s(\d+)\s+(?:\d+\s+)?(?:fsync|fdatasync)$", re.MULTILINE)


def rows(effort: Effort) -> list[Row]:
    """Count on a chain and a fan; time one large run against small ones of as many nodes."""
    return [*_commits(effort.chain), *_syncs(effort.chain), *_large(effort.large)]


def _commits(nodes: int) -> list[Row]:
    kinds = ("chain:effect", "chain:claim", "chain:pure", "fan:pure")
    found = _run(*(f"{kind}:{nodes}:1" for kind in kinds))
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
        ("syncs a step, chain without claims", "chain:effect", Goal(limit=1.1)),
        ("syncs a step, fan of pure steps", "fan:pure", Goal(limit=0.2)),
    ]
    if shutil.which("strace") is None:
        return [unmeasured(name, "", goal, "there is no strace") for name, _, goal in named]
    found = []
    for name, kind, goal in named:
        many, one = _count_syncs(f"{kind}:{nodes}:1"), _count_syncs(f"{kind}:1:1")
        if many is None or one is None:
            found.append(unmeasured(name, "", goal, "strace may not trace here"))
        else:
            found.append(judged(name, (many - one) / (nodes - 1), "", goal))
    return found


def _count_syncs(job: str) -> int | None:
    with scratch(on_disk=True) as place:
        counted = place / "counted"
        words = ["strace", "-f", "-c", "-o", str(counted), "-e", "trace=fsync,fdatasync"]
        done = subprocess.run([*words, *_argv(job)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return None
        return sum(int(number) for number in _SYNCS.findall(counted.read_text(encoding="utf-8")))


def _large(nodes: int) -> list[Row]:
    size = min(SMALL, nodes)
    (small,), (large,) = _run(f"chain:pure:{size}:{nodes // size}"), _run(f"chain:pure:{nodes}:1")
    return [
        ratio(f"a node of a run of {nodes} / of runs of {size}", large["seconds"], small["seconds"], Goal(limit=1.3)),
        judged(f"peak memory of a run of {nodes} nodes", large["peak_mb"], "MB", Goal(limit=250)),
        informing(f"a node of a chain of {nodes} pure steps", large["seconds"] / nodes * 1e6, "µs"),
    ]


def _argv(*jobs: str) -> list[str]:
    return [sys.executable, "-m", "scripts.benchmarks.whole_runs", *jobs]


def _run(*jobs: str) -> list[dict[str, Any]]:
    done = subprocess.run(_argv(*jobs), stdout=subprocess.PIPE, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
