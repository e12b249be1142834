"""Nodes that wait for a person: what is told of them, who answers, and how."""

import json
import sys
from pathlib import Path

import pytest

from tests.end_to_end.support import (
    Terminal,
    command,
    gate,
    graph,
    held,
    hostler,
    let_go,
    read_until,
    refused,
    shown,
    started,
    statuses,
    told,
)


def test_a_gate_rests_with_its_command_and_goes_on_from_another_process(tmp_path: Path) -> None:
    workflow = graph(tmp_path, gate("ok"), command("after", "true", after=("ok",)), command("free", "true"))
    out = hostler("run", workflow, code=3)
    run_id = out.splitlines()[0]
    assert statuses(run_id)["free"] == "completed", "one node that waits holds nobody up"
    (waiting,) = shown(run_id)["waiting_on"]
    assert waiting["command"] in out
    assert told("approve", run_id, code=3)["waiting_on"][0]["plan_sha256"] == waiting["plan_sha256"]
    said = hostler(*waiting["command"].split()[1:], "--reason", "looks good")
    assert f"hostler resume {run_id}" in said
    assert statuses(run_id)["ok"] == "completed"
    hostler("resume", run_id)
    assert shown(run_id)["status"] == "completed"
    grants = [json.loads(line) for line in hostler("events", run_id, "--json").splitlines() if '"grant"' in line]
    assert [grant["principal"].partition(":")[0] for grant in grants] == ["human"]


def test_a_denied_node_fails_and_says_who_denied_it(tmp_path: Path) -> None:
    run_id = hostler("run", graph(tmp_path, gate("ok"), command("after", "true", after=("ok",))), code=3).split()[0]
    plan = shown(run_id)["waiting_on"][0]["plan_sha256"]
    hostler("approve", run_id, "ok", "--plan", plan, "--deny", "--reason", "not yet")
    shape = shown(run_id)
    assert shape["status"] == "failed"
    assert shape["nodes"][0]["failure"]["code"] == "authorization-required"
    assert "not yet" in shape["nodes"][0]["failure"]["message"]


def test_a_paid_command_asks_before_it_runs(tmp_path: Path) -> None:
    made = tmp_path / "made"
    hostler("run", graph(tmp_path, command("pay", "touch", str(made), effect="paid-cloud")), code=3)
    assert not made.exists()
    command_line = shown("-")["waiting_on"][0]["command"].split()
    hostler(*command_line[1:])
    assert not made.exists()
    hostler("resume", "-")
    assert made.exists()


def test_two_unapproved_nodes_hold_nothing_up_are_told_together_and_one_is_taken_up_while_the_run_goes_on(
    tmp_path: Path,
) -> None:
    """R7."""
    fifo = tmp_path / "fifo"
    pay = [command(key, "true", effect="paid-cloud") for key in ("pay1", "pay2")]
    free = [command("a", "true"), command("b", "true", after=("a",))]
    with started("run", graph(tmp_path, held("long", fifo), *pay, *free)) as run:
        run_id = read_until(run, "b  completed")[0]
        waiting = told("approve", run_id, code=3)["waiting_on"]
        assert [each["node"] for each in waiting] == ["pay1", "pay2"]
        hostler(*waiting[0]["command"].split()[1:])
        read_until(run, "pay1  completed")
        assert statuses(run_id)["long"] == "running", "it was taken up at once"
        let_go(fifo)
        said = run.communicate(timeout=60)[0]
        assert run.returncode == 3
    assert waiting[1]["command"] in said
    assert waiting[0]["command"] not in said
    assert statuses(run_id) == {
        "long": "completed", "pay1": "completed", "pay2": "approval-required", "a": "completed", "b": "completed",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["HOSTLER_NODE", "HOSTLER_PRINCIPAL"])
def test_an_agent_cannot_approve_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    hostler("run", graph(tmp_path, gate("ok")), code=3)
    plan = shown("-")["waiting_on"][0]["plan_sha256"]
    before = hostler("events", "-", "--json")
    error = refused("approve", "-", "ok", "--plan", plan, code=5, **{name: "bot"})
    assert error.startswith("hostler: error[conflict]: agent:bot may not approve")
    assert hostler("events", "-", "--json") == before
    assert statuses() == {"ok": "approval-required"}


def test_a_node_that_tries_to_approve_its_own_run_is_refused(tmp_path: Path) -> None:
    """It unsets what marks it; its parent, the shell of the node, still has it."""
    script = (
        "import os, subprocess, sys\n"
        "for name in ('HOSTLER_NODE', 'HOSTLER_RUN', 'HOSTLER_LEASE'):\n    os.environ.pop(name, None)\n"
        "done = subprocess.run([sys.executable, '-m', 'hostler', 'approve', '-', 'ok', '--plan', '0' * 64],\n"
        "                      capture_output=True, text=True)\n"
        "print(done.returncode, done.stderr)\n"
    )
    hostler("run", graph(tmp_path, gate("ok"), command("cheat", sys.executable, "-c", script)), code=3)
    said = hostler("logs", "-", "cheat")
    assert said.startswith("5 ")
    assert "agent:cheat may not approve" in said


def test_questions_on_a_terminal_are_asked_one_by_one(tmp_path: Path) -> None:
    hostler("run", graph(tmp_path, gate("one"), gate("two"), gate("three")), code=3)
    with Terminal("approve", "-") as terminal:
        for answer in ("y", "d", ""):
            terminal.expect("approve? [y]es, [d]eny, [N]ot now: ")
            terminal.screen = ""
            terminal.write(f"{answer}\n")
        assert terminal.wait() == 3
        assert "nothing was decided of " in terminal.screen
    assert sorted(statuses().values()) == ["approval-required", "completed", "failed"]


def test_a_question_that_is_not_answered_decides_nothing(tmp_path: Path) -> None:
    hostler("run", graph(tmp_path, gate("one")), code=3)
    with Terminal("approve", "-", "one", "--deny") as terminal:
        terminal.expect("deny? [y/N] ")
        terminal.write("n\n")
        assert terminal.wait() == 3
    assert "nothing was decided of one; it still waits" in terminal.screen
    assert statuses() == {"one": "approval-required"}
