"""What a node is kept from, by its authority or as all are, where it happens: a program started, a file published."""

import os
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


@pytest.mark.parametrize("which", ["inside", "apart"])
def test_nothing_is_published_among_what_hostler_keeps_wherever_links_lead(here: Path, which: str) -> None:
    """The name of the store would be replaced, and every run with it."""
    home, machine = (Path(os.environ[name]) for name in ("HOSTLER_HOME", "HOSTLER_MACHINE_DIR"))
    (here / "linked").symlink_to(home)
    odd = home / "staging" / f"run_{'0' * 26}" / "a" / ("0" * 64) / "x"  # no node has that workspace
    kept = [home / name / "x" for name in ("staging", "content", "bundles", "hosts", "logs", "new")]
    for target in (home / "runs.db", *kept, odd, machine / "x", Path("linked/reserve")):
        code, why = ended(here, which=which, target=str(target))
        assert (code, why.partition(" lies in ")[0]) == (1, f"conflict: {here / target}")
        assert why.endswith(", which Hostler keeps")
    assert main(["verify", "--all"]) == 0


def test_a_workspace_is_a_place_to_publish_in(here: Path) -> None:
    flow = FLOW.replace('ctx.publish("x", input.target)', 'assert ctx.publish("x", ctx.workspace / "y").is_file()')
    own = flow.replace('terms={"authority": own}', "terms={}")
    (here / "open.py").write_text(own, encoding="utf-8")
    assert main(["run", "open.py", "-i", "which=inside", "-i", "program=", "-i", "target=y"]) == 0


NESTED = """
from pydantic import BaseModel

from hostler import Host, Policy, operation, workflow


class Given(BaseModel):
    target: str


@operation("test.write", version=1, policy=Policy(effect="local-derived-write"{isolation}))
def write(ctx, input: Given) -> Given:
    (ctx.workspace / "x").write_text("x")
    ctx.publish("x", input.target)
    return input


@workflow("inner", version=1)
def inner(build, target: str):
    build.call(write, key="w", input={{"target": target}})


@operation("test.outer", version=1, policy=Policy(effect="local-derived-write"))
def submitting(ctx, input: Given) -> Given:
    with Host() as host:
        assert host.submit(inner, {{"target": input.target}}, folder=ctx.workspace).wait(60).status == "completed"
    assert (ctx.workspace / input.target).read_text() == "x"
    return input


@workflow("outer", version=1)
def outer(build):
    build.call(submitting, key="a/b", input={{"target": "deep/out.txt"}})
"""


@pytest.mark.parametrize("isolation", ["", ', isolation="process"'])
def test_the_nodes_of_a_run_in_a_workspace_publish_there(here: Path, isolation: str) -> None:
    """It lies in the home, and they were told that Hostler keeps it."""
    (here / "nested.py").write_text(NESTED.format(isolation=isolation), encoding="utf-8")
    assert main(["run", "nested.py:outer"]) == 0
    assert main(["verify", "--all"]) == 0


def test_a_graph_file_says_what_a_node_may_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = {"actions": ["command"], "commands": ["true"]}
    assert main(["run", graph(here, {**command("a", "true"), "authority": own})]) == 0
    assert main(["plan", graph(here, {**command("a", "false"), "authority": own})]) == 2
    assert "node a: its authority does not name the command false" in capsys.readouterr().err
