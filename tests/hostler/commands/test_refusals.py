"""What the commands refuse: one line, the right exit code, and nothing left behind."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from hostler.__main__ import main
from tests.end_to_end.support import command, gate, graph
from tests.hostler.pictures.support import parsed, words

Captured = pytest.CaptureFixture[str]

ECHO = command("say", "echo", "hello")


class Cli:
    """The program, called in this process."""

    def __init__(self, capsys: Captured) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        try:
            found = main(arguments)
        except SystemExit as left:
            found = int(left.code or 0)
        out, self.error = self._capsys.readouterr()
        assert found == code, f"{found}: {out}{self.error}"
        return out

    def told(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))

    def refused(self, *arguments: str, code: int) -> str:
        assert self(*arguments, code=code) == ""
        assert re.fullmatch(r"hostler: error\[[a-z-]+\]: .+; .+\n", self.error), self.error
        return self.error


@pytest.fixture
def cli(capsys: Captured) -> Cli:
    return Cli(capsys)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["run"], 2, "WORKFLOW"),
        (["run", "none.py"], 2, "none.py"),
        (["run", "none.toml"], 2, "none.toml"),
        (["run", "no such thing"], 2, "no such thing"),
        (["plan", "none.py", "--format", "gif"], 2, "gif"),
        (["show", "run_0"], 4, "run_0"),
        (["show", "-"], 4, "no run"),
        (["resume", "run_0"], 4, "run_0"),
        *((["ui", f"--port={port}"], 2, "is not a port from 0 to 65535") for port in ("x", "-1", "65536", "")),
        (["nonsense"], 2, "nonsense"),
        (["runs", "--limit", "0"], 2, "from 1 to"),
        (["runs", "--limit", "1000000001"], 2, "from 1 to"),
        (["runs", "--limit", str(2**63 - 1)], 2, "from 1 to"),
        (["runs", "--limit", "9" * 5000], 2, "from 1 to"),
    ],
)
def test_wrong_use_is_one_line_and_its_code(cli: Cli, arguments: list[str], code: int, says: str) -> None:
    assert says in cli.refused(*arguments, code=code)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("syntax.py", "def broken(:\n", "line 1"),
        ("raises.py", "x = 1\n1 / 0\n", "line 2"),
        ("imports.py", "import nothing_of_that_name\n", "line 1"),
        ("empty.py", "", "workflow"),
        ("cut.json", '{"workflow": ', "cut.json"),
        ("twice.json", '{"workflow": 1, "workflow": 2}', "twice"),
        ("cut.toml", "[workflow\n", "cut.toml"),
        ("odd.yaml", "a: [", "odd.yaml"),
        ("text.txt", "hello", "text.txt"),
    ],
)
def test_a_broken_workflow_file_is_one_line_that_names_it(
    cli: Cli, name: str, text: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert says in cli.refused("run", str(path), code=2)
    assert cli("runs") == "no runs\n"


def test_a_bad_input_names_it_and_leaves_no_run(cli: Cli, tmp_path: Path) -> None:
    workflow = graph(tmp_path, ECHO, inputs={"n": {"type": "integer"}})
    assert "needs the input n" in cli.refused("run", workflow, code=2)
    assert "no input m" in cli.refused("run", workflow, "-i", "m=1", code=2)
    assert "input n" in cli.refused("run", workflow, "-i", "n=one", code=2)
    assert "input n" in cli.refused("run", workflow, "-i", 'n="1"', code=2)
    assert cli("runs") == "no runs\n"


def test_plan_runs_nothing_and_makes_nothing(cli: Cli, tmp_path: Path) -> None:
    made = tmp_path / "made"
    workflow = graph(tmp_path, command("make", "touch", str(made), claims={"cpu": 2}), gate("ok", after=("make",)))
    shape = cli.told("plan", workflow)
    assert shape["claims"] == {"cpu": 2}
    assert shape["approvals"] == ["ok"]
    assert shape["plan_sha256"] in cli("plan", workflow)
    assert cli("plan", workflow, "--format", "mermaid").startswith("flowchart")
    assert {"make", "ok", "gate:publication", "asks a person"} <= {
        *words(parsed(cli("plan", workflow, "--format", "svg")))
    }
    assert not made.exists()
    assert not Path(os.environ["HOSTLER_HOME"]).exists()
    assert not Path(os.environ["HOSTLER_MACHINE_DIR"]).exists()
    assert cli.told("run", workflow, code=3)["plan_sha256"] == shape["plan_sha256"], "the hash is that of the run"


def test_claims_that_the_machine_never_has_are_warned_of_and_the_rest_runs(cli: Cli, tmp_path: Path) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\nffmpeg = 3\n", encoding="utf-8")
    workflow = graph(
        tmp_path,
        command("big", "true", claims={"ffmpeg": 4}),
        command("fits", "true", claims={"ffmpeg": 3}),
        command("strange", "true", claims={"oven": 1}),
    )
    assert "claims of one node at most: ffmpeg=4 oven=1" in cli("plan", workflow)
    big, strange = cli.error.splitlines()
    assert big.startswith("hostler: warning: node big can never run here: ffmpeg=4 is more than the machine's 3; ")
    assert strange.startswith("hostler: warning: node strange can never run here: the machine has no resource oven; ")
    assert not Path(os.environ["HOSTLER_MACHINE_DIR"]).exists(), "looking makes nothing"
    shape = cli.told("run", workflow, code=1)
    assert cli.error.splitlines() == [big, strange]
    assert {node["key"]: node["status"] for node in shape["nodes"]} == {
        "big": "incompatible", "fits": "completed", "strange": "incompatible",
    }  # fmt: skip


def test_many_nodes_that_can_never_run_are_few_lines(cli: Cli, tmp_path: Path) -> None:
    cli("plan", graph(tmp_path, *(command(f"n{number}", "true", claims={"oven": 1}) for number in range(9))))
    assert cli.error.splitlines()[5:] == ["hostler: warning: 4 more nodes can never run here"]


@pytest.mark.parametrize("command_line", [["runs"], ["show", "-"], ["run", "WORKFLOW"], ["doctor"]])
def test_an_open_state_folder_is_refused_with_its_mend(cli: Cli, command_line: list[str], tmp_path: Path) -> None:
    workflow = graph(tmp_path, ECHO)
    cli("run", workflow)
    home = Path(os.environ["HOSTLER_HOME"])
    home.chmod(0o755)
    home.parent.chmod(0o755)  # so that what lies in it counts
    arguments = [workflow if argument == "WORKFLOW" else argument for argument in command_line]
    said = cli(*arguments, code=73) + cli.error
    assert "unsafe-state" in said
    assert f"chmod 700 {home}" in said


def test_a_link_inside_the_state_folder_is_refused(cli: Cli, tmp_path: Path) -> None:
    workflow = graph(tmp_path, ECHO)
    cli("run", workflow)
    home = Path(os.environ["HOSTLER_HOME"])
    (home / "logs").rename(tmp_path / "elsewhere")
    (home / "logs").symlink_to(tmp_path / "elsewhere")
    for arguments in (["runs"], ["run", workflow]):
        assert f"{home / 'logs'} is a symbolic link" in cli.refused(*arguments, code=73)


def test_a_wrong_configuration_hinders_nobody_who_only_looks(cli: Cli, tmp_path: Path) -> None:
    cli("run", graph(tmp_path, ECHO))
    (node,) = cli.told("show", "-")["nodes"]
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[retention]\nkeep = -1\n", encoding="utf-8")
    looks = ["runs", "show -", "events -", f"logs - {node['key']}", "why -", "verify -", "budget -", "receipt list -"]
    for line in [*looks, f"export - {tmp_path}/x.tar"]:
        cli(*line.split())
    for line in ("resume -", "cancel -", f"retry - {node['key']}", "gc"):
        assert "retention" in cli.refused(*line.split(), code=2), line


def test_doctor_names_a_broken_configuration_and_still_looks_at_the_rest(cli: Cli) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machin]\n", encoding="utf-8")
    said = {finding["name"]: finding for finding in cli.told("doctor", code=2)["findings"]}
    assert said["configuration"]["state"] == "wrong"
    assert said["home"]["state"] == "ok"


def test_doctor_shows_paths_without_detours(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOSTLER_HOME", "HOSTLER_MACHINE_DIR", "HOSTLER_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "a" / ".." / name))
    said = {finding["name"]: finding["said"] for finding in cli.told("doctor")["findings"]}
    for found, name in (("home", "HOME"), ("machine", "MACHINE_DIR"), ("configuration", "CONFIG")):
        assert said[found].startswith(f"{tmp_path}/HOSTLER_{name} ")


def test_a_detached_process_that_does_not_begin_is_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostler.commands.detaching.sys.executable", "/bin/false")
    error = cli.refused("run", graph(tmp_path, ECHO), "--detach", code=69)
    (run,) = cli.told("runs")["runs"]
    assert run["status"] == "planned", "it is stored and can be resumed"
    assert f"hostler resume {run['run_id']}" in error


@pytest.mark.parametrize("words", ["correct - one --input", "settle - one --completed"])
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "not JSON: "),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b"[" * 5000, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "$.a: a duplicate key"),
        (b" " * ((16 << 20) + 1), "has more than 16,777,216 bytes"),
        (None, "cannot be read: No such file or directory"),
        ("folder", "is not a regular file"),
    ],
    ids=["cut", "latin", "deep", "twice", "large", "missing", "folder"],
)
def test_a_file_that_holds_no_value_is_named(
    cli: Cli, words: str, data: bytes | str | None, says: str, tmp_path: Path
) -> None:
    """Before anything is looked up."""
    file = tmp_path / "value.json"
    if isinstance(data, bytes):
        file.write_bytes(data)
    elif data is not None:
        file.mkdir()
    error = cli.refused(*words.split(), str(file), code=2)
    assert error.startswith(f"hostler: error[invalid-data]: {file}")
    assert says in error


def test_who_ends_the_input_at_the_question_of_settle_has_settled_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-D."""

    def ended(_question: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", ended)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["settle", "-", "send"]) == 2
    assert "nothing was settled; it still rests" in capsys.readouterr().err
