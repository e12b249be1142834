"""G2: kill -9 anywhere between a request and its grant leaves both or neither, and nothing is used twice."""

import signal
import subprocess
import sys
from pathlib import Path

from hostler.__main__ import main
from hostler.config import Config
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.reader import Reader
from store.receipts import ReceiptState
from store.requests import post
from store.verification.findings import Verdict
from tests.end_to_end.support import command, graph, shown
from tests.store.keeping.support import proved

OPERATE = """
import os, signal, sys, threading
from hostler.host import Host
from store import run_store
left, before = int(sys.argv[2]), None
def step(statement):
    global left, before
    what = statement.split()[:3]
    if before is None and what != ["INSERT", "INTO", "grants"] or what == before or what[0] == "SELECT":
        return  # not there yet, or once more the same
    left, before = left - 1, what
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
committing = run_store.RunStore._commit
def committed(store):
    committing(store)
    step("committed")
run_store.RunStore._commit = committed
opening = run_store.RunStore.open.__func__
def opened(cls, *arguments, **options):
    store = opening(cls, *arguments, **options)
    store._connection.set_trace_callback(step)
    return store
run_store.RunStore.open = classmethod(opened)
with Host() as host:
    host.operate(sys.argv[1])
"""


def looked_at(home: Home, run_id: str) -> tuple[bool, bool, bool]:
    """Return whether the grant is there, the receipt used, and the request answered; these must agree."""
    with Reader.open(home) as reader:
        granted = [grant.receipt_id for grant in reader.grants(run_id)]
        (receipt,) = reader.receipts(run_id)
        (use,) = [request for request in reader.requests(run_id) if request.kind == "approve"]
        return granted == ["n1"], receipt.state is ReceiptState.USED, reader.answer(run_id, use.request_id) is not None


def test_a_kill_at_any_statement_between_request_and_grant_leaves_both_or_neither(tmp_path: Path) -> None:
    """G2, at each write of the process that takes the request up, from the grant to what follows its commit."""
    pays = command("pay", "touch", str(tmp_path / "paid"), effect="paid-cloud")
    assert main(["run", graph(tmp_path, pays)]) == 3
    (waits,) = shown()["waiting_on"]
    run_id, plan = shown()["run_id"], waits["plan_sha256"]
    assert main(["receipt", "create", run_id, "pay", "--for", "agent:n", "--plan", plan, "--id", "n1"]) == 0
    _post_use(run_id, plan)
    home = Home.open(Config.load().home, create=False)
    kills = []
    for statements in range(20):
        done = subprocess.run(
            [sys.executable, "-c", OPERATE, run_id, str(statements)], capture_output=True, timeout=60, check=False
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        stands = looked_at(home, run_id)
        assert len(set(stands)) == 1, (statements, stands)
        kills.append(stands[0])
        if stands[0]:
            break
    assert kills[-1], "it was killed after the commit too"
    assert kills.count(False) > 3, "and at each write before it"
    verdict: Verdict = proved(home, run_id)
    assert verdict.problems == ()
    assert main(["resume", run_id]) == 0
    assert (tmp_path / "paid").exists()


def _post_use(run_id: str, plan_sha256: str) -> None:
    request = Request(
        request_id="use", run_id=run_id, kind=RequestKind.APPROVE, node="pay", plan_sha256=plan_sha256,
        principal="agent:n", data={"receipt": "n1"}, at=SystemClock().now().at,
    )  # fmt: skip
    assert post(Home.open(Config.load().home, create=False), request, clock=SystemClock())
