"""Workers at the command line, in real processes: take, beat, submit, give back; beside hosts that live and die."""

import json
from pathlib import Path

import pytest

from hostler import Worker
from tests.end_to_end.support import hostler, read_until, started
from tests.support import until

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
        work = until(ann.next, timeout=60)
        host.kill()
        host.wait()
    assert ann.next().key == work.key
    ann.beat(work)
    assert ann.submit(work, DONE) == "completed"
    with started("resume", run_id) as host:
        read_until(host, run_id)
        bob.submit(until(bob.next, timeout=60), DONE)
        assert host.wait(timeout=60) == 0
    hostler("verify", run_id)
