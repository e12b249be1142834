"""What a person does for a run that cannot go on by itself: retry, settle, replay."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostler.stored_runs import reading
from hostres.leftovers import find_leftovers
from tests.end_to_end.support import (
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

COMPUTE = """\
from hostler import compute, workflow


@compute
def count(input):
    with open(input["log"], "a") as log:
        log.write("ran\\n")
    with open(input["fifo"]) as fifo:
        return len(fifo.read())


@compute
def double(input):
    return 2 * input


@workflow("counting", version=1)
def counting(build, folder: str):
    made = [build.call(count, key=key, input={"fifo": f"{folder}/{key}", "log": f"{folder}/{key}.log"}) for key in "ab"]
    return build.call(double, key="after", input=made[0], after=made)
"""


def killed(*arguments: str, node: str, begun: Callable[[str], Any] = find_leftovers) -> str:
    """Start a run, kill its host with SIGKILL while *node* is at work, and return the run's id."""
    with started("run", *arguments) as run:
        run_id = read_until(run, f"{node}  running")[0]
        until(lambda: begun(run_id))
        os.kill(run.pid, signal.SIGKILL)
        run.wait(timeout=60)
    return run_id


def test_a_failed_node_is_retried_and_what_was_skipped_for_it_runs(tmp_path: Path) -> None:
    """R16."""
    there = tmp_path / "there"
    workflow = graph(
        tmp_path,
        command("look", "test", "-e", str(there)),
        command("after", "true", after=("look",)),
        command("other", "true"),
    )
    hostler("run", workflow, code=1)
    there.touch()
    assert "may be tried again" in hostler("retry", "-", "look")
    assert statuses() == {"look": "ready", "after": "pending", "other": "completed"}
    hostler("resume", "-")
    run = shown()
    assert {node["key"]: node["attempt"] for node in run["nodes"]} == {"look": 2, "after": 1, "other": 1}
    assert run["status"] == "completed"
    log = [json.loads(line) for line in hostler("events", "-", "--json").splitlines()]
    ends = [event["data"]["status"] for event in log if event["kind"] == "run-finalized"]
    assert ends == ["partial", "completed"], "the earlier outcome stays"


def test_a_person_is_answered_though_the_host_that_had_the_run_dies_first(tmp_path: Path) -> None:
    """It lived when the question was posted; who asked does not go away before somebody has taken the question up."""
    fifo = tmp_path / "fifo"
    workflow = graph(
        tmp_path,
        command("look", "false"),
        command("after", "true", after=("look",)),
        held("other", fifo, after=()),
    )
    with started("run", workflow) as run:
        run_id = read_until(run, "other  running")[0]
        until(lambda: statuses(run_id)["look"] == "failed")
        os.kill(run.pid, signal.SIGSTOP)
        assert f"kill -CONT {run.pid}" in hostler("why", run_id)
        with started("retry", run_id, "look") as asking:
            with reading() as (_, reader):
                until(lambda: reader.requests(run_id))
            os.kill(run.pid, signal.SIGKILL)
            run.wait(timeout=60)
            said, _ = asking.communicate(timeout=60)
    assert asking.returncode == 0
    assert said.splitlines() == ["look may be tried again", f"go on with: hostler resume {run_id}"]
    assert {key: status for key, status in statuses(run_id).items() if key != "other"} == {
        "look": "ready",
        "after": "pending",
    }


def test_what_did_not_fail_cannot_be_retried(tmp_path: Path) -> None:
    hostler("run", graph(tmp_path, command("fine", "true")))
    assert "fine is completed" in refused("retry", "-", "fine", code=5)


def test_an_interrupted_effect_rests_until_a_person_settles_it(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    workflow = graph(
        tmp_path,
        held(
            "pay",
            fifo,
            effect="project-mutation",
            resume="ambiguous-after-dispatch",
            outputs={"receipt": "r.txt"},
        ),
        command("after", "echo", {"$ref": {"node": "pay", "path": ["outputs", "receipt", "path"]}}),
    )
    run_id = killed(workflow, node="pay")
    assert find_leftovers(run_id) != []
    findings = told("doctor")["findings"]
    assert [finding for finding in findings if finding["name"] == "leftover" and run_id in finding["said"]]
    (left,) = [finding for finding in findings if finding["name"] == "left"]
    assert f"`hostler resume {run_id}`" in left["todo"]
    out = hostler("resume", run_id, code=3)
    assert find_leftovers(run_id) == [], "what the dead attempt left is ended first"
    (waiting,) = shown(run_id)["waiting_on"]
    assert waiting["reason"] == "ambiguous"
    assert waiting["command"] == f"hostler settle {run_id} pay --failed"
    assert waiting["command"] in out

    assert "--completed FILE" in refused("settle", run_id, "pay", code=2)
    result = tmp_path / "result.json"
    receipt = {"path": "/receipts/17", "bytes": 0, "sha256": "0" * 64}
    result.write_text(json.dumps({"exit_code": 0, "outputs": {"receipt": receipt}}), encoding="utf-8")
    assert "is settled as completed" in hostler("settle", run_id, "pay", "--completed", str(result))
    hostler("resume", run_id)
    assert hostler("logs", run_id, "after") == "/receipts/17\n"


def test_a_paid_effect_whose_host_is_killed_is_not_made_again_by_its_one_approval(tmp_path: Path) -> None:
    """Nor after that, when it was cancelled and a person says that it had not happened."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    effects = tmp_path / "effects"
    pay = command(
        "pay", "sh", "-c", 'echo paid >> "$0"; read line < "$1"', str(effects), str(fifo), effect="paid-cloud"
    )
    hostler("run", graph(tmp_path, pay, command("after", "true", after=("pay",))), code=3)
    (waits,) = shown()["waiting_on"]
    run_id = shown()["run_id"]
    hostler("approve", run_id, "pay", "--plan", waits["plan_sha256"])
    with started("resume", run_id) as resumed:
        until(effects.exists)
        os.kill(resumed.pid, signal.SIGKILL)
        resumed.wait(timeout=60)
    assert "may have happened" in hostler("resume", run_id, code=3)
    hostler("cancel", run_id)
    assert "it was cancelled, and will not run again" in hostler("show", run_id)
    assert "is settled as not happened, and cancelled" in hostler("settle", run_id, "pay", "--retry")
    assert statuses(run_id) == {"pay": "cancelled", "after": "cancelled"}
    assert shown(run_id)["status"] == "cancelled"
    assert effects.read_text() == "paid\n"


def test_an_effect_that_did_not_happen_is_settled_to_run_again(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    workflow = graph(tmp_path, held("pay", fifo, effect="project-mutation", resume="ambiguous-after-dispatch"))
    run_id = killed(workflow, node="pay")
    hostler("resume", run_id, code=3)
    assert refused("settle", run_id, "pay", "--retry", code=5, HOSTLER_PRINCIPAL="bot")
    (waiting,) = shown(run_id)["waiting_on"]
    _, *words = waiting["otherwise"][0].split()
    assert words[-1] == "--retry"
    assert "may run again" in hostler(*words)
    with started("resume", run_id) as run:
        read_until(run, "running  (attempt 2)")
        let_go(fifo)
        assert run.wait(timeout=60) == 0


def test_interrupted_trusted_code_runs_again_only_by_a_replay(tmp_path: Path) -> None:
    """R13: of two nodes that were interrupted the one that is named runs again, and each time needs a grant anew."""
    path = tmp_path / "counting.py"
    path.write_text(COMPUTE, encoding="utf-8")
    logs = {key: tmp_path / f"{key}.log" for key in "ab"}
    for key in "ab":
        os.mkfifo(tmp_path / key)
    arguments = (str(path), "-i", f"folder={tmp_path}")
    run_id = killed(*arguments, node="b", begun=lambda _: all(log.exists() for log in logs.values()))
    hostler("resume", run_id, code=3)
    assert statuses(run_id) == {"a": "ambiguous-code", "b": "ambiguous-code", "after": "pending"}
    commands = {waiting["node"]: waiting["command"] for waiting in shown(run_id)["waiting_on"]}
    assert commands == {key: f"hostler replay {run_id} {key}" for key in "ab"}
    assert finished("resume", run_id).returncode == 3, "it does not run again by itself"
    hostler(*commands["a"].split()[1:])
    with started("resume", run_id) as run:
        read_until(run, "running  (attempt 2)")
        until(lambda: logs["a"].read_text().count("ran") == 2)
        os.kill(run.pid, signal.SIGKILL)
        run.wait(timeout=60)
    assert finished("resume", run_id).returncode == 3, "an interrupted replay needs a new grant"
    assert {key: log.read_text() for key, log in logs.items()} == {"a": "ran\nran\n", "b": "ran\n"}
    hostler(*commands["a"].split()[1:])
    with started("resume", run_id) as run:
        read_until(run, "running  (attempt 3)")
        let_go(tmp_path / "a")
        assert run.wait(timeout=60) == 3
    assert statuses(run_id) == {"a": "completed", "b": "ambiguous-code", "after": "pending"}
    hostler(*commands["b"].split()[1:])
    with started("resume", run_id) as run:
        read_until(run, "running  (attempt 2)")
        let_go(tmp_path / "b")
        assert run.wait(timeout=60) == 0
    assert shown(run_id)["outputs"] == 6
    assert {key: log.read_text().count("ran") for key, log in logs.items()} == {"a": 3, "b": 2}


def test_why_says_what_a_failed_and_a_skipped_node_need(tmp_path: Path) -> None:
    workflow = graph(tmp_path, command("look", "false"), command("after", "true", after=("look",)))
    hostler("run", workflow, code=1)
    run_id = shown()["run_id"]
    for node in ("look", "after"):
        said = hostler("why", "-", node)
        assert "false ended with exit code 1" in said
        assert said.splitlines()[1:] == [f"  hostler retry {run_id} look"]
    told_of = json.loads(hostler("why", "-", "--json"))
    assert (told_of["run_id"], told_of["status"], told_of["command"]) == (
        run_id,
        "failed",
        f"hostler why {run_id} look",
    )
    refused("why", "-", "nosuch", code=4)
