"""`hostler budget`, as a person types it: an exhausted run goes on when somebody lets it spend more."""

import json
from pathlib import Path

from tests.end_to_end.support import command, graph, held, hostler, let_go, read_until, refused, shown, started, told


def test_an_exhausted_run_names_what_it_needs_and_goes_on_when_that_is_added(tmp_path: Path) -> None:
    """G5: the host is gone; the command claims the run, adds, and hands it back."""
    path = tmp_path / "test.json"
    nodes = [command("a", "true", budget={"ask": {"cost": "0.4"}}), {**command("b", "true"), "budget": {"tasks": 1}}]
    limits = {"budget": {"cost": 0.3}}
    path.write_text(json.dumps({"workflow": {"id": "test"}, "nodes": nodes, "limits": limits}))
    said = hostler("run", str(path), code=3)
    assert "waits: a: budget exhausted: it needs 0.4 cost, the budget of the run has 0.3 left" in said
    found = shown()
    assert (found["status"], found["budget"]) == ("budget-exhausted", {"cost": {"limit": "0.3", "left": "0.3"}})
    (waiting,) = found["waiting_on"]
    assert (waiting["node"], waiting["reason"]) == ("a", "ready")
    assert "--add cost=0.1" in told("why", "-", "a")["command"]
    assert "does not limit tokens" in refused("budget", "-", "b", "--add", "tokens=1", code=5)
    assert "may not budget the run" in refused("budget", "-", "--add", "cost=1", code=5, HOSTLER_NODE="x")
    hostler(*waiting["command"].split()[1:], "--reason", "it is worth it")
    assert told("budget", "-")["budget"] == {"cost": {"limit": "0.4", "left": "0.4"}}
    hostler("resume", "-")
    assert [node["status"] for node in shown()["nodes"]] == ["completed", "completed"]
    assert shown()["usage"]["tasks"] == 2
    hostler("verify", "-")


def test_what_moves_a_blocked_node_without_a_retry_left_is_more_of_the_budget(tmp_path: Path) -> None:
    """And then the retry."""
    document = json.loads(Path(graph(tmp_path, command("a", "false", retry={"exhausted": "block"}))).read_text())
    path = tmp_path / "limited.json"
    path.write_text(json.dumps(document | {"limits": {"budget": {"retries": 0}}}))
    run = hostler("run", str(path), code=3).split()[0]
    (waiting,) = shown(run)["waiting_on"]
    assert waiting["command"] == f"hostler budget {run} --add retries=1"
    assert "no budget has a retry left" in waiting["message"]
    hostler(*waiting["command"].split()[1:])
    (waiting,) = shown(run)["waiting_on"]
    assert waiting["command"] == f"hostler retry {run} a"
    hostler(*waiting["command"].split()[1:])


def test_what_a_living_host_refuses_to_add_is_not_said_to_be_added(tmp_path: Path) -> None:
    """The command waits for the answer of whoever works on the run."""
    fifo = tmp_path / "fifo"
    with started("run", graph(tmp_path, held("a", fifo))) as host:
        read_until(host, "running")
        assert "does not limit cost; see its budgets" in refused("budget", "-", "--add", "cost=1", code=5)
        let_go(fifo)
        assert host.wait(timeout=60) == 0
