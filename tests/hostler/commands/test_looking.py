"""The commands that only look: runs, show, events, logs, approve without an answer."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler.__main__ import main
from hostler.commands.arguments import MOST
from hostler.stored_runs import whole
from hostres.logs import BoundedLog
from store.contracts import EventKind, NodeRecord, RunRecord, Summary
from store.lifecycle import RunStatus, Status
from store.plans import GraphPlan
from store.reader import Reader
from store.transactions import NewEvent, Output
from tests.hostler.views.support import FAILURE, PLAN
from tests.store.support import STAMP, Setting, finish_node, moved, node_plan, record_of

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def setting() -> Iterator[Setting]:
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    yield setting
    setting.close()


def created(setting: Setting, plan: GraphPlan = PLAN) -> str:
    record = record_of(plan)
    setting.store.create(record, plan, bundle=None)
    return record.run_id


def resting(setting: Setting, *, release: bool = True) -> str:
    """A run whose third node waits for approval; its host lets go of it, or keeps it as a program does."""
    run_id = created(setting)
    claimed = setting.store.claim(run_id, setting.identity)
    nodes = {node.key: node for node in claimed.nodes}
    finish_node(setting, claimed, "audio", {"path": "a.wav"})
    setting.accept(claimed, nodes=(moved(nodes["text"], Status.READY),))
    text = moved(nodes["text"], Status.RUNNING, attempt=1, started_at=STAMP.at)
    setting.accept(claimed, nodes=(text,))
    output = Output.of("text", {"path": "t.srt"})
    done = moved(text, Status.COMPLETED, output_sha256=output.sha256, finished_at=STAMP.at)
    frozen = node_plan(run_id, "upload", {"secret": "\x1b[31m"})
    setting.accept(
        claimed,
        nodes=(done, moved(nodes["upload"], Status.APPROVAL_REQUIRED, plan_sha256=frozen.sha256)),
        outputs=(output,),
        plans=(frozen,),
        events=(NewEvent(kind=EventKind.APPROVAL_REQUIRED, node="upload", data={"plan_sha256": frozen.sha256}),),
        status=RunStatus.APPROVAL_REQUIRED,
        release=release,
    )
    return run_id


def finished(setting: Setting, outputs: Any) -> str:
    """A run of one node that has completed."""
    run_id = created(setting, PLAN.model_copy(update={"nodes": PLAN.nodes[:1], "outputs": None}))
    claimed = setting.store.claim(run_id, setting.identity)
    finish_node(setting, claimed, "audio", {})
    counted = dict.fromkeys(("cancelled", "failed", "pending", "resting", "running", "skipped"), 0) | {"completed": 1}
    summary = Summary(status=RunStatus.COMPLETED, counts=counted, outputs=outputs)
    setting.accept(claimed, status=RunStatus.COMPLETED, summary=summary, release=True)
    return run_id


def shown(capsys: Captured, *arguments: str) -> Any:
    assert main([*arguments, "--json"]) in {0, 3}
    return json.loads(capsys.readouterr().out)


def test_where_nothing_has_run_there_is_nothing_and_nothing_is_made(capsys: Captured) -> None:
    assert main(["runs"]) == 0
    assert capsys.readouterr().out == "no runs\n"
    assert main(["show", "-"]) == 4
    assert capsys.readouterr().err.startswith("hostler: error[not-found]: ")
    assert not Path(os.environ["HOSTLER_HOME"]).exists()


def test_runs_lists_newest_first_with_its_filters(setting: Setting, capsys: Captured) -> None:
    first, second = created(setting), created(setting)
    third = resting(setting)
    assert [run["run_id"] for run in shown(capsys, "runs")["runs"]] == [third, second, first]
    assert [run["run_id"] for run in shown(capsys, "runs", "--limit", "1")["runs"]] == [third]
    assert len(shown(capsys, "runs", "--limit", str(MOST))["runs"]) == 3
    assert [run["run_id"] for run in shown(capsys, "runs", "--status", "planned")["runs"]] == [second, first]
    main(["runs"])
    assert "no host works on it" in capsys.readouterr().out


def test_show_has_the_promised_shape(setting: Setting, capsys: Captured) -> None:
    run_id = resting(setting)
    shape = shown(capsys, "show", run_id[:12])
    assert {*shape} == {
        "format_version",
        "run_id", "workflow", "status", "plan_sha256", "created_at", "started_at", "finished_at", "counts",
        "waiting_on", "nodes",
    }  # fmt: skip
    assert shape["status"] == "approval-required"
    assert sum(shape["counts"].values()) == len(shape["nodes"]) == 4
    assert {*shape["counts"]} == {"cancelled", "completed", "failed", "resting", "pending", "running", "skipped"}
    (waiting,) = shape["waiting_on"]
    assert waiting["node"] == "upload"
    assert waiting["command"] == f"hostler approve {run_id} upload --plan {waiting['plan_sha256']}"
    audio, _, upload, _ = shape["nodes"]
    assert audio["executor"] == "media.extract-audio@1"
    assert audio["claims"] == {"cpu": 1, "ffmpeg": 1}
    assert {"started_at", "finished_at", "output_sha256"} <= {*audio}
    assert {"started_at", "finished_at", "output_sha256", "failure"} & {*upload} == set()
    assert upload["dependencies"] == ["text"]


def test_show_says_what_waits_and_what_to_type(setting: Setting, capsys: Captured) -> None:
    run_id = resting(setting)
    assert main(["show", "-"]) == 0
    text = capsys.readouterr().out
    assert f"    hostler approve {run_id} upload --plan " in text
    assert "2 completed" in text


def test_a_completed_run_is_shown_with_its_outputs_and_their_paths_without_detours(
    setting: Setting, capsys: Captured
) -> None:
    run_id = finished(setting, {"video": "/a/b/../c/talk.mp4", "words": 7})
    assert main(["show", run_id]) == 0
    assert """outputs: {\n  "video": "/a/c/talk.mp4",\n  "words": 7\n}\n""" in capsys.readouterr().out
    assert shown(capsys, "show", run_id)["outputs"]["video"] == "/a/b/../c/talk.mp4", "programs get it as it is"
    assert main(["watch", run_id]) == 0
    assert capsys.readouterr().out.count(run_id) == 1, "there is nothing to look on at, so only the ending is told"


def test_outputs_that_could_not_be_made_say_why(setting: Setting, capsys: Captured) -> None:
    run_id = finished(setting, {"error": "$.text: the output of node audio has no $.path"})
    assert main(["show", run_id]) == 0
    assert "\nno outputs: $.text: the output of node audio has no $.path\n" in capsys.readouterr().out


@pytest.mark.parametrize("started", [True, False])
def test_a_run_that_was_stopped_or_never_started_says_how_to_go_on(
    started: bool, setting: Setting, capsys: Captured
) -> None:
    run_id = created(setting)
    if started:
        claimed = setting.store.claim(run_id, setting.identity)
        setting.accept(claimed, started=True, status=RunStatus.RUNNING, release=True)
    note = "stopped; go on with:" if started else "no host works on it; start it with:"
    for command in (["runs"], ["show", run_id]):
        assert main(command) == 0
        assert f"{note} hostler resume {run_id}" in capsys.readouterr().out
    assert main(["watch", run_id]) == 3, "it waits for a person"
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{run_id} {'stopped' if started else 'planned'}: ")
    assert second.endswith(f"hostler resume {run_id}")
    assert main(["watch", run_id, "--json"]) == 3


def test_show_of_a_run_whose_owner_died_says_running_and_how_to_go_on(setting: Setting, capsys: Captured) -> None:
    run_id = created(setting)
    claimed = setting.store.claim(run_id, setting.identity)
    node = moved(claimed.nodes[0], Status.RUNNING, attempt=1, started_at=STAMP.at)
    setting.accept(claimed, started=True, nodes=(node,), status=RunStatus.RUNNING)
    assert shown(capsys, "show", run_id)["owner"] == {"host": setting.identity.host_id, "alive": True}
    main(["show", run_id])
    assert f"host {setting.identity.host_id} works on it" in capsys.readouterr().out
    setting.identity._lock.close()  # as the kernel does when a process dies; its file stays
    shape = shown(capsys, "show", run_id)
    assert shape["status"] == "running"
    assert shape["owner"] == {"host": setting.identity.host_id, "alive": False}
    main(["show", run_id])
    text = capsys.readouterr().out
    assert f"no host works on it: {setting.identity.host_id} is gone; go on with: hostler resume {run_id}" in text


def test_show_tells_failures_with_code_message_and_what_to_do(setting: Setting, capsys: Captured) -> None:
    run_id = created(setting)
    claimed = setting.store.claim(run_id, setting.identity)
    nodes = {node.key: node for node in claimed.nodes}
    failed = moved(nodes["audio"], Status.FAILED, failure=FAILURE.model_dump(), finished_at=STAMP.at)
    skipped = [moved(nodes[key], Status.SKIPPED) for key in ("text", "upload", "release")]
    totals = {"failed": 1, "skipped": 3, "completed": 0, "cancelled": 0, "resting": 0, "pending": 0, "running": 0}
    setting.accept(
        claimed,
        started=True,
        nodes=(failed, *skipped),
        status=RunStatus.FAILED,
        summary=Summary(status=RunStatus.FAILED, counts=totals),
        release=True,
    )
    shape = shown(capsys, "show", run_id)
    assert shape["nodes"][0]["failure"]["code"] == "subprocess"
    assert shape["nodes"][0]["failure"]["retryable"] is False
    assert shape["counts"] == totals
    assert shape["finished_at"] is not None
    assert main(["show", run_id]) == 0
    assert "audio: subprocess: ffmpeg ended\\x1b[2J with 1; read its log with" in capsys.readouterr().out
    assert main(["resume", run_id]) == 1, "a final run gives its code and nothing else happens"
    text = capsys.readouterr().out
    assert "failed: audio: subprocess" in text
    assert f"\n  hostler retry {run_id} audio\nthen go on with: hostler resume {run_id}\n" in text


@pytest.mark.parametrize("command", [["show"], ["events"], ["resume"], ["cancel"], ["approve"]])
def test_an_unknown_run_is_4_everywhere(command: list[str], setting: Setting, capsys: Captured) -> None:
    assert main([*command, "run_0"]) == 4
    assert capsys.readouterr().err.count("\n") == 1


def test_a_prefix_of_several_runs_is_a_conflict(setting: Setting, capsys: Captured) -> None:
    created(setting)
    created(setting)
    assert main(["show", "run_"]) == 5
    assert "several" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["logs", "-", "none"], ["cancel", "-", "--node", "none"], ["approve", "-", "none"]]
)
def test_an_unknown_node_is_4(command: list[str], setting: Setting, capsys: Captured) -> None:
    created(setting)
    assert main(command) == 4
    assert "has no node 'none'" in capsys.readouterr().err


def test_events_are_one_object_a_line_and_chained(setting: Setting, capsys: Captured) -> None:
    run_id = resting(setting)
    assert main(["events", run_id, "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert all(event["prev_sha256"] == before["sha256"] for before, event in itertools.pairwise(events))
    first = events[0]
    assert {*first} == {
        "format_version",
        "run_id",
        "seq",
        "at",
        "boot_ns",
        "kind",
        "principal",
        "data",
        "prev_sha256",
        "sha256",
    }
    assert first["kind"] == "run-created"
    assert {event["kind"] for event in events} <= {kind.value for kind in EventKind}
    assert main(["events", run_id]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(events)


@pytest.mark.parametrize("release", [True, False])
def test_following_a_run_that_rests_ends_at_once(release: bool, setting: Setting, capsys: Captured) -> None:
    run_id = resting(setting, release=release)
    assert main(["events", run_id, "--follow", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 1


def test_logs_are_those_of_the_last_attempt_and_may_be_asked_for_by_stream(
    setting: Setting, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    run_id = resting(setting)
    for stream, data in (("stdout", b"out\n\x1b[31m\xff"), ("stderr", b"err\n")):
        path = setting.home.log_path(run_id, "text", 1, stream)
        path.write_bytes(data)
        path.chmod(0o600)
    assert main(["logs", run_id, "text", "--stream", "stdout"]) == 0
    assert capsysbinary.readouterr().out == b"out\n\x1b[31m\xff\n", "a pipe gets the bytes as they are"
    assert main(["logs", run_id, "text", "--json"]) == 0
    shape = json.loads(capsysbinary.readouterr().out)
    written = {"stdout": "out\n\x1b[31m�", "stderr": "err\n"}
    assert shape == {
        "format_version": 1, "run_id": run_id, "node": "text", "attempt": 1, **written, "processes": [{"number": 1, **written}], "error": "",
    }  # fmt: skip
    assert main(["logs", run_id, "upload"]) == 0, "it has not run yet"
    assert capsysbinary.readouterr().out == b""
    assert not (setting.home.logs / run_id / "upload").exists(), "looking makes nothing"
    assert not setting.home.logs_of(run_id, "upload", 1)


def log(setting: Setting, run_id: str, stream: str, data: bytes) -> None:
    path = setting.home.log_path(run_id, "text", 1, stream)
    path.write_bytes(data)
    path.chmod(0o600)


def test_logs_of_several_processes_come_in_order_under_headings_and_the_traceback_last(
    setting: Setting, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    run_id = resting(setting)
    log(setting, run_id, "error", b"Traceback\n")
    for number in (10, 2, 1):
        suffix = "" if number == 1 else f".{number}"
        log(setting, run_id, f"stdout{suffix}", f"out {number}\n".encode())
        log(setting, run_id, f"stderr{suffix}", b"" if number == 2 else b"err without an end")
    logged = ["== process 1", "out 1", "err without an end", "== process 2", "out 2", "== process 10", "out 10"]
    logged += ["err without an end", "== error", "Traceback"]
    assert main(["logs", run_id, "text"]) == 0
    assert capsysbinary.readouterr().out.decode().splitlines() == logged
    assert main(["logs", run_id, "text", "--follow"]) == 0, "it rests, so that there is nothing to follow"
    followed = capsysbinary.readouterr().out.decode().splitlines()
    assert [line for line in followed if line != "err without an end" and "==" not in line] == [
        line for line in logged if line != "err without an end" and "==" not in line
    ]
    assert main(["logs", run_id, "text", "--stream", "stdout"]) == 0
    out = capsysbinary.readouterr().out
    assert out == b"== process 1\nout 1\n== process 2\nout 2\n== process 10\nout 10\n"
    assert main(["logs", run_id, "text", "--stream", "error"]) == 0
    assert capsysbinary.readouterr().out == b"Traceback\n"
    assert main(["logs", run_id, "text", "--json"]) == 0
    shape = json.loads(capsysbinary.readouterr().out)
    assert (shape["stdout"], shape["stderr"], shape["error"]) == ("out 1\n", "err without an end", "Traceback\n")
    assert [process["number"] for process in shape["processes"]] == [1, 2, 10]
    assert shape["processes"][1] == {"number": 2, "stdout": "out 2\n", "stderr": ""}
    assert main(["logs", run_id, "text", "--json", "--follow"]) == 0
    lines = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert {"format_version": 1, "stream": "stderr.10", "line": "err without an end"} in lines


def test_a_log_whose_writer_was_killed_is_shown_to_its_end(
    setting: Setting, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    run_id = resting(setting)
    writing = BoundedLog(setting.home.log_path(run_id, "text", 1, "stdout"), keep_bytes=8)
    writing.write(b"0123456789\n")
    assert main(["logs", run_id, "text"]) == 0
    assert capsysbinary.readouterr().out.endswith(b"789\n")
    writing.close()


def test_what_waits_is_listed_with_its_exact_plan(setting: Setting, capsys: Captured) -> None:
    run_id = resting(setting)
    assert main(["approve", run_id]) == 3
    text = capsys.readouterr().out
    assert "node upload of" in text
    assert "\x1b" not in text
    assert f"nothing was decided; to approve it:\n  hostler approve {run_id} upload --plan " in text
    shape = shown(capsys, "approve", run_id)
    assert shape["waiting_on"][0]["plan"]["node"] == "upload"
    assert shown(capsys, "approve", run_id, "upload") == shape, "one node likewise, and nothing but JSON"


def test_a_denial_without_a_plan_decides_nothing_and_says_what_denies(setting: Setting, capsys: Captured) -> None:
    run_id = resting(setting)
    assert main(["approve", run_id, "upload", "--deny", "--reason", "not yet"]) == 3
    text = capsys.readouterr().out
    plan = shown(capsys, "approve", run_id)["waiting_on"][0]["plan_sha256"]
    command = f"hostler approve {run_id} upload --plan {plan} --deny --reason 'not yet'"
    assert f"nothing was decided; to deny it:\n  {command}\n" in text
    shape = shown(capsys, "approve", run_id, "upload", "--deny", "--reason", "not yet")
    assert shape["waiting_on"][0]["command"] == command
    with Reader.open(setting.home) as reader:
        assert reader.requests(run_id) == ()


def test_agents_are_refused_before_anything_is_written(
    setting: Setting, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = resting(setting)
    plan = shown(capsys, "approve", run_id)["waiting_on"][0]["plan_sha256"]
    monkeypatch.setenv("HOSTLER_PRINCIPAL", "bot")
    for command in (["approve", run_id, "upload", "--plan", plan], ["cancel", run_id]):
        assert main(command) == 5
        error = capsys.readouterr().err
        assert error.startswith("hostler: error[conflict]: agent:bot may not ")
    with Reader.open(setting.home) as reader:
        assert reader.requests(run_id) == ()


def test_another_plan_than_the_one_that_waits_is_refused_naming_both(setting: Setting, capsys: Captured) -> None:
    run_id = resting(setting)
    plan = shown(capsys, "approve", run_id)["waiting_on"][0]["plan_sha256"]
    assert main(["approve", run_id, "upload", "--plan", "0" * 64]) == 5
    error = capsys.readouterr().err
    assert plan in error
    assert "0" * 64 in error


def test_a_node_that_does_not_wait_cannot_be_approved(setting: Setting, capsys: Captured) -> None:
    run_id = resting(setting)
    assert main(["approve", run_id, "audio"]) == 5
    assert "audio is completed" in capsys.readouterr().err


def test_a_finished_run_cannot_be_cancelled_but_a_cancelled_one_again(setting: Setting, capsys: Captured) -> None:
    for status, code in ((RunStatus.COMPLETED, 5), (RunStatus.CANCELLED, 0)):
        plan = PLAN.model_copy(update={"nodes": PLAN.nodes[:1], "outputs": None})
        record: RunRecord = record_of(plan)
        setting.store.create(record, plan, bundle=None)
        claimed = setting.store.claim(record.run_id, setting.identity)
        if status is RunStatus.COMPLETED:
            finish_node(setting, claimed, "audio", {})
        else:
            setting.accept(claimed, started=True, nodes=(moved(claimed.nodes[0], Status.CANCELLED),))
        counted = {"completed": 0, "cancelled": 0, "failed": 0, "resting": 0, "pending": 0, "running": 0, "skipped": 0}
        counted[status.value] = 1
        setting.accept(claimed, status=status, summary=Summary(status=status, counts=counted), release=True)
        assert main(["cancel", record.run_id]) == code


class FinishesMeanwhile(Reader):
    """A reader whose run is finished by somebody between two looks."""

    def __init__(self, setting: Setting, finish: Callable[[], object]) -> None:
        real = Reader.open(setting.home)
        super().__init__(setting.home, real._connection)
        self._finish: Callable[[], object] | None = finish

    def nodes(self, run_id: str) -> tuple[NodeRecord, ...]:
        nodes = super().nodes(run_id)
        if self._finish is not None:
            finish, self._finish = self._finish, None
            finish()
        return nodes


def test_a_run_and_its_nodes_are_shown_as_of_one_moment(setting: Setting) -> None:
    plan = PLAN.model_copy(update={"nodes": PLAN.nodes[:1], "outputs": None})
    run_id = created(setting, plan)
    claimed = setting.store.claim(run_id, setting.identity)

    def finish() -> None:
        finish_node(setting, claimed, "audio", {})
        counted = dict.fromkeys(("cancelled", "failed", "pending", "resting", "running", "skipped"), 0)
        summary = Summary(status=RunStatus.COMPLETED, counts={**counted, "completed": 1})
        setting.accept(claimed, status=RunStatus.COMPLETED, summary=summary, release=True)

    with FinishesMeanwhile(setting, finish) as reader:
        run, _, nodes = whole(reader, run_id)
    assert run.status is RunStatus.COMPLETED
    assert [node.status for node in nodes] == [Status.COMPLETED]
