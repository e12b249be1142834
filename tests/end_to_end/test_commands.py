"""The command line as people use it: real processes, from WORKFLOW to exit code."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.support import (
    Terminal,
    command,
    finished,
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
from tests.support import until

ROOT = Path(__file__).parent.parent.parent
ECHO = command("say", "echo", "hello")


def test_a_run_prints_its_id_first_and_completes(tmp_path: Path) -> None:
    lines = hostler("run", graph(tmp_path, ECHO)).splitlines()
    run_id = lines[0]
    assert run_id.startswith("run_")
    assert len(run_id) == 30
    assert any("say" in line and "completed" in line for line in lines)
    assert hostler("logs", run_id, "say") == "hello\n"
    assert told("show", run_id)["status"] == "completed"
    assert hostler("resume", run_id).startswith(f"{run_id} completed")


def test_json_is_one_object_at_the_end_and_nothing_else(tmp_path: Path) -> None:
    shape = told("run", graph(tmp_path, ECHO))
    assert shape["status"] == "completed"
    assert shape["counts"]["completed"] == 1
    assert shape["nodes"][0]["attempt"] == 1


PRINTS = """\
import os
import sys

from pydantic import BaseModel

from hostler import operation, workflow

print("at loading")


class Nothing(BaseModel):
    pass


@operation("test.print", version=1)
def say(ctx, input: Nothing) -> Nothing:
    print("by name")
    sys.__stdout__.write("by another name\\n")
    os.write(1, b"by descriptor\\n")
    os.system("echo by a process")
    return input


@workflow("prints", version=1)
def prints(build):
    print("at planning")
    build.call(say, key="say", input={})
    return {}
"""


def test_what_code_of_a_workflow_prints_stands_beside_the_json(tmp_path: Path) -> None:
    path = tmp_path / "prints.py"
    path.write_text(PRINTS, encoding="utf-8")
    for command_line in (["plan", str(path)], ["submit", str(path)], ["resume", "-"], ["run", str(path)]):
        done = finished(*command_line, "--json")
        assert done.returncode == 0, done.stderr
        assert isinstance(json.loads(done.stdout), dict)
        if command_line[0] in {"run", "resume"}:
            for how in ("by name", "by another name", "by descriptor", "by a process", "at loading"):
                assert f"{how}\n" in done.stderr
    # the line's end is a write of its own, before which the view may write a line
    assert "by name" in hostler("run", str(path)), "without --json it is left alone"


def test_a_failing_node_skips_its_dependents_and_nothing_else(tmp_path: Path) -> None:
    """R5."""
    workflow = graph(
        tmp_path,
        command("bad", "sh", "-c", "echo what went wrong >&2; exit 3"),
        command("after", "true", after=("bad",)),
        command("last", "true", after=("after", "other")),
        command("other", "true"),
    )
    out = hostler("run", workflow, code=1)
    run_id = out.splitlines()[0]
    assert statuses(run_id) == {"bad": "failed", "after": "skipped", "last": "skipped", "other": "completed"}
    (failed,) = [line for line in out.splitlines() if line.startswith("failed: ")]
    assert failed.startswith("failed: bad: subprocess: ")
    assert "what went wrong" in failed
    assert f"hostler logs {run_id} bad" in failed, "what to do is ready to be typed"
    assert shown(run_id)["status"] == "partial"


@pytest.mark.parametrize(
    ("arguments", "code"), [(["run", "--nonsense"], 2), (["run", "broken.py"], 2), (["show", "run_0"], 4)]
)
def test_wrong_use_a_broken_file_and_an_unknown_run_are_one_line(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real program, with its interpreter around it; `tests/hostler/commands` has all the other cases."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("def broken(:\n", encoding="utf-8")
    refused(*arguments, code=code)


def test_an_open_state_folder_is_refused(tmp_path: Path) -> None:
    home = Path(os.environ["HOSTLER_HOME"])
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    assert f"chmod 700 {home}" in refused("run", graph(tmp_path, ECHO), code=73)


def test_claims_that_the_machine_never_has_are_refused(tmp_path: Path) -> None:
    out = hostler("run", graph(tmp_path, command("big", "true", claims={"ffmpeg": 99})), code=1)
    assert "ffmpeg" in out


def test_inputs_come_from_a_file_and_are_overridden(tmp_path: Path) -> None:
    workflow = graph(
        tmp_path,
        command("say", "echo", {"$input": "a"}, {"$input": "b"}),
        inputs={"a": {"type": "string"}, "b": {"type": "string"}},
    )
    values = tmp_path / "values.json"
    values.write_text(json.dumps({"a": "1", "b": "2"}), encoding="utf-8")
    hostler("run", workflow, "--input", str(values), "-i", "b=three")
    assert hostler("logs", "-", "say") == "1 three\n"


def test_submit_creates_and_resume_runs(tmp_path: Path) -> None:
    run_id, line = hostler("submit", graph(tmp_path, ECHO)).splitlines()
    assert line == f"hostler resume {run_id}"
    assert shown(run_id)["status"] == "planned"
    assert statuses(run_id) == {"say": "ready"}
    hostler("resume", run_id)
    assert statuses(run_id) == {"say": "completed"}


def test_a_detached_run_goes_on_by_itself(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    run_id = hostler("run", graph(tmp_path, held("wait", fifo)), "--detach").splitlines()[0]
    let_go(fifo)
    assert hostler("watch", run_id).splitlines()[-1].startswith(f"{run_id} completed")
    log = Path(os.environ["HOSTLER_HOME"]) / "logs" / f"{run_id}.log"
    until(lambda: f"{run_id} completed" in log.read_text(encoding="utf-8"))


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


def test_logs_are_followed_from_one_attempt_to_the_next(tmp_path: Path) -> None:
    fifo, mark = tmp_path / "fifo", tmp_path / "mark"
    os.mkfifo(fifo)
    twice = f"if test -e {mark}; then echo second; else touch {mark}; echo first; read line <{fifo}; exit 1; fi"
    with started("run", graph(tmp_path, command("a", "sh", "-c", twice, retry={"attempts": 2}))) as run:
        run_id = read_until(run, "a  running")[0]
        with started("logs", run_id, "a", "--follow") as logs:
            read_until(logs, "first")
            let_go(fifo)
            assert run.wait(timeout=60) == 0
            assert logs.communicate(timeout=60)[0] == "second\n"
    assert "has had 2 attempts, not 3" in refused("logs", run_id, "a", "--attempt", "3", code=4)
    assert hostler("logs", run_id, "a", "--attempt", "1") == "first\n"


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


def test_a_run_of_a_live_host_cannot_be_resumed_elsewhere(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    with started("run", graph(tmp_path, held("work", fifo))) as run:
        run_id = read_until(run, "running")[0]
        owner = shown(run_id)["owner"]
        assert owner["alive"] is True
        assert owner["host"] in refused("resume", run_id, code=5)
        with Terminal("resume", run_id) as terminal:
            assert terminal.wait() == 5
        assert terminal.screen.splitlines()[0] == run_id
        assert terminal.screen.splitlines()[1].startswith("hostler: error[conflict]"), "nothing is drawn before"
        let_go(fifo)
        assert run.wait(timeout=60) == 0


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


def test_what_waits_is_told_below_the_live_view(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    with Terminal("run", graph(tmp_path, gate("look"), held("work", fifo)), columns=120) as terminal:
        terminal.expect("look waits for you: hostler approve run_")
        let_go(fifo)
        assert terminal.wait() == 3


def test_what_a_process_wrote_cannot_command_the_terminal(tmp_path: Path) -> None:
    hostler("run", graph(tmp_path, command("evil", "printf", r"\033]0;owned\007one\r\ntwo")))
    with Terminal("logs", "-", "evil") as terminal:
        assert terminal.wait() == 0
    assert terminal.screen.splitlines() == [r"\x1b]0;owned\x07one", "two"]


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


def test_no_color_is_kept_to_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with Terminal("run", graph(tmp_path, ECHO)) as terminal:
        assert terminal.wait() == 0
    assert "\x1b[3" not in terminal.screen.replace("\x1b[3J", "")


def test_following_ends_when_the_run_does(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    with started("run", graph(tmp_path, held("work", fifo))) as run:
        run_id = read_until(run, "running")[0]
        with (
            started("events", run_id, "--follow", "--json") as events,
            started("logs", run_id, "work", "--follow") as logs,
        ):
            read_until(events, "node-running")
            read_until(logs, "begun")
            let_go(fifo)
            last = read_until(events, "run-finalized")[-1]
            assert events.wait(timeout=60) == 0
            assert logs.wait(timeout=60) == 0
    assert json.loads(last)["kind"] == "run-finalized"


def test_doctor_tells_what_is_in_force_and_from_where() -> None:
    shape = told("doctor")
    said = {finding["name"]: finding["said"] for finding in shape["findings"]}
    assert shape["ok"] is True
    assert "from HOSTLER_HOME" in said["home"]
    assert "from HOSTLER_MACHINE_DIR" in said["machine"]
    assert "not there, which counts as empty" in said["configuration"]
    assert "whisper=1" in said["capacity"]
    assert "SQLite" in said["python"]
    assert not Path(os.environ["HOSTLER_HOME"]).exists(), "looking makes nothing"
    assert not Path(os.environ["HOSTLER_MACHINE_DIR"]).exists()


def test_the_five_minutes_of_the_readme_work() -> None:
    run_id = hostler("run", str(ROOT / "examples/greeting.toml"), "-i", "name=Ann", code=3).split()[0]
    (waits,) = told("approve", "-", code=3)["waiting_on"]
    assert Path(waits["plan"]["input"]["letter"]).read_text(encoding="utf-8") == "Hello Ann\n"
    assert waits["plan"]["input"]["letter"] in hostler("approve", "-", code=3), "there is something to look at"
    hostler(*shown(run_id)["waiting_on"][0]["command"].split()[1:])
    hostler("resume", "-")
    assert hostler("logs", "-", "send") == "Hello Ann\n"


def test_the_python_of_the_readme_works(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text(code, encoding="utf-8")
    (tmp_path / "README.md").write_text("twelve bytes", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "completed {'bytes': 12}\n"


def test_a_name_under_claims_that_the_machine_does_not_have_lets_no_run_begin(tmp_path: Path) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.claims]\nffmpg = { cpu = 1 }\n", encoding="utf-8")
    said = refused("run", graph(tmp_path, command("say", "true")), code=2)
    assert "error[invalid-profile]" in said
    assert "line 2: machine.claims.ffmpg" in said
    assert hostler("runs") == "no runs\n"
