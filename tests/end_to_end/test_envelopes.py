"""What a node's authority keeps it from, where it happens: a program started, a file published."""

from pathlib import Path
from typing import Any

import pytest

from hostler.__main__ import main
from tests.end_to_end.support import command, graph, shown

FLOW = """
from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Given(BaseModel):
    program: str
    target: str


def work(ctx, input):
    if input.program:
        ctx.run([input.program, "a"])
    if input.target:
        (ctx.workspace / "x").write_text("x")
        ctx.publish("x", input.target)


@operation("test.inside", version=1, policy=Policy(effect="local-derived-write"))
def inside(ctx, input: Given) -> Given:
    work(ctx, input)
    return input


@operation("test.apart", version=1, policy=Policy(effect="local-derived-write", isolation="process"))
def apart(ctx, input: Given) -> Given:
    work(ctx, input)
    return input


@operation("test.told", version=1, policy=Policy(effect="local-derived-write", publishes=("target",)))
def told(ctx, input: Given) -> Given:
    work(ctx, input)
    return input


@workflow("bounded", version=1)
def bounded(build, which: str, program: str, target: str):
    own = {"actions": ["local-derived-write"], "paths": ["own", "linked"], "commands": ["touch"]}
    build.call({"inside": inside, "apart": apart, "told": told}[which], key="a",
               input={"program": program, "target": target}, terms={"authority": own})
"""


def ended(folder: Path, **inputs: str) -> tuple[int, str]:
    """Run the workflow in *folder*; return its exit code, and why its node failed."""
    path = folder / "bounded.py"
    path.write_text(FLOW, encoding="utf-8")
    given: list[str] = []
    for name in ("which", "program", "target"):
        given += ["-i", f"{name}={inputs.get(name, '')}"]
    code = main(["run", str(path), *given])
    (node,) = shown()["nodes"]
    failure: dict[str, Any] = node.get("failure") or {}
    return code, f"{failure.get('code')}: {failure.get('message')}" if failure else ""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("which", ["inside", "apart"])
def test_only_named_programs_are_started(here: Path, which: str) -> None:
    assert ended(here, which=which, program="touch") == (0, "")
    refused = (1, "authorization-required: its authority does not name the command mkdir")
    assert ended(here, which=which, program="mkdir") == refused


@pytest.mark.parametrize("which", ["inside", "apart", "told"])
def test_only_owned_files_are_published_wherever_links_lead(here: Path, which: str) -> None:
    outside = here / "outside"
    outside.mkdir()
    (here / "linked").mkdir()
    (here / "linked" / "out").symlink_to(outside)
    assert ended(here, which=which, target="own/deep/x") == (0, "")
    assert (here / "own" / "deep" / "x").read_text() == "x"
    for target in ("outside/x", "own/../outside/x", "linked/out/x", "ownother/x"):
        code, why = ended(here, which=which, target=target)
        assert (code, why.startswith("authorization-required: its authority does not own the path ")) == (1, True)
    assert list(outside.iterdir()) == []


def test_a_graph_file_says_what_a_node_may_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = {"actions": ["command"], "commands": ["true"]}
    assert main(["run", graph(here, {**command("a", "true"), "authority": own})]) == 0
    assert main(["plan", graph(here, {**command("a", "false"), "authority": own})]) == 2
    assert "node a: its authority does not name the command false" in capsys.readouterr().err
