"""An approval given in another process: how soon its step begins, in a host that rests until then."""

import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.benchmarks.effort import Effort
from scripts.benchmarks.flows import PAID, settings
from scripts.benchmarks.results import Goal, Row, informing, judged
from scripts.benchmarks.surroundings import scratch
from store.clock import SystemClock
from store.contracts import NodeRecord, Request, RequestKind
from store.home import Home
from store.lifecycle import RunStatus, Status
from store.reader import Reader
from store.requests import post

LIMIT_S: Final = 60.0
LOOK_S: Final = 0.005


def rows(effort: Effort) -> list[Row]:
    """Approve one step after another, each when the host has come to rest."""
    with scratch(on_disk=True) as place:
        waits = _waits(place, effort.approvals)
    return [
        judged(
            "approval in another process until its step begins",
            statistics.median(waits),
            "ms",
            Goal(limit=20),
            f"p50 of {len(waits)}, from before the approval is written",
        ),
        informing("approval in another process until its step begins, the worst", max(waits), "ms"),
    ]


def _waits(place: Path, steps: int) -> list[float]:
    program = subprocess.Popen(
        [sys.executable, "-c", PAID, str(steps)],
        env=settings(place),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if program.stdin is None or program.stdout is None:
            raise AssertionError
        run_id = program.stdout.readline().strip()
        home = Home.open(place / "home", create=False)
        waits: list[float] = []
        for left in range(steps, 0, -1):
            node = _at_rest(home, run_id, left)[0]
            began = time.monotonic_ns()
            post(home, _approval(run_id, node), clock=SystemClock())
            waits.append((int(program.stdout.readline()) - began) / 1e6)
        program.stdin.close()
        program.wait(LIMIT_S)
    finally:
        if program.poll() is None:
            program.kill()
        program.wait()
    return waits


def _at_rest(home: Home, run_id: str, nodes: int) -> Sequence[NodeRecord]:
    """Wait until the run rests with so many nodes that wait for approval, and return them."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        with Reader.open(home) as reader:
            waiting = [node for node in reader.nodes(run_id) if node.status is Status.APPROVAL_REQUIRED]
            if len(waiting) == nodes and reader.run(run_id).status is RunStatus.APPROVAL_REQUIRED:
                return waiting
        time.sleep(LOOK_S)
    raise RuntimeError(f"{run_id} did not come to rest")


def _approval(run_id: str, node: NodeRecord) -> Request:
    return Request(
        request_id=f"approve:{run_id}:{node.key}:{secrets.token_hex(8)}",
        run_id=run_id,
        kind=RequestKind.APPROVE,
        node=node.key,
        plan_sha256=node.frozen_sha256,
        principal="human:bench",
        at=SystemClock().now().at,
    )
