"""Workers at the command line, in real processes: take, beat, submit, give back; beside hosts that live and die."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hostler import Worker
from tests.end_to_end.support import hostler, read_until, started, told
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


DONE = {"status": "success", "usage": {"tokens": 1}}


def test_a_worker_goes_on_when_the_host_is_killed_and_another_one_takes_over(graph):
    """kill -9 after the lease: it stands, the result counts, and the next host goes on from there."""
    ann, bob = Worker("ann"), Worker("bob")
    with started("run", graph) as host:
        (run_id,) = read_until(host, "run_")
        work = until(ann.next, timeout=30)
        host.kill()
        host.wait()
    assert ann.next().key == work.key
    ann.beat(work)
    assert ann.submit(work, DONE) == "completed"
    with started("resume", run_id) as host:
        read_until(host, run_id)
        bob.submit(until(bob.next, timeout=30), DONE)
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
        {"change": "spend", "amount": {"tokens": 2, "cost": "0.01"}},
        {"change": "spend", "amount": {"tokens": 20, "cost": "0.02"}},
    ]
