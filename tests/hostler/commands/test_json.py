"""What `--json` prints: every object names the version of its format, and is what the shipped schema says."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hostler.__main__ import main
from hostler.commands import COMMANDS, posting
from hostler.json_format import FIELD, FORMAT_VERSION
from hostler.output_schemas import FOLDER, commands, file_of
from hostres.coordinator import Coordinator
from hostres.folders import machine_folder
from scripts.output_shapes import SHAPES, schema_of
from store.lifecycle import RunStatus, Status
from store.plans import ComputeExecutor, GraphPlan
from tests.end_to_end.support import command, gate, graph, hostler
from tests.hostler.views.support import planned
from tests.store.support import STAMP, Setting, moved, node_plan, record_of

WITHOUT_JSON = {"completion", "exec", "serve"}
"""They print no data: a script, what a command prints, a log."""

EXTERNAL = {"key": "review", "executor": {"agent": {"objective": "look"}}}


def closed(schema: Any) -> Any:
    """A schema that lets no further field pass: here nothing may be printed that it does not know."""
    match schema:
        case dict():
            shut = {name: closed(value) for name, value in schema.items()}
            is_object = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
            return {**shut, "additionalProperties": False} if is_object else shut
        case list():
            return [closed(each) for each in schema]
        case _:
            return schema


class Judge:
    """Runs commands, and holds what they print against their schemas."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.seen: set[str] = set()

    def __call__(self, name: str, *arguments: str, code: int = 0) -> Any:
        """Run the command of that name, with its action, and return the last object that it printed."""
        self._capsys.readouterr()
        found = main([*name.split(), *arguments, "--json"])
        printed = self._capsys.readouterr()
        assert found == code, printed.err
        return self.hold(name, printed.out)

    def hold(self, name: str, text: str) -> Any:
        """Hold what a command has printed against its schema, and return the last object."""
        schema = json.loads((FOLDER / file_of(name)).read_text(encoding="utf-8"))
        try:
            objects = [json.loads(text)]
        except ValueError:
            objects = [json.loads(line) for line in text.splitlines()]
        assert objects
        for each in objects:
            assert next(iter(each)) == FIELD
            assert each[FIELD] == FORMAT_VERSION
            Draft202012Validator(closed(schema)).validate(each)
            assert not Draft202012Validator(schema).is_valid({**each, FIELD: FORMAT_VERSION + 1})
            Draft202012Validator(schema).validate({**each, "added-later": 1})
        self.seen.add(name)
        return objects[-1]


def a_run_from_its_plan_to_its_archive(judge: Judge, folder: Path) -> None:
    workflow = graph(
        folder,
        command("made", "sh", "-c", "echo out; echo err >&2", claims={"cpu": 1}, retry={"attempts": 2}),
        gate("publication", after=("made",)),
        {**command("sent", "true", after=("publication",)), "budget": {"cost": "1.5", "tokens": 10}},
    )
    judge("plan", workflow)
    run_id = judge("run", workflow, code=3)["run_id"]
    assert judge("show", "-")["waiting_on"][0]["node"] == "publication"
    judge("runs")
    judge("why", "-")
    judge("why", "-", "sent")
    judge("events", "-")
    judge("logs", "-", "made")
    judge("logs", "-", "made", "--follow")
    judge("logs", "-", "made", "--stream", "error")
    judge("budget", "-")
    judge("budget", "-", "sent", "--add", "cost=1")
    plan = judge("approve", "-", code=3)["waiting_on"][0]["plan_sha256"]
    judge("receipt create", "-", "publication", "--for", "agent:night", "--plan", plan, "--id", "one")
    judge("receipt list", "-")
    judge("receipt revoke", "-", "one")
    judge("receipt list", "-")
    judge("approve", "-", "publication", "--plan", plan)
    assert judge("resume", "-")["status"] == "completed"
    judge("watch", "-")
    judge("timeline", "-", "-o", "run.svg")
    judge("verify", "-")
    judge("verify", "--all")
    judge("export", "-", "run.tar")
    judge("verify", "./run.tar")
    assert not judge("import", "run.tar")["new"]
    other = judge("submit", workflow)["run_id"]
    judge("cancel", other, "--node", "sent")
    judge("cancel", other)
    judge("show", other)
    judge.hold("run", hostler("run", workflow, "--detach", "--json"))
    judge("watch", "-", code=3)
    judge("gc", "--older-than", "0s", "--dry-run")
    assert {*judge("gc", "--older-than", "0s")["runs"]} == {run_id, other}


def what_went_wrong_and_what_people_do_about_it(judge: Judge, folder: Path) -> None:
    bad = graph(folder, command("bad", "false"), command("after", "true", after=("bad",)))
    judge("run", bad, code=1)
    judge("retry", "-", "bad")
    judge("resume", "-", code=1)
    given = folder / "input.json"
    given.write_text('{"argv": ["true"]}', encoding="utf-8")
    judge("correct", "-", "bad", "--input", str(given))
    judge("resume", "-")
    judge("show", "-")


def resting(setting: Setting, status: Status) -> str:
    """A run whose only node has that status."""
    executor = ComputeExecutor(compute="count") if status is Status.AMBIGUOUS_CODE else None
    plan = GraphPlan(workflow="test", version=1, inputs={}, nodes=(planned("one", executor),), outputs=None)
    record = record_of(plan)
    setting.store.create(record, plan, bundle=None)
    claimed = setting.store.claim(record.run_id, setting.identity)
    frozen = node_plan(record.run_id, "one", {})
    running = moved(claimed.nodes[0], Status.RUNNING, attempt=1, started_at=STAMP.at, plan_sha256=frozen.sha256)
    setting.accept(claimed, started=True, plans=(frozen,), nodes=(running,))
    if status is not Status.RUNNING:
        setting.accept(claimed, nodes=(moved(running, status),), status=RunStatus(status.value), release=True)
    return record.run_id


def what_was_interrupted(judge: Judge, _folder: Path) -> None:
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    try:
        judge("settle", resting(setting, Status.AMBIGUOUS), "one", "--failed")
        judge("recover", resting(setting, Status.RUNNING), "one")
        judge("replay", resting(setting, Status.AMBIGUOUS_CODE), "one")
    finally:
        setting.close()


def work_for_workers(judge: Judge, folder: Path) -> None:
    judge("submit", graph(folder, EXTERNAL))
    key = judge("work next", "--worker", "ann")["idempotency_key"]
    judge("work beat", key)
    judge("work give-back", key)
    key = judge("work next", "--worker", "bob", "--run", "-")["idempotency_key"]
    judge("show", "-")
    result = folder / "result.json"
    result.write_text('{"status": "success", "usage": {"tokens": 1}}', encoding="utf-8")
    judge("work submit", key, "--result", str(result))


def the_machine_the_service_and_the_installation(judge: Judge, _folder: Path) -> None:
    judge("top")
    judge("machine show")
    judge("machine set", "ffmpeg=3")
    with Coordinator(machine_folder(os.environ)) as coordinator:
        lease = coordinator.lease({"ffmpeg": 1, "cpu": 1}, name="one")
        judge("top")
        ticket = judge("top")["tickets"][0]["ticket"]
        judge("machine revoke", str(ticket))
        judge("top")
        lease.release()
    for manager in ("systemd", "supervisord"):
        judge("service install", "--manager", manager)
        judge("service status", "--manager", manager, code=3)
        judge("service uninstall", "--manager", manager)
    judge("schema")
    with subprocess.Popen(
        [sys.executable, "-m", "hostler", "ui", "--no-browser", "--json"], stdout=subprocess.PIPE, text=True
    ) as dashboard:
        assert dashboard.stdout is not None
        judge.hold("ui", dashboard.stdout.readline())
        dashboard.send_signal(signal.SIGINT)
    judge("doctor", code=main(["doctor"]))


STORIES = (
    a_run_from_its_plan_to_its_archive,
    what_went_wrong_and_what_people_do_about_it,
    what_was_interrupted,
    work_for_workers,
    the_machine_the_service_and_the_installation,
)


def test_every_command_prints_what_its_schema_says_and_nothing_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "ANSWER_S", 0.0)  # some runs here have an owner that does not listen
    judge = Judge(capsys)
    for story in STORIES:
        folder = tmp_path / story.__name__
        folder.mkdir()
        monkeypatch.chdir(folder)
        for variable in ("HOSTLER_HOME", "HOME", "XDG_CONFIG_HOME"):
            monkeypatch.setenv(variable, str(folder / variable.lower()))
        story(judge, folder)
    assert {file_of(name) for name in judge.seen} == {f"{name}.json" for name in commands()}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shipped_schema_is_what_its_types_say(name: str) -> None:
    """If not: scripts/write-tables."""
    stored = json.loads((FOLDER / file_of(name)).read_text(encoding="utf-8"))
    assert stored == schema_of(name)
    Draft202012Validator.check_schema(stored)


def test_every_command_has_a_schema_and_no_other() -> None:
    assert set(commands()) == {file_of(name).removesuffix(".json") for name in SHAPES}
    assert {name.split()[0] for name in SHAPES} == COMMANDS.keys() - WITHOUT_JSON


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def test_schemas_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "schema", "receipt", "list")) == schema_of("receipt list")
    assert printed(capsys, "schema", "receipt-list") == printed(capsys, "schema", "receipt", "list")
    assert "show" in printed(capsys, "schema").split()
    assert main(["schema", "shwo"]) == 4
    assert "did you mean show?" in capsys.readouterr().err
    assert main(["schema", "receipt"]) == 4
    assert "receipt-create" in capsys.readouterr().err


def test_json_is_named_in_the_help_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    for name in SHAPES:
        with pytest.raises(SystemExit):
            main([*name.split(), "--help"])
        assert re.search(r"--json\b", capsys.readouterr().out), name


def test_the_page_names_the_fields_that_the_schemas_have() -> None:
    page = (Path(__file__).parent.parent.parent.parent / "docs" / "json.md").read_text(encoding="utf-8")
    for names, fields in re.findall(r"^\| (`.+?`) \| (`.+`.*?) \|$", page, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            schema = schema_of(name)
            known = schema.get("properties") or schema["$defs"]["Run"]["properties"]
            assert {*re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", fields))} == known.keys() - {FIELD}, name
