"""A secret is in no file of the store and on no screen, whatever a node does with it."""

import os
from pathlib import Path

import pytest

from hostler.__main__ import main
from tests.end_to_end.support import command, graph, shown

VALUE = "correct-horse-battery"
TOKEN = "ghp_" + "a1B2" * 9
LEAK = """
import os, sys
from pathlib import Path
from pydantic import BaseModel
from hostler import OperationFailed, Policy, operation, workflow


class Given(BaseModel):
    how: str


class Text(BaseModel):
    text: str


@operation("test.leak", version=1, policy=Policy(effect="local-read"))
def leak(ctx, input: Given) -> Text:
    secret = os.environ["LEAKED"]
    ctx.progress(0.5, f"with {secret}")
    if input.how == "fail":
        raise OperationFailed("unavailable", f"no answer to {secret}", "try again")
    if input.how == "raise":
        raise ValueError(secret)
    return Text(text=f"it is {secret}")


@workflow("leaking", version=1)
def leaking(build, how: str):
    return build.call(leak, key="leak", input={"how": how})
"""


DECEIVING = """
from typing import Any
from pydantic import BaseModel
from hostler import Policy, operation, workflow


class Out(BaseModel):
    value: Any = None


@operation("test.deceiving", version=1, policy=Policy(effect="pure"))
def deceiving(ctx, input: Out) -> Out:
    return Out(value={"$secret": "NOT_FOR_NODES"})


@workflow("deceiving", version=1)
def deceived(build):
    given = build.call(deceiving, key="give")["value"]
    build.command(["sh", "-c", "env"], key="env", env={"TITLE": given})
    build.command(["echo", given], key="argv")
    build.command(["cat"], key="stdin", stdin=given)
    build.agent("work", key="agent", argv=["env"], env={"TITLE": given})
"""


def everything(folder: Path) -> bytes:
    """Return the bytes of all files below a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("secret", [VALUE, TOKEN])
def test_a_secret_variable_reaches_the_program_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], secret: str
) -> None:
    """Neither arguments, store, logs, failure nor JSON hold it: it is a reference until the program starts."""
    monkeypatch.setenv("OPENAI_KEY", secret)
    script = 'echo "key $KEY"; echo "$KEY" >&2; test "$KEY" = "$(cat ' + str(tmp_path / "expected") + ')" && exit 7'
    (tmp_path / "expected").write_text(secret, encoding="utf-8")
    node = command("call", "sh", "-c", script, env={"KEY": {"$secret": "OPENAI_KEY"}})
    assert main(["run", graph(tmp_path, node)]) == 1
    (failed,) = shown()["nodes"]
    assert failed["failure"]["message"] == "sh ended with exit code 7: [secret]", "it had the right value"
    for look in (["show", "-", "--json"], ["logs", "-", "call"], ["events", "-", "--json"], ["why", "-"]):
        main(look)
    said = capsys.readouterr()
    assert secret not in said.out + said.err
    assert "key [secret]" in said.out
    assert secret.encode() not in everything(tmp_path / "home")


@pytest.mark.parametrize("how", ["return", "fail", "raise"])
def test_what_an_operation_says_of_a_marked_variable_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    monkeypatch.setenv("LEAKED", VALUE)
    monkeypatch.setenv("HOSTLER_SECRETS", "LEAKED")
    path = tmp_path / "leaking.py"
    path.write_text(LEAK, encoding="utf-8")
    assert main(["run", str(path), "-i", f"how={how}"]) == (0 if how == "return" else 1)
    main(["show", "-", "--json"])
    main(["logs", "-", "leak"])
    said = capsys.readouterr()
    assert VALUE not in said.out + said.err
    assert "[secret]" in said.out
    assert VALUE.encode() not in everything(tmp_path / "home")
    assert main(["verify", "-"]) == 0


def test_a_secret_in_a_plan_is_refused_before_anything_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Field case 98: never in arguments or the store."""
    for node in (command("call", "curl", "-H", f"Bearer {TOKEN}"), command("call", "true", env={"K": TOKEN})):
        assert main(["run", graph(tmp_path, node)]) == 2
        error = capsys.readouterr().err
        assert "node call of workflow test holds a secret" in error
        assert TOKEN not in error
    in_argv = command("call", "echo", {"$secret": "HOME"})
    assert main(["run", graph(tmp_path, in_argv)]) == 2, "a secret is for the environment only"
    assert TOKEN.encode() not in everything(tmp_path / "home") if (tmp_path / "home").exists() else True


def test_a_secret_that_the_host_does_not_have_is_named(tmp_path: Path) -> None:
    assert "NO_SUCH_SECRET" not in os.environ
    node = command("call", "true", env={"KEY": {"$secret": "NO_SUCH_SECRET"}})
    assert main(["run", graph(tmp_path, node)]) == 1
    (failed,) = shown()["nodes"]
    assert failed["failure"]["code"] == "unavailable"
    assert "has no variable NO_SUCH_SECRET" in failed["failure"]["message"]


def test_a_reason_is_masked_too(tmp_path: Path) -> None:
    assert main(["run", graph(tmp_path, {"key": "ok", "executor": {"gate": "merge"}})]) == 3
    plan = shown()["waiting_on"][0]["plan_sha256"]
    assert main(["approve", "-", "ok", "--plan", plan, "--reason", f"with {TOKEN}"]) == 0
    assert TOKEN.encode() not in everything(tmp_path / "home")


def test_no_output_of_a_node_makes_the_host_read_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which variables are handed on is the word of who wrote the plan, not of an agent or another node."""
    monkeypatch.setenv("NOT_FOR_NODES", VALUE)
    path = tmp_path / "deceiving.py"
    path.write_text(DECEIVING, encoding="utf-8")
    assert main(["run", str(path)]) == 1
    failures = {node["key"]: node["failure"] for node in shown()["nodes"] if node["key"] != "give"}
    assert {each["code"] for each in failures.values()} == {"invalid-data"}
    assert failures["env"]["message"] == "env.TITLE is an object, not text or a number"
    assert failures["argv"]["message"] == "argv[1] is an object, not text or a number"
    assert failures["stdin"]["message"] == "stdin is an object, not text"
    assert failures["agent"]["message"] == "env.TITLE is an object, not text or a number"
    main(["logs", "-", "env"])
    assert VALUE not in capsys.readouterr().out


def test_a_correction_may_name_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's word counts as that of who wrote the plan."""
    monkeypatch.setenv("FOR_THE_NODE", VALUE)
    node = command("call", "sh", "-c", f'test "$KEY" = {VALUE[:7]}"{VALUE[7:]}"', env={"KEY": "x"})
    assert main(["run", graph(tmp_path, node)]) == 1
    corrected = tmp_path / "input.json"
    corrected.write_text('{"env": {"KEY": {"$secret": "FOR_THE_NODE"}}}', encoding="utf-8")
    assert main(["correct", "-", "call", "--input", str(corrected)]) == 0
    assert main(["resume", "-"]) == 0
