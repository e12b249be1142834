"""Workers at the command line, in real processes: take, beat, submit, give back; beside hosts that live and die."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.support import finished, hostler, read_until, started, told
from tests.support import until

ROOT = Path(__file__).parents[2]
GRAPH = {
    "workflow": {"id": "outside"},
    "nodes": [
        {"key": "first", "executor": {"agent": {"objective": "do it"}}},
        {"key": "second", "input": {"$ref": {"node": "first", "path": ["output"]}},
         "executor": {"agent": {"objective": "do the rest"}}},
    ],
    "outputs": {"$ref": {"node": "second", "path": ["summary"]}},
}  # fmt: skip


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "outside.json"
    path.write_text(json.dumps(GRAPH), encoding="utf-8")
    return str(path)


def result(folder: Path, **fields: object) -> str:
    path = folder / "result.json"
    path.write_text(json.dumps({"status": "success", "usage": {"tokens": 1}, **fields}), encoding="utf-8")
    return str(path)


def test_a_worker_goes_on_when_the_host_is_killed_and_another_one_takes_over(graph, tmp_path):
    """kill -9 after the lease: it stands, the result counts, and the next host goes on from there."""
    with started("run", graph) as host:
        (run_id,) = read_until(host, "run_")
        work = until(lambda: (done := finished("work", "next", "--worker", "ann")).returncode == 0 and done)
        key = json.loads(work.stdout)["idempotency_key"]
        host.kill()
        host.wait()
    assert json.loads(hostler("work", "next", "--worker", "ann"))["idempotency_key"] == key
    hostler("work", "beat", key)
    hostler("work", "submit", key, "--result", result(tmp_path))
    assert "No host works on the run" in hostler("why", run_id, "second")
    with started("resume", run_id) as host:
        read_until(host, run_id)
        work = until(lambda: (done := finished("work", "next", "--worker", "bob")).returncode == 0 and done)
        assert "waits for" not in hostler("why", run_id, "second")
        hostler("work", "submit", json.loads(work.stdout)["idempotency_key"], "--result", result(tmp_path))
        assert host.wait(timeout=30) == 0
    hostler("verify", run_id)


def test_the_example_is_worked_off_by_a_program_and_a_worker(tmp_path):
    """A stand-in agent plans, a worker of another process does it."""
    with started("run", str(ROOT / "examples" / "agents.toml"), "-i", "text=Sweep. Water.", cwd=ROOT) as host:
        (run_id,) = read_until(host, "run_")
        with subprocess.Popen([sys.executable, str(ROOT / "examples" / "worker.py")], stdout=subprocess.PIPE) as worker:
            code = host.wait(timeout=30)
            worker.kill()
    shown = told("show", run_id)
    assert (code, shown["outputs"]["plan"]) == (0, "2 steps")
    assert shown["outputs"]["done"]["steps_done"] == 2
    spent = [json.loads(line) for line in hostler("events", run_id, "--json").splitlines()]
    assert [event["data"] for event in spent if event["kind"] == "spending"] == [
        {"tokens": 2, "cost": "0.01"},
        {"tokens": 20, "cost": "0.02"},
    ]
