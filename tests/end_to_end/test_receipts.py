"""Receipts from the command line: given by a person, used by an agent, once, however many try at the same time."""

import io
import json
import subprocess
import sys
import threading
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from hostler.__main__ import main
from hostler.compiler import compile_workflow
from hostler.config import Config
from hostler.host import Host
from hostler.loading import load
from hostler.stored_runs import reading
from store.clock import SystemClock
from store.contracts import EventKind, Request, RequestKind
from store.home import Home
from store.reader import Reader
from store.receipts import FIELD
from tests.end_to_end.support import command, gate, graph, refused, statuses
from tests.support import until

PAYS: dict[str, Any] = {"effect": "paid-cloud", "resume": "ambiguous-after-dispatch"}


def paying(tmp_path: Path, *more: dict[str, Any]) -> str:
    return graph(tmp_path, command("pay", "touch", str(tmp_path / "paid"), **PAYS), *more)


def plan_of(node: str) -> str:
    with reading() as (_, reader):
        (plan,) = [each.frozen_sha256 for each in reader.nodes(reader.find("-")) if each.key == node]
    assert plan is not None
    return plan


def said(*arguments: str, code: int = 0, principal: str | None = None) -> str:
    """Run a command in this process, as an agent of that name if one is given; return all that it printed."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        if principal is not None:
            patch.setenv("HOSTLER_PRINCIPAL", principal)
        assert main(list(arguments)) == code, (arguments, out.getvalue(), err.getvalue())
    return out.getvalue() + err.getvalue()


def test_an_agent_uses_a_receipt_of_a_person_once_and_the_log_proves_it(tmp_path: Path) -> None:
    """G2: the same receipt is refused afterwards, also by another process and after a restart."""
    said("run", paying(tmp_path), code=3)
    give = ("receipt", "create", "-", "pay", "--for", "agent:night", "--plan", plan_of("pay"), "--id", "n1")
    assert "agent:night may approve pay once:" in said(*give)
    assert said(*give, code=5).startswith("hostler: error[receipt-collision]: ")
    use = ("approve", "-", "pay", "--receipt", "n1")
    assert said(*use, code=5, principal="other").startswith("hostler: error[receipt-mismatch]: ")
    assert "may not approve" in said("approve", "-", "pay", "--plan", plan_of("pay"), code=5, principal="n")
    assert "approved pay" in said(*use, principal="night")
    assert said(*use, code=5, principal="night").startswith("hostler: error[receipt-consumed]: ")
    assert refused(*use, code=5, HOSTLER_PRINCIPAL="night").startswith("hostler: error[receipt-consumed]: ")
    assert not (tmp_path / "paid").exists(), "an approval starts nothing by itself"
    said("resume", "-", principal="night")
    assert (tmp_path / "paid").exists()
    (listed,) = json.loads(said("receipt", "list", "-", "--json"))["receipts"]
    assert (listed["receipt_id"], listed["state"], listed["subject"]) == ("n1", "used", "agent:night")
    events = [json.loads(line) for line in said("events", "-", "--json").splitlines()]
    (grant,) = [event for event in events if event["kind"] == "grant"]
    assert (grant["data"]["receipt"], grant["data"]["rule"]) == ("n1", "default.human-approve")
    assert grant["principal"].startswith("human:")
    said("verify", "-")


def test_a_receipt_is_taken_back_or_expires_and_an_agent_gives_none(tmp_path: Path) -> None:
    said("run", paying(tmp_path), code=3)
    plan = plan_of("pay")
    give = ("receipt", "create", "-", "pay", "--for", "agent:night", "--plan", plan, "--id")
    said(*give, "n1")
    said("receipt", "revoke", "-", "n1")
    assert said("receipt", "revoke", "-", "n1", code=5).startswith("hostler: error[receipt-rejected]: ")
    said(*give, "n2", "--expires", "1s")
    until(lambda: json.loads(said("receipt", "list", "-", "--json"))["receipts"][1]["state"] == "expired")
    for name, code in (("n1", "rejected"), ("n2", "expired"), ("n3", "unknown")):
        exit_code = 4 if code == "unknown" else 5
        error = said("approve", "-", "pay", "--receipt", name, code=exit_code, principal="night")
        assert error.startswith(f"hostler: error[receipt-{code}]: ")
    assert "agent:night may not give a receipt for" in said(*give, "n4", code=5, principal="night")
    assert statuses() == {"pay": "approval-required"}
    assert "n2" in said("receipt", "list", "-")


def test_a_gate_is_not_opened_by_an_agent_with_a_receipt_of_a_human(tmp_path: Path) -> None:
    """G1."""
    said("run", graph(tmp_path, gate("ok"), command("after", "true", after=("ok",))), code=3)
    said("receipt", "create", "-", "ok", "--for", "agent:night", "--plan", plan_of("ok"), "--id", "n1")
    error = said("approve", "-", "ok", "--receipt", "n1", code=5, principal="night")
    assert error.startswith("hostler: error[receipt-not-human]: ")
    assert statuses() == {"ok": "approval-required", "after": "pending"}


USES = """
import sys, threading
from pathlib import Path
from store.clock import SystemClock
from store.contracts import Request
from store.home import Home
from store.requests import post
home, first, count = Home.open(Path(sys.argv[1]), create=False), int(sys.argv[2]), int(sys.argv[3])
template = Request.model_validate_json(sys.argv[4])
go = threading.Event()
def use(number):
    go.wait()
    post(home, template.model_copy(update={"request_id": f"use-{number}"}), clock=SystemClock())
threads = [threading.Thread(target=use, args=(number,)) for number in range(first, first + count)]
for thread in threads: thread.start()
print("there", flush=True)
sys.stdin.readline()
go.set()
for thread in threads: thread.join()
"""


def test_of_100_uses_from_threads_and_processes_at_once_exactly_one_wins(tmp_path: Path) -> None:
    """Counted: 100 uses, four processes with 25 threads each, against a host that works on the run meanwhile."""
    home = Home.open(Config.load().home, create=True)
    with Host() as host:
        run = host.start(compile_workflow(load(paying(tmp_path, gate("hold")), folder=tmp_path), {}, folder=tmp_path))
        assert run.wait(timeout=60).status == "approval-required"
        said("receipt", "create", "-", "pay", "--for", "agent:night", "--plan", plan_of("pay"), "--id", "n1")
        template = Request(
            request_id="use", run_id=run.run_id, kind=RequestKind.APPROVE, node="pay", plan_sha256=plan_of("pay"),
            principal="agent:night", data={FIELD: "n1"}, at=SystemClock().now().at,
        )  # fmt: skip
        programs = [
            subprocess.Popen(
                [sys.executable, "-c", USES, str(home.root), str(first), "25", template.model_dump_json()],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for first in (0, 25, 50, 75)
        ]  # fmt: skip
        for program in programs:
            assert program.stdout is not None
            assert program.stdout.readline() == "there\n"
        threads = [threading.Thread(target=program.communicate, args=("go\n",)) for program in programs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [program.returncode for program in programs] == [0] * 4
        with Reader.open(home) as reader:
            for number in range(100):
                until(lambda: reader.answer(run.run_id, f"use-{number}"), timeout=60)  # noqa: B023 - called at once
            answers = [reader.answer(run.run_id, f"use-{number}") for number in range(100)]
            grants = reader.grants(run.run_id)
        won = [answer for answer in answers if answer is not None and answer.kind is EventKind.REQUEST]
        lost = [answer.data["code"] for answer in answers if answer is not None and answer not in won]
        assert (len(won), lost, len(grants)) == (1, ["receipt-consumed"] * 99, 1)
        until((tmp_path / "paid").exists)
    assert statuses() == {"pay": "completed", "hold": "approval-required"}
    said("verify", "-")
