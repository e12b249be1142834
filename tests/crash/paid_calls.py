"""A paid service on the loopback, a run that calls it, and hosts that are killed all the while.

Three programs at a time want to work on the run, of which one has it; it is killed with SIGKILL at a moment that the
seed chooses, between two calls that the service has accepted. In the end the service has accepted exactly as many calls
as the run has recorded and as its budget allows, and no call twice.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from hostler.config import Config
from store.amounts import NOTHING, plus
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.lifecycle import RUN_RESTING, RunStatus, Status
from store.proving import numbers, prove
from store.reader import Reader
from store.requests import post

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAMS: Final = 3
DEADLINE_S: Final = 240.0

WORKFLOW: Final = """
from decimal import Decimal
from urllib.error import HTTPError
from urllib.request import urlopen

from pydantic import BaseModel

from hostler import Ask, Budget, Demand, Finding, Policy, Reconciliation, RunLimits, operation, workflow


class Call(BaseModel):
    url: str


def reconcile(ctx, call, previous):
    try:
        urlopen(f"{call.url}/asked/{ctx.run_id}:{ctx.node}:{previous.attempt}", timeout=60).read()
    except HTTPError:
        return Reconciliation(finding=Finding.RETRY, message="it never came")
    return call


@operation("test.paid-call", version=1, reconcile=reconcile, policy=Policy(
    effect="paid-cloud", resume="verified-receipt", budget=Demand(ask=Ask(cost=Decimal(1)))))
def paid_call(ctx, call: Call) -> Call:
    ctx.before_publication()
    urlopen(f"{call.url}/call/{ctx.idempotency_key}", timeout=60).read()
    ctx.spend(cost=1)
    return call


def flow(budget):
    @workflow("paid-calls", version=1, limits=RunLimits(budget=Budget(cost=Decimal(budget))))
    def paid_calls(build, url: str, count: int):
        for number in range(count):
            build.call(paid_call, key=f"n{number:03d}", input={"url": url})
    return paid_calls


paid_calls = flow(BUDGET)
"""


@dataclass
class Service:
    """What the service has charged: idempotency key → how often it accepted a call under it."""

    accepted: dict[str, int] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def calls(self) -> int:
        """How many calls it accepted."""
        return sum(self.accepted.values())


@contextmanager
def serving(chance: random.Random) -> Iterator[tuple[Service, str]]:
    """Run the service; some replies come late, so that a kill falls between the charge and the reply."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, what, key = self.path.split("/", 2)
            with service.changed:
                if what == "call":
                    service.accepted[key] = service.accepted.get(key, 0) + 1
                    service.changed.notify_all()
                known = key in service.accepted
                late_s = chance.choice([0.0, 0.02, 0.1]) if what == "call" else 0.0
            time.sleep(late_s)
            try:
                self.send_response(200 if known else 404)
                self.end_headers()
            except OSError:
                pass  # who asked is dead

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _start(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "hostler", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _approve_all(home: Home, run_id: str) -> None:
    with Reader.open(home) as reader:
        waiting = [node for node in reader.nodes(run_id) if node.status is Status.APPROVAL_REQUIRED]
    for node in waiting:
        request = Request(
            request_id=f"approve:{node.key}", run_id=run_id, kind=RequestKind.APPROVE, node=node.key,
            plan_sha256=node.plan_sha256, principal="human:ann", at="2026-01-01T00:00:00.000Z",
        )  # fmt: skip
        post(home, request, clock=SystemClock())


def torment(folder: Path, *, kills: int, seed: int) -> str:
    """Kill hosts *kills* times while they pay, let the run rest, and compare.

    Args:
        folder: For the workflow; the home is that of the environment.
        kills: How many times.
        seed: Of all that is left to chance here.

    Returns:
        What was found, one line.

    Raises:
        AssertionError: Something does not hold.

    """
    chance = random.Random(seed)
    budget = 4 * kills + 4
    count = max(100, budget + 20)
    file = folder / "paid.py"
    file.write_text(WORKFLOW.replace("BUDGET", str(budget)))
    with serving(random.Random(seed + 1)) as (service, url):
        first = _start("run", str(file), "-i", f"url={url}", "-i", f"count={count}")
        assert first.wait(DEADLINE_S) == 3, "it waits for approvals"
        home = Home.open(Config.load().home, create=False)
        with Reader.open(home) as reader:
            run_id = reader.find("-")
        _approve_all(home, run_id)
        done = 0
        while done < kills:
            done += _kill_one(service, run_id, chance)
        last = _start("resume", run_id)
        code = last.wait(10 * DEADLINE_S)
        assert code == 3, code
        return _compare(home, run_id, service, budget=budget, kills=done)


def _kill_one(service: Service, run_id: str, chance: random.Random) -> int:
    """Let three programs want the run; kill them all once the service has accepted some calls."""
    before, wanted = service.calls, chance.randint(0, 3)
    programs = [_start("resume", run_id, "--jobs", "8") for _ in range(PROGRAMS)]
    deadline = time.monotonic() + DEADLINE_S
    with service.changed:
        while service.calls < before + wanted and any(program.poll() is None for program in programs):
            assert time.monotonic() < deadline, "nothing happens any more"
            service.changed.wait(0.05)
    time.sleep(chance.uniform(0.0, 0.05))  # the moment of the kill, not a wait for anything
    killed = 0
    for program in programs:
        if program.poll() is None:
            program.send_signal(signal.SIGKILL)
        killed += program.wait(DEADLINE_S) == -signal.SIGKILL
    return 1 if killed else 0


def _compare(home: Home, run_id: str, service: Service, *, budget: int, kills: int) -> str:
    with Reader.open(home) as reader:
        run = reader.run(run_id)
        nodes = reader.nodes(run_id)
    total = NOTHING
    for ledger in run.ledgers:
        total = plus(total, ledger.used)
        assert ledger.reserved is None, "something is reserved though nothing runs"
    completed = [node for node in nodes if node.status is Status.COMPLETED]
    assert run.status in RUN_RESTING
    assert run.status is RunStatus.BUDGET_EXHAUSTED
    assert max(service.accepted.values()) == 1, "a call was paid twice"
    assert service.calls <= budget, f"{service.calls} calls on a budget of {budget}"
    assert total.cost == service.calls == len(completed) == budget, (total.cost, service.calls, len(completed), budget)
    assert not prove(home, *numbers(home)).problems
    return json.dumps(
        {"kills": kills, "claimants": len(nodes), "budget": budget, "calls": service.calls, "recorded": int(total.cost)}
    )
