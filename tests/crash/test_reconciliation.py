"""A paid call whose host is killed: what it did is found out by its operation, never by doing it again."""

import json
import os
import signal
from pathlib import Path

import pytest

from actors.attempts import RECONCILER
from tests.crash.support import events, hosting, hostler, processes_of, show
from tests.support import until

FLOW = """
import time
from pathlib import Path

from pydantic import BaseModel

from hostler import ExactPlan, Finding, Policy, Reconciliation, Retry, operation, workflow


class Order(BaseModel):
    ledger: str
    price: int = 0


class Receipt(BaseModel):
    key: str
    price: int


def quote(ctx, order, descriptors):
    Path(order.ledger, "quotes").open("a").write("asked\\n")
    return ExactPlan(input=Order(ledger=order.ledger, price=7), keys=("project:orders",))


def look(ctx, order, previous):
    looks = Path(order.ledger, "looks")
    looks.open("a").write(f"{previous.attempt} {previous.gate_passed}\\n")
    if Path(order.ledger, "hang").exists():
        while not ctx.cancelled:
            time.sleep(0.01)
        ctx.check_cancelled()
    if Path(order.ledger, "lost").exists():
        Path(order.ledger, "lost").unlink()
        return Reconciliation(Finding.RETRY)
    return Receipt(key=ctx.idempotency_key, price=order.price)


@operation("test.order", version=1, plan=quote, reconcile=look,
           policy=Policy(effect="project-mutation", resume="recoverable-transaction", max_seconds=60))
def order(ctx, order: Order) -> Receipt:
    ctx.before_publication()
    with Path(order.ledger, "calls").open("a") as calls:
        print(ctx.idempotency_key, order.price, file=calls)
    while not Path(order.ledger, "go").exists():
        time.sleep(0.01)
        ctx.check_cancelled()
    raise SystemExit("never told what it did")


@workflow("shop", version=1)
def shop(build, ledger: str):
    ordered = build.call(order, key="order", input={"ledger": ledger})
    return {"price": ordered["price"]}
"""


@pytest.fixture
def flow(tmp_path) -> list[str]:
    (tmp_path / "flow.py").write_text(FLOW)
    return ["run", str(tmp_path / "flow.py"), "-i", f"ledger={tmp_path}"]


def lines(folder: Path, name: str) -> list[str]:
    file = folder / name
    return file.read_text().splitlines() if file.exists() else []


def killed_in_mid_call(flow: list[str], folder: Path) -> str:
    with hosting(*flow) as host:
        assert host.stdout is not None
        run_id = host.stdout.readline().strip()
        until(lambda: lines(folder, "calls"))
        os.kill(host.pid, signal.SIGKILL)
        host.wait()
    return run_id


def test_a_call_that_was_made_is_adopted_and_not_made_again(flow, tmp_path):
    """Field case 87."""
    run_id = killed_in_mid_call(flow, tmp_path)
    done = hostler("resume", run_id)
    assert done.returncode == 0, done.stderr
    assert show(run_id)["outputs"] == {"price": 7}
    assert lines(tmp_path, "calls") == [f"{run_id}:order:1 7"]
    assert lines(tmp_path, "looks") == ["1 True"]
    assert lines(tmp_path, "quotes") == ["asked"], "its exact plan was frozen before the call"


def test_a_call_that_was_lost_is_made_again(flow, tmp_path):
    run_id = killed_in_mid_call(flow, tmp_path)
    (tmp_path / "lost").touch()
    (tmp_path / "go").touch()
    done = hostler("resume", run_id)
    assert done.returncode == 0, done.stderr
    assert lines(tmp_path, "calls") == [f"{run_id}:order:1 7", f"{run_id}:order:2 7"]
    assert lines(tmp_path, "looks") == ["1 True", "2 True"]


def test_an_error_after_the_gate_is_reconciled_in_the_same_host(flow, tmp_path):
    """R10."""
    (tmp_path / "go").touch()
    done = hostler(*flow)
    assert done.returncode == 0, done.stderr
    assert len(lines(tmp_path, "calls")) == len(lines(tmp_path, "looks")) == 1


def test_a_call_that_failed_and_was_lost_is_made_again_only_by_its_policy(flow, tmp_path):
    (tmp_path / "go").touch()
    (tmp_path / "lost").touch()
    done = hostler(*flow)
    assert done.returncode == 1, done.stderr
    assert "never told what it did" in done.stdout
    assert len(lines(tmp_path, "calls")) == len(lines(tmp_path, "looks")) == 1


def test_a_reconciler_that_breaks_says_so_wherever_a_person_looks_and_is_asked_again_once_it_is_mended(flow, tmp_path):
    (tmp_path / "go").touch()
    file = tmp_path / "flow.py"
    file.write_text(
        FLOW.replace("    return Receipt(key", "    raise KeyError('no such ledger')\n    return Receipt(key")
    )
    stopped = hostler(*flow)
    run_id, why = stopped.stdout.split()[0], "what the attempt did could not be found out: KeyError: 'no such ledger'"
    assert stopped.returncode == 130, stopped.stderr
    assert f"unknown: order: {why}" in stopped.stdout
    for node in ([], ["order"]):
        said = hostler("why", run_id, *node).stdout
        assert why in said
        assert "SystemExit: never told what it did" in said
        assert f"hostler resume {run_id}" in said
    error = json.loads(hostler("logs", run_id, "order", "--json").stdout)["error"]
    before, heading, after = error.partition(RECONCILER)
    assert (before.count("Traceback"), heading, after.count("Traceback")) == (1, RECONCILER, 1)
    assert "KeyError: 'no such ledger'" in after
    again = hostler("resume", run_id, "--json")
    assert (again.returncode, why in again.stderr) == (130, True)
    assert json.loads(hostler("logs", run_id, "order", "--json").stdout)["error"].count("Traceback") == 2
    file.write_text(FLOW)
    done = hostler("resume", run_id)
    assert done.returncode == 0, done.stderr
    assert len(lines(tmp_path, "calls")) == 1


def test_a_reconciler_that_can_never_find_out_is_left_out_and_the_run_ends(flow, tmp_path):
    (tmp_path / "go").touch()
    file = tmp_path / "flow.py"
    file.write_text(FLOW.replace("    return Receipt(key", "    return None\n    return Receipt(key"))
    stopped = hostler(*flow)
    assert "reconcile of test.order gave NoneType, neither its output nor a Reconciliation" in stopped.stdout
    file.write_text(FLOW.replace(", reconcile=look", ""))
    assert hostler("resume", "-").returncode == 1
    assert show()["nodes"][0]["status"] == "incompatible"


def test_a_reconciler_that_is_killed_too_is_asked_again_and_a_cancel_ends_the_run(flow, tmp_path):
    run_id = killed_in_mid_call(flow, tmp_path)
    (tmp_path / "hang").touch()
    with hosting("resume", run_id) as host:
        until(lambda: lines(tmp_path, "looks"))
        os.kill(host.pid, signal.SIGKILL)
        host.wait()
    assert show(run_id)["status"] == "running"
    (tmp_path / "hang").unlink()
    assert hostler("cancel", run_id).returncode == 0
    assert show(run_id)["nodes"][0]["status"] == "running", "a cancel finds nothing out"
    hostler("resume", run_id)
    shown = show(run_id)
    assert shown["nodes"][0]["status"] == "completed", "what was done is kept, also in a cancelled run"
    assert len(lines(tmp_path, "calls")) == 1
    kinds = [event["kind"] for event in events(run_id)]
    assert "cleanup-error" not in kinds


TREE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
with open(os.path.join(sys.argv[1], "pids"), "a") as pids:
    print(os.getpid(), file=pids)
time.sleep(600)
"""
LEFT_BEHIND = (
    FLOW.replace(
        "    while not Path(order.ledger",
        '    if ctx.attempt == 1:\n        ctx.run([sys.executable, "-c", TREE, order.ledger])\n'
        "    while not Path(order.ledger",
    )
    .replace(
        '    if Path(order.ledger, "hang")',
        '    for pid in Path(order.ledger, "pids").read_text().split():\n'
        '        state = Path(f"/proc/{pid}/stat")\n'
        '        if state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":\n'
        '            Path(order.ledger, "beside").touch()\n'
        '    if Path(order.ledger, "hang")',
    )
    .replace("import time\n", f"import sys\nimport time\n\nTREE = {TREE!r}\n", 1)
)


def test_what_a_paid_call_left_running_is_ended_before_anybody_finds_out_or_calls_again(tmp_path):
    """R18: a process and its child in a session of its own; the reconciler and the second call come after their end."""
    flow = tmp_path / "flow.py"
    flow.write_text(LEFT_BEHIND)
    with hosting("run", str(flow), "-i", f"ledger={tmp_path}") as host:
        assert host.stdout is not None
        run_id = host.stdout.readline().strip()
        until(lambda: len(lines(tmp_path, "pids")) == 2)
        os.kill(host.pid, signal.SIGKILL)
        host.wait()
    assert {int(pid) for pid in lines(tmp_path, "pids")} <= processes_of(run_id).keys(), "they live on"
    (tmp_path / "lost").touch()
    (tmp_path / "go").touch()
    done = hostler("resume", run_id)
    assert done.returncode == 0, done.stderr
    assert lines(tmp_path, "looks") == ["1 True", "2 True"]
    assert lines(tmp_path, "calls") == [f"{run_id}:order:1 7", f"{run_id}:order:2 7"]
    assert not (tmp_path / "beside").exists(), "something of the first call was alive while it was asked what it did"
    assert processes_of(run_id) == {}
