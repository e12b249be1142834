"""A program that is told to stop: what runs has its grace, and another goes on."""

import signal
from pathlib import Path

import pytest

from tests.end_to_end.support import (
    Terminal,
    command,
    graph,
    held,
    hostler,
    let_go,
    read_until,
    shown,
    started,
    statuses,
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_gives_what_runs_its_grace_and_says_how_to_go_on(number: signal.Signals, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    workflow = graph(tmp_path, held("work", fifo), command("after", "true", after=("work",)))
    with started("run", workflow) as run:
        run_id = read_until(run, "running")[0]
        run.send_signal(number)
        read_until(run, "stopping")
        let_go(fifo)
        out, _ = run.communicate(timeout=60)
        assert run.returncode == 130
    assert f"{run_id} stopped: 1 completed" in out
    assert f"go on with: hostler resume {run_id}" in out
    assert f"stopped; go on with: hostler resume {run_id}" in hostler("runs")
    assert statuses(run_id) == {"work": "completed", "after": "ready"}
    hostler("resume", run_id)
    assert shown(run_id)["nodes"][0]["attempt"] == 1, "what is done is not done again"


def test_a_second_signal_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    with started("run", graph(tmp_path, held("work", tmp_path / "fifo"))) as run:
        run_id = read_until(run, "running")[0]
        run.send_signal(signal.SIGINT)
        read_until(run, "stopping")
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=9)
        assert run.returncode == 130
    shape = shown(run_id)
    assert shape["status"] == "running"
    assert "owner" not in shape
    assert statuses(run_id) == {"work": "ready"}


def test_ctrl_c_on_a_terminal_stops_in_good_order_and_resume_goes_on(tmp_path: Path) -> None:
    """Field case 6."""
    fifo = tmp_path / "fifo"
    with Terminal("run", graph(tmp_path, held("work", fifo), command("after", "true", after=("work",)))) as terminal:
        terminal.expect("running")
        assert "\x1b[" in terminal.screen, "a terminal gets the live view"
        terminal.write("\x03")
        terminal.expect("stopping")
        terminal.write("\x03")
        assert terminal.wait() == 130
        assert "go on with: hostler resume" in terminal.screen
        assert "Traceback" not in terminal.screen
        assert terminal.screen.rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in terminal.screen, "the cursor is back"
    with Terminal("resume", "-") as terminal:
        terminal.expect("running")
        let_go(fifo)
        assert terminal.wait() == 0
        assert "completed" in terminal.screen
    assert statuses() == {"work": "completed", "after": "completed"}


HANGS = """\
import time

from pydantic import BaseModel

from hostler import operation, workflow


class Nothing(BaseModel):
    pass


@operation("test.hang", version=1)
def hang(ctx, input: Nothing) -> Nothing:
    ctx.progress(0.5, "hangs")
    time.sleep(600)
    return input


@workflow("hangs", version=1)
def hangs(build):
    build.call(hang, key="hang", input={})
    return {}
"""


def test_an_operation_that_never_returns_cannot_keep_the_program(tmp_path: Path) -> None:
    path = tmp_path / "hangs.py"
    path.write_text(HANGS, encoding="utf-8")
    with started("run", str(path)) as run:
        run_id = read_until(run, "running")[0]
        run.send_signal(signal.SIGINT)
        read_until(run, "stopping")
        run.send_signal(signal.SIGINT)
        _, error = run.communicate(timeout=25)
        assert run.returncode == 70
    assert "still ran after their grace" in error
    assert statuses(run_id) == {"hang": "ready"}
    assert "owner" not in shown(run_id)
