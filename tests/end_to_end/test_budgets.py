"""`hostler budget`, as a person types it: an exhausted run goes on when somebody lets it spend more."""

import json
from pathlib import Path

from tests.end_to_end.support import command, hostler, refused, shown, told


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
