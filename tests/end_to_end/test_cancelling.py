"""Runs and nodes that are cancelled, by whoever works on them and from elsewhere."""

import os
from pathlib import Path

from tests.end_to_end.support import (
    ECHO,
    command,
    gate,
    graph,
    held,
    hostler,
    let_go,
    read_until,
    shown,
    started,
    statuses,
    told,
)
from tests.support import until


def test_a_live_run_is_approved_and_cancelled_from_another_process(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    workflow = graph(tmp_path, held("work", fifo), gate("ok"), command("after", "true", after=("ok", "work")))
    with started("run", workflow) as run:
        run_id = read_until(run, "work  running")[0]
        plan = told("approve", run_id, code=3)["waiting_on"][0]["plan_sha256"]
        assert "goes on with it" in hostler("approve", run_id, "ok", "--plan", plan)
        read_until(run, "ok  completed")
        assert hostler("cancel", run_id).rstrip().endswith(("stops it", "now cancelled"))
        assert run.wait(timeout=60) == 130
    assert statuses(run_id) == {"work": "cancelled", "ok": "completed", "after": "cancelled"}
    hostler("cancel", run_id)


def test_one_node_of_a_live_run_is_cancelled_and_the_rest_goes_on(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    workflow = graph(tmp_path, held("a", first), held("b", second), command("after", "true", after=("a",)))
    with started("run", workflow) as run:
        run_id = read_until(run, "  running")[0]
        until(lambda: list(statuses(run_id).values()).count("running") == 2)
        hostler("cancel", run_id, "--node", "a")
        read_until(run, "a  cancelled")
        let_go(second)
        assert run.wait(timeout=60) == 130
    assert statuses(run_id) == {"a": "cancelled", "b": "completed", "after": "cancelled"}


def test_a_run_that_was_cancelled_and_reopened_can_be_cancelled_again(tmp_path: Path) -> None:
    first, second, mark = tmp_path / "first", tmp_path / "second", tmp_path / "mark"
    os.mkfifo(second)
    fails = command("b", "sh", "-c", f"test -e {mark} && read line < {second}")
    with started("run", graph(tmp_path, held("a", first), fails)) as run:
        run_id = read_until(run, "b  failed")[0]
        until(lambda: statuses(run_id)["a"] == "running")
        hostler("cancel", run_id)
        assert run.wait(timeout=60) == 130
    mark.touch()
    hostler("retry", run_id, "b")
    with started("resume", run_id) as run:
        read_until(run, "b  running")
        assert "cancelling" not in shown(run_id)
        hostler("cancel", run_id)
        assert run.wait(timeout=60) == 130
    assert statuses(run_id) == {"a": "cancelled", "b": "cancelled"}
    hostler("verify", run_id)


def test_of_a_node_that_is_cancelled_its_own_state_is_told_not_that_of_its_run(tmp_path: Path) -> None:
    hostler("submit", graph(tmp_path, command("a", "true"), command("b", "true")))
    assert told("cancel", "-", "--node", "a")["status"] == "cancelled"
    assert statuses() == {"a": "cancelled", "b": "ready"}
    hostler("submit", graph(tmp_path, command("a", "true"), command("b", "true")))
    assert "now cancelled" in hostler("cancel", "-", "--node", "a")


def test_a_run_that_nobody_works_on_is_cancelled_here(tmp_path: Path) -> None:
    hostler("submit", graph(tmp_path, ECHO))
    assert told("cancel", "-")["status"] == "cancelled"
    assert statuses() == {"say": "cancelled"}
    hostler("resume", "-", code=130)
