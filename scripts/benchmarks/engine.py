"""Whole runs in a process of their own: what they took, and how often they synced."""

import json
import re
import shutil
import subprocess
import sys
from typing import Any, Final

from scripts.benchmarks.results import Goal, Row, judged, unmeasured
from scripts.benchmarks.surroundings import scratch

_SYNCS: Final = re.compile(r"^.*\s(\d+)\s+(?:\d+\s+)?(?:fsync|fdatasync)$", re.MULTILINE)


def took(*jobs: str) -> list[dict[str, Any]]:
    """Do *jobs* of `whole_runs` in one process and return what each took."""
    done = subprocess.run(_argv(*jobs), stdout=subprocess.PIPE, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def syncs_a_step(shape: str, kind: str, nodes: int, *options: str) -> float | str:
    """Return how often a step syncs, by strace: what a run of *nodes* does more than a run of one.

    Args:
        shape: Of the run.
        kind: Of its steps.
        nodes: How many.
        *options: More for `whole_runs`.

    Returns:
        The number, or why it cannot be counted here.

    """
    if shutil.which("strace") is None:
        return "there is no strace"
    one = _counted(*options, f"{shape}:{kind}:1:1")
    many = None if one is None else _counted(*options, f"{shape}:{kind}:{nodes}:1")
    if one is None or many is None:
        return "strace may not trace here"
    return (many - one) / (nodes - 1)


def syncs_row(name: str, counted: float | str, goal: Goal) -> Row:
    """Return the row of what `syncs_a_step` counted."""
    if isinstance(counted, str):
        return unmeasured(name, "", goal, counted)
    return judged(name, counted, "", goal, "by strace")


def _counted(*words: str) -> int | None:
    with scratch(on_disk=True) as place:
        counted = place / "counted"
        strace = ["strace", "-f", "-c", "-o", str(counted), "-e", "trace=fsync,fdatasync"]
        done = subprocess.run(
            [*strace, *_argv(*words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        if done.returncode != 0:
            return None
        return sum(int(number) for number in _SYNCS.findall(counted.read_text(encoding="utf-8")))


def _argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "scripts.benchmarks.whole_runs", *words]
