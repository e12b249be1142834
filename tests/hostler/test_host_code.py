"""A host that takes up a run has the code of every node that a person may still make run, not only of those that wait."""

import os
from pathlib import Path

import pytest

from hostler import Host, code_space
from hostler.config import Config
from hostler.loading import load
from store.clock import SystemClock
from store.contracts import Event, EventKind, Request, RequestKind
from store.home import Home
from store.lifecycle import Status
from store.reader import Reader
from store.requests import post
from tests.support import until

FLOW = """
from pathlib import Path
from pydantic import BaseModel
from hostler import FailureCode, OperationFailed, Policy, operation, workflow
class Empty(BaseModel):
    pass
PAY = "demo.pay" if not Path("lost").exists() else "demo.paid"
@operation(PAY, policy=Policy(effect="project-mutation", resume="ambiguous-after-dispatch"))
def pay(ctx, input: Empty) -> Empty:
    if not Path("mended").exists():
        Path("paying").touch()
        ctx.run(["sleep", "60"])
    return Empty()
@operation("demo.look", policy=Policy(effect="local-read"))
def look(ctx, input: Empty) -> Empty:
    if not Path("mended").exists():
        raise OperationFailed(FailureCode.UNAVAILABLE, "no such camera", "plug it in")
    return Empty()
@workflow("demo")
def flow(build):
    build.call(pay, key="pay", input={})
    build.call(look, key="look", input={})
    build.gate("merge", key="gate")
"""


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run whose host has gone: what `pay` did is unknown, `look` has failed, and a gate keeps it open."""
    monkeypatch.chdir(tmp_path)
    Path("flow.py").write_text(FLOW)
    with Host() as host:
        run = host.submit(load("flow.py", folder=tmp_path))
        until(lambda: Path("paying").exists() and statuses(run.run_id)["look"] is Status.FAILED)
    assert statuses(run.run_id) == {"pay": Status.AMBIGUOUS, "look": Status.FAILED, "gate": Status.APPROVAL_REQUIRED}
    Path("mended").touch()
    return run.run_id


def statuses(run_id: str) -> dict[str, Status]:
    with Reader.open(Home.open(Config.load().home, create=False)) as reader:
        return {node.key: node.status for node in reader.nodes(run_id)}


def events(run_id: str) -> list[Event]:
    with Reader.open(Home.open(Config.load().home, create=False)) as reader:
        return list(reader.events(run_id))


def ask(run_id: str, kind: RequestKind, node: str, **fields: object) -> None:
    """Ask as a person does."""
    clock = SystemClock()
    request = Request(
        request_id=f"{kind}:{node}",
        run_id=run_id,
        kind=kind,
        node=node,
        principal=f"human:{os.getuid()}",
        at=clock.now().at,
        **fields,  # type: ignore[arg-type]
    )
    post(Home.open(Config.load().home, create=False), request, clock=clock)


def ask_again_for_all(run_id: str) -> None:
    """Let everything that has stopped run again."""
    ask(run_id, RequestKind.SETTLE, "pay", data={"outcome": "retry"})
    ask(run_id, RequestKind.RETRY, "look")


def test_a_host_that_took_a_run_up_runs_what_a_person_lets_run_again(stopped: str) -> None:
    """When it was taken up neither of the nodes was to run."""
    with Host() as host:
        host.resume(stopped)
        ask_again_for_all(stopped)
        until(lambda: [statuses(stopped)[key] for key in ("pay", "look")] == [Status.COMPLETED] * 2)


def test_a_host_without_the_code_of_what_has_stopped_takes_the_run_up_and_refuses_to_run_that(stopped: str) -> None:
    """Nothing that waits needs the code; the node stays as it is, for a host that has it."""
    Path("lost").touch()
    for space in list(code_space._spaces.values()):
        space.forget()  # as in another process
    with Host() as host:
        host.resume(stopped)
        ask_again_for_all(stopped)
        until(lambda: statuses(stopped)["look"] is Status.COMPLETED)
    assert statuses(stopped)["pay"] is Status.AMBIGUOUS
    (refused,) = [event for event in events(stopped) if event.kind is EventKind.REQUEST_REFUSED]
    assert "lacks the code of pay: operation demo.pay@1 (not installed)" in str(refused.data["message"])
