"""The live view of `hostler run` and `hostler watch`, as a person has it on a terminal."""

import os
import re
import signal
import sys
import termios
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.support import (
    PROGRAM,
    SHELL,
    Terminal,
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
)

TELLS = """\
import sys

from pydantic import BaseModel

from hostler import operation, workflow


class Fifo(BaseModel):
    path: str


@operation("test.tell", version=1)
def tell(ctx, input: Fifo) -> Fifo:
    print("printed", "\\x1b[2Jevil")
    sys.stderr.write("complained\\n")
    ctx.progress(0.5, "half of it", speed=2.0, left_s=31.0)
    ctx.run(["sh", "-c", 'read line < "$0"', input.path])
    return input


@workflow("tells", version=1)
def tells(build, path: str):
    build.call(tell, key="tell", input={"path": path})
    return {}
"""


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def tells(tmp_path: Path, fifo: Path) -> tuple[str, ...]:
    path = tmp_path / "tells.py"
    path.write_text(TELLS, encoding="utf-8")
    return (str(path), "-i", f"path={fifo}")


PARTS = (
    "✔ first",
    "├ (one|two) +running",
    "· │ text +pending +after one",
    "… ├ (one|two) +queued",
    "waits for whisper, held by (one|two)",
    r"\? └ look +approval-required",
    "look waits for you: hostler approve run_",
    r"0\.\d cpu +\d MB",
)


def test_the_graph_is_a_tree_that_says_what_runs_waits_and_for_whom(tmp_path: Path, fifo: Path) -> None:
    workflow = graph(
        tmp_path,
        command("first", "true"),
        held("one", fifo, after=("first",), claims={"whisper": 1}),
        command("text", "true", after=("one",)),
        held("two", fifo, after=("first",), claims={"whisper": 1}),
        gate("look", after=("first",)),
    )
    with Terminal("run", workflow, "--jobs", "9", columns=120) as terminal:
        terminal.see(lambda seen: all(re.search(part, seen) for part in PARTS))
        let_go(fifo)
        terminal.see(lambda seen: re.search("✔ ├ (one|two)", seen))
        let_go(fifo)
        assert terminal.wait() == 3
    assert len(re.findall("✔ ├ (one|two)", "\n".join(terminal.rows))) == 2, "its last state stays"


def test_what_an_operation_tells_is_shown_also_by_watch_and_what_it_prints_stands_above(
    tells: tuple[str, ...], fifo: Path
) -> None:
    with Terminal("run", *tells, columns=110) as terminal:
        bar = f"{'━' * 12}{'─' * 12}  50 %  2.0×      31 s left"
        terminal.see_text(bar)
        seen = terminal.see_text("half of it").splitlines()
        assert seen[1:3] == [r"printed \x1b[2Jevil", "complained"]
        with Terminal("watch", "-", columns=110) as watch:
            modes = termios.tcgetattr(watch.fd)
            watch.see_text(bar)
            watch.write("\x03")
            assert watch.wait(keep=True) == 130
            assert f"{shown()['run_id']} goes on; look on again with: hostler watch run_" in watch.screen
            assert termios.tcgetattr(watch.fd) == modes
            assert not watch.hides_cursor()
        with Terminal("watch", "-", columns=110) as watch:
            watch.see_text(bar)
            let_go(fifo)
            assert watch.wait() == 0
            assert "completed after" in watch.screen
        assert terminal.wait() == 0


def _times(text: str, number: int, seen: str) -> bool:
    return seen.count(text) == number


def test_ctrl_z_leaves_the_terminal_to_the_shell_and_fg_comes_back(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    workflow = graph(tmp_path, held("work", fifo), command("after", "true", after=("work",)))
    with Terminal(program=(sys.executable, "-c", SHELL, *PROGRAM, "run", workflow)) as terminal:
        modes = termios.tcgetattr(terminal.fd)
        for number in range(2):
            terminal.see(partial(_times, "work  running", number + 1))
            assert terminal.hides_cursor()
            terminal.write("typed\x1a")
            terminal.see(partial(_times, "stopped by 20", number + 1))
            assert "typed" not in terminal.screen
            assert termios.tcgetattr(terminal.fd) == modes
            assert not terminal.hides_cursor()
            termios.tcflush(terminal.fd, termios.TCIOFLUSH)
            terminal.write("fg\n")
        terminal.see(lambda seen: seen.count("work  running") == 3)
        let_go(fifo)
        terminal.expect("ended with 0")
        assert terminal.wait(keep=True) == 0
        assert termios.tcgetattr(terminal.fd) == modes
        assert not terminal.hides_cursor()
    assert statuses() == {"work": "completed", "after": "completed"}


def test_in_the_background_a_run_goes_on_and_leaves_the_terminal_alone(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    workflow = graph(tmp_path, held("work", fifo), command("after", "true", after=("work",)))
    with Terminal(program=(sys.executable, "-c", SHELL, *PROGRAM, "run", workflow)) as terminal:
        terminal.see_text("running")
        terminal.write("\x1a")
        terminal.see_text("stopped by 20")
        terminal.write("bg\n")
        terminal.see_text("command bg")
        let_go(fifo)
        terminal.expect("ended with 0")
        assert terminal.wait() == 0
        told = terminal.screen.rpartition("command bg")[2]
        assert "completed after" in told
        assert "\x1b" not in told


def test_another_size_leaves_nothing_of_the_old_one(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    with Terminal("run", graph(tmp_path, held("work", fifo), gate("look"))) as terminal:
        terminal.see_text("look waits for you")
        for rows, columns in ((9, 30), (40, 140), (4, 12), (24, 80)):
            terminal.resize(rows, columns)
            seen = terminal.see(
                lambda seen: seen.startswith("run_") and seen.count("run_") <= 2 and "work" in seen.splitlines()[1]
            )
            assert len(seen.rstrip().splitlines()) <= rows
        let_go(fifo)
        assert terminal.wait() == 3


COUNTS = r"stopping, \d\.\d s left"


def test_the_first_ctrl_c_counts_down_and_the_second_ends_what_runs_at_once(tmp_path: Path) -> None:
    with Terminal("run", graph(tmp_path, held("work", tmp_path / "fifo")), columns=120) as terminal:
        modes = termios.tcgetattr(terminal.fd)
        terminal.see_text("running")
        terminal.write("\x03")
        terminal.see(lambda seen: "what runs has 10 s to end; again to hurry" in seen and re.search(COUNTS, seen))
        terminal.write("\x03")
        terminal.see_text("stopping now")
        assert terminal.wait(keep=True) == 130
        assert termios.tcgetattr(terminal.fd) == modes
        assert not terminal.hides_cursor()
        assert "go on with: hostler resume run_" in terminal.screen
    assert statuses() == {"work": "ready"}


def test_a_run_outlives_its_terminal_in_good_order(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    terminal = Terminal("run", graph(tmp_path, held("work", fifo), command("after", "true", after=("work",))))
    terminal.see_text("running")
    os.close(terminal.fd)
    let_go(fifo)
    _, status = os.waitpid(terminal.pid, 0)
    assert os.waitstatus_to_exitcode(status) >= 0
    assert statuses()["work"] == "completed"
    hostler("resume", "-")


@pytest.mark.parametrize("name", ["run", "watch"])
def test_a_terminal_that_understands_nothing_gets_plain_lines(name: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    workflow = graph(tmp_path, held("work", fifo))
    plain = ("/usr/bin/env", "TERM=dumb", *PROGRAM)
    if name == "run":
        with Terminal("run", workflow, program=plain) as terminal:
            terminal.see_text("work  running")
            let_go(fifo)
            assert terminal.wait() == 0
    else:
        with started("run", workflow) as run:
            read_until(run, "running")
            with Terminal("watch", "-", program=plain) as terminal:
                let_go(fifo)
                assert terminal.wait() == 0
            run.send_signal(signal.SIGCONT)
            run.communicate(timeout=60)
    assert "\x1b" not in terminal.screen
    assert "completed" in terminal.screen


def test_what_waits_is_told_below_the_live_view(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    with Terminal("run", graph(tmp_path, gate("look"), held("work", fifo)), columns=120) as terminal:
        terminal.expect("look waits for you: hostler approve run_")
        let_go(fifo)
        assert terminal.wait() == 3


BREAKS_THE_VIEW = """
from hostler import Build, workflow
from hostler.commands import live_view

def screen(*given, **named):
    raise OverflowError("it cannot be drawn")

live_view.screen = screen

@workflow("unseen")
def unseen(build: Build):
    build.command(["true"], key="a")
"""


def test_a_view_that_breaks_costs_nobody_the_run(tmp_path: Path) -> None:
    """What is shown is advice; the run goes on unseen, and that is told once."""
    path = tmp_path / "unseen.py"
    path.write_text(BREAKS_THE_VIEW)
    with Terminal("run", str(path)) as terminal:
        assert terminal.wait() == 0
        assert terminal.screen.count("the view broke, and the run goes on unseen: OverflowError") == 1
        assert "completed" in terminal.screen
        assert "Traceback" not in terminal.screen
