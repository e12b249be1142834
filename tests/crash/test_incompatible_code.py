"""A paused run whose code changed: a host that lacks it changes nothing, and a person may go on without."""

import hashlib
import json
from pathlib import Path

import pytest

from hostler import Host
from hostler.config import Config
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.requests import post
from tests.crash.support import events, hostler, show

FLOW = """
import os

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Thing(BaseModel):
    path: str


@operation("test.kept", version=1, policy=Policy(effect="local-derived-write"))
def kept(ctx, input: Thing) -> Thing:
    with ctx.path(input.path).open("a") as log:
        print(ctx.node, file=log)
    return input


LIMIT_S = float(os.environ.get("TEST_LIMIT_S", "60"))


@operation("test.changed", version=1, policy=Policy(effect="local-derived-write", max_seconds=LIMIT_S))
def changed(ctx, input: Thing) -> Thing:
    return kept.function(ctx, input)


@workflow("two-ways", version=1)
def two_ways(build, path: str):
    gate = build.gate("merge", key="ask")
    build.call(kept, key="kept", input={"path": path}, after=[gate])
    made = build.call(changed, key="changed", input={"path": path}, after=[gate])
    build.call(kept, key="dependent", input={"path": made["path"]})
    return {}
"""


@pytest.fixture
def paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a run whose gate was approved, where one of its operations is not what it was."""
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    done = hostler("run", str(flow), "-i", f"path={tmp_path / 'log'}")
    assert done.returncode == 3, done.stdout + done.stderr
    run_id = done.stdout.split()[0]
    monkeypatch.setenv("TEST_LIMIT_S", "61")
    (waiting,) = show(run_id)["waiting_on"]
    assert hostler("approve", run_id, "ask", "--plan", waiting["plan_sha256"]).returncode == 0
    return run_id


def stored() -> str:
    """Return a digest of all that the store holds of runs."""
    run = show("-")
    return hashlib.sha256(json.dumps([run, events(run["run_id"])], sort_keys=True).encode()).hexdigest()


def test_a_host_that_lacks_an_operation_claims_nothing_and_why_names_it(
    paused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R17."""
    before = stored()
    refused = hostler("resume", paused)
    assert refused.returncode == 5
    assert "operation test.changed@1 (its policy differs from the plan)" in refused.stderr
    assert "--accept-incompatible" in refused.stderr
    monkeypatch.setenv("HOSTLER_PRINCIPAL", "bot")
    refused = hostler("resume", paused, "--accept-incompatible")
    assert refused.returncode == 5
    assert "agent:bot may not accept-incompatible" in refused.stderr
    monkeypatch.delenv("HOSTLER_PRINCIPAL")
    assert stored() == before, "a refused resume changes nothing"
    why = json.loads(hostler("why", paused, "--json").stdout)
    assert "operation test.changed@1 (its policy differs from the plan)" in why["why"]
    assert not (tmp_path / "log").exists()


def test_a_person_may_go_on_without_what_changed(paused: str, tmp_path: Path) -> None:
    done = hostler("resume", paused, "--accept-incompatible")
    assert done.returncode == 1, done.stdout + done.stderr
    nodes = {node["key"]: node for node in show(paused)["nodes"]}
    assert {key: node["status"] for key, node in nodes.items()} == {
        "ask": "completed",
        "kept": "completed",
        "changed": "incompatible",
        "dependent": "skipped",
    }
    assert "its policy differs from the plan" in nodes["changed"]["failure"]["message"]
    assert (tmp_path / "log").read_text() == "kept\n"
    assert show(paused)["status"] == "partial"
    asked = [event for event in events(paused) if event["data"].get("request") == "accept-incompatible"]
    assert [event["kind"] for event in asked] == ["request"]
    assert asked[0]["principal"].startswith("human:")


def test_whoever_takes_up_that_a_person_goes_on_without_it_ends_what_it_lacks_itself(paused: str) -> None:
    """Be it a command, or the service, that comes before the host of that person."""
    clock, home = SystemClock(), Home.open(Config.load().home, create=False)
    accepted = Request(
        request_id="accept",
        run_id=paused,
        kind=RequestKind.ACCEPT_INCOMPATIBLE,
        principal="human:ada",
        data={"nodes": ["changed"]},
        at=clock.now().at,
    )
    post(home, accepted, clock=clock)
    with Host(jobs=1) as host:
        host.operate(paused)
    assert {node["key"]: node["status"] for node in show(paused)["nodes"]} == {
        "ask": "completed",
        "kept": "ready",
        "changed": "incompatible",
        "dependent": "skipped",
    }


def test_with_the_code_back_the_flag_changes_nothing(paused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_LIMIT_S")
    done = hostler("resume", paused, "--accept-incompatible")
    assert done.returncode == 0, done.stdout + done.stderr
    assert show(paused)["status"] == "completed"
    assert not [event for event in events(paused) if event["data"].get("request") == "accept-incompatible"]
