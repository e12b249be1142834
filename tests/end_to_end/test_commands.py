"""The command line as people use it: real processes, from WORKFLOW to exit code."""

import json
import os
from pathlib import Path

import pytest

from tests.end_to_end.support import (
    ECHO,
    Terminal,
    command,
    finished,
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


def test_a_name_under_claims_that_the_machine_does_not_have_lets_no_run_begin(tmp_path: Path) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.claims]\nffmpg = { cpu = 1 }\n", encoding="utf-8")
    said = refused("run", graph(tmp_path, command("say", "true")), code=2)
    assert "error[invalid-profile]" in said
    assert "line 2: machine.claims.ffmpg" in said
    assert hostler("runs") == "no runs\n"
