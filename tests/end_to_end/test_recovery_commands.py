"""People get a run that has failed to its end: with another input, from the command line."""

import json
import sys
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostres.leftovers import find_leftovers
from tests.end_to_end.support import command, finished, graph, hostler, refused, shown, started, told
from tests.support import until

FAILS = command("make", "sh", "-c", 'test "$WANTED" = right && echo made')


def events(run: str, kind: str) -> list[dict]:
    return [
        event for line in hostler("events", run, "--json").splitlines() if (event := json.loads(line))["kind"] == kind
    ]


def after(key: str, *dependencies: str) -> dict:
    return {**command(key, "echo", key), "after": list(dependencies)}


def test_a_failed_command_is_corrected_and_what_was_skipped_for_it_follows(tmp_path: Path) -> None:
    """G21: the corrected node completes with the same dependents; the plan of the run stays; verify finds nothing."""
    assert finished("run", graph(tmp_path, FAILS, after("use", "make"))).returncode == 1
    before = shown("-")
    assert [node["status"] for node in before["nodes"]] == ["failed", "skipped"]
    correction = tmp_path / "new.json"
    correction.write_text(json.dumps({"env": {"WANTED": "right"}}))
    hostler("correct", "-", "make", "--input", str(correction), "--reason", "it was the wrong word")
    assert hostler("resume", "-").rstrip().endswith("completed")
    after_it = told("show", "-")
    assert after_it["plan_sha256"] == before["plan_sha256"]
    make, use = after_it["nodes"]
    assert (make["status"], make["attempt"], make["revision"], use["status"]) == ("completed", 2, 1, "completed")
    (corrected,) = make["corrections"]
    assert corrected["replaced_plan_sha256"] == before["nodes"][0]["plan_sha256"] != make["plan_sha256"]
    assert corrected["input"]["argv"][0] == "sh", "what the file leaves out stays as it was"
    assert (corrected["reason"], corrected["after_attempt"]) == ("it was the wrong word", 1)
    assert "make: revision 1 of its input, after attempt 1" in hostler("show", "-")
    assert "is completed; there is nothing to correct" in refused(
        "correct", "-", "make", "--input", str(correction), code=5
    )
    hostler("verify", "-")


def test_an_input_that_cannot_be_is_refused_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one line says what is wrong with it."""
    assert main(["run", graph(tmp_path, FAILS)]) == 1
    new = tmp_path / "new.json"
    wanted = ["correct", "-", "make", "--input", str(new)]
    for text, why in (
        ("{", "not JSON"),
        ('["true"]', "the input of a command is an object"),
        ('{"argv": []}', "its argv is no list of words"),
        ('{"argv": [true]}', "argv[0] is true or false"),
        ('{"env": ["A"]}', "env is no object"),
        ('{"env": {"HOSTLER_RUN": "x"}}', "cannot be set in its environment"),
        ('{"stdin": 3}', "stdin is 3, not a text"),
        ('{"value": {"$ref": {"node": "other", "path": []}}}', "which make does not depend on"),
    ):
        new.write_text(text)
        assert main(wanted) == 2, text
        assert why in capsys.readouterr().err
    new.write_text('{"argv": ["true"]}')
    monkeypatch.setenv("HOSTLER_PRINCIPAL", "coder")
    assert main(wanted) == 5
    assert "agent:coder may not correct" in capsys.readouterr().err
    assert "revision" not in shown("-")["nodes"][0]


AGENT = """\
import json, sys
asked = json.load(sys.stdin)
done = asked["objective"] == "sweep" and asked["input"] == {"q": 1}
print(json.dumps({"status": "success" if done else "failed", "summary": asked["objective"]}))
"""


def test_an_agent_that_is_asked_something_else_keeps_its_program_and_its_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the file leaves out stays as it was; what is no word of an agent is refused, and nothing is lost."""
    words = {"objective": "fly", "argv": [sys.executable, "-c", AGENT]}
    assert main(["run", graph(tmp_path, {"key": "do", "input": {"q": 1}, "executor": {"agent": words}})]) == 1
    new = tmp_path / "new.json"
    wanted = ["correct", "-", "do", "--input", str(new)]
    for text in ("null", '"sweep"', '{"q": 2}', '{"objective": ""}', '{"argv": null}', '{"stdin": "x"}'):
        new.write_text(text)
        assert main(wanted) == 2, text
        assert "the new input of node do: " in capsys.readouterr().err
    new.write_text('{"objective": "sweep"}')
    assert main(wanted) == 0
    assert main(["resume", "-"]) == 0


COUNTING = """\
from pydantic import BaseModel
from hostler import Policy, operation, workflow

class Number(BaseModel):
    n: int

@operation("test.begin", version=1, policy=Policy(effect="pure"))
def begin(ctx, input: Number) -> Number:
    return input

@operation("test.count", version=1, policy=Policy(effect="pure"))
def count(ctx, input: Number) -> Number:
    if input.n < 5:
        raise ValueError("too few")
    return Number(n=input.n + 1)

@workflow("counting", version=1)
def counting(build):
    begun = build.call(begin, key="begin", input={"n": 1})
    return build.call(count, key="count", input={"n": begun["n"]})["n"]
"""


def test_an_input_that_an_operation_does_not_take_is_refused_when_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when the workflow is compiled, and by what its references lead to."""
    path = tmp_path / "counting.py"
    path.write_text(COUNTING)
    assert main(["run", str(path)]) == 1
    new = tmp_path / "new.json"
    for text, why in (
        ('"text"', "an object"),
        ('{"n": "x"}', "input.n"),
        ('{"m": 7}', "input.m is no field of it"),
        ('{"n": {"$ref": {"node": "begin", "path": []}}}', "input.n"),
        ('{"n": {"$ref": {"node": "begin", "path": ["m"]}}}', "the output of node begin has no"),
    ):
        new.write_text(text)
        capsys.readouterr()
        assert main(["correct", "-", "count", "--input", str(new)]) == 2, text
        line = capsys.readouterr().err
        assert "the new input of node count: " in line
        assert why in line
    new.write_text('{"n": 7}')
    assert main(["correct", "-", "count", "--input", str(new)]) == 0
    assert main(["resume", "-"]) == 0


def hangs_once(marker: Path) -> str:
    """Return a script whose first attempt hangs in a program of its own."""
    return f"test -e {marker} && exit 0; sleep 600 & touch {marker}; wait"


def test_a_program_that_hangs_is_ended_and_tried_again_by_itself_if_it_says_how_often_it_beats(tmp_path: Path) -> None:
    """G14: its processes are ended, and the replacement completes the node."""
    again = {"attempts": 2}
    node = command("a", "sh", "-c", hangs_once(tmp_path / "m"), heartbeat={"seconds": 0.1}, retry=again)
    assert hostler("run", graph(tmp_path, node)).rstrip().endswith("completed")
    (shows,) = shown("-")["nodes"]
    assert shows["attempt"] == 2
    stalled = [event for event in events("-", "node-status") if event["data"].get("failure")]
    assert not stalled, "it had a try left"
    assert find_leftovers(shown("-")["run_id"]) == []
    hostler("verify", "-")


def test_recover_takes_a_node_from_an_attempt_that_has_got_stuck(tmp_path: Path) -> None:
    """Another process says so; the host that works on the run ends the attempt and makes the next one."""
    marker = tmp_path / "m"
    with started("run", graph(tmp_path, command("a", "sh", "-c", hangs_once(marker)))) as process:
        until(marker.exists)
        assert "is taken from the attempt" in hostler("recover", "-", "a", "--reason", "it hangs")
        assert process.wait(timeout=60) == 0
    (shows,) = shown("-")["nodes"]
    assert (shows["status"], shows["attempt"]) == ("completed", 2)
    (asked,) = [event for event in events("-", "request") if event["data"]["request"] == "recover"]
    assert asked["data"]["reason"] == "it hangs"
    assert "is completed; there is nothing to recover" in refused("recover", "-", "a", code=5)
    hostler("verify", "-")


def test_recover_of_a_run_whose_host_was_killed_ends_what_it_left(tmp_path: Path) -> None:
    """The command takes the run up for a moment: nothing of the dead attempt lives on, and the run can go on."""
    marker = tmp_path / "m"
    with started("run", graph(tmp_path, command("a", "sh", "-c", hangs_once(marker)))) as process:
        until(marker.exists)
        process.kill()
        process.wait()
    run_id = shown("-")["run_id"]
    assert find_leftovers(run_id)
    hostler("recover", "-", "a")
    assert find_leftovers(run_id) == []
    assert shown("-")["nodes"][0]["status"] == "ready"
    assert hostler("resume", "-").rstrip().endswith("completed")
    hostler("verify", "-")


def test_a_corrected_input_with_a_secret_in_it_is_refused(tmp_path: Path) -> None:
    """It would be stored and shown, or run masked; nothing was written."""
    run = hostler("run", graph(tmp_path, command("a", "false")), code=1).split()[0]
    token = "gh" + "p_" + "A1b2" * 9
    (tmp_path / "input.json").write_text(json.dumps({"argv": ["echo", token]}))
    line = refused("correct", run, "a", "--input", str(tmp_path / "input.json"), code=2)
    assert "holds a secret" in line
    assert token not in line
    assert shown(run)["nodes"][0]["status"] == "failed"
