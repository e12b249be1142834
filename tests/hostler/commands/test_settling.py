"""`hostler settle --completed`: what a node is said to have given is what it could have given."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler import Host
from hostler.__main__ import main
from hostler.compiler import Compiled, compile_workflow
from hostler.loading import load
from store.lifecycle import RunStatus, Status
from tests.end_to_end.support import command, graph, shown
from tests.hostler.host_support import reader
from tests.store.support import STAMP, Setting, moved, record_of
from tests.support import until

Captured = pytest.CaptureFixture[str]

FLOW = """
from pydantic import BaseModel, field_validator
from hostler import Policy, operation, workflow

class Empty(BaseModel):
    pass

class Part(BaseModel):
    cents: int

class Paid(BaseModel):
    parts: list[Part]
    when: str = "today"

    @field_validator("when")
    @classmethod
    def known(cls, when):
        return {"today": "today", "now": "today"}[when]

@operation("demo.pay", policy=Policy(
    effect="project-mutation", resume="ambiguous-after-dispatch", max_output_bytes=1024))
def pay(ctx, input: Empty) -> Paid:
    raise AssertionError("it is not made again")

@workflow("demo")
def flow(build):
    return build.call(pay, key="pay", input={})
"""


@pytest.fixture
def setting() -> Iterator[Setting]:
    found = Setting(Path(os.environ["HOSTLER_HOME"]))
    yield found
    found.close()


def compiled(folder: Path, name: str) -> Compiled:
    return compile_workflow(load(name, folder=folder), {}, folder=folder)


def interrupted(setting: Setting, found: Compiled) -> str:
    """A run of one node, of which nobody knows what it did."""
    record = record_of(
        found.plan, bundle=found.bundle, bundle_sha256=found.bundle_sha256, source=found.source, folder=found.folder
    )
    setting.store.create(record, found.plan, bundle=found.bundle)
    claimed = setting.store.claim(record.run_id, setting.identity)
    running = moved(claimed.nodes[0], Status.RUNNING, attempt=1, started_at=STAMP.at)
    setting.accept(claimed, started=True, nodes=(running,))
    setting.accept(claimed, nodes=(moved(running, Status.AMBIGUOUS),), status=RunStatus.AMBIGUOUS, release=True)
    return record.run_id


@pytest.fixture
def paying(setting: Setting, tmp_path: Path) -> str:
    """A run that was interrupted in an operation of its own file, which has been changed since."""
    (tmp_path / "flow.py").write_text(FLOW)
    run_id = interrupted(setting, compiled(tmp_path, "flow.py"))
    (tmp_path / "flow.py").write_text("")
    return run_id


def settled(capsys: Captured, folder: Path, node: str, value: Any, *, code: int) -> str:
    """Settle and return what stands on standard error."""
    file = folder / "result.json"
    file.write_text(json.dumps(value))
    capsys.readouterr()
    assert main(["settle", "-", node, "--completed", str(file)]) == code, capsys.readouterr().err
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "parts is missing"),
        ({"parts": [{"cents": 1}, {"cents": "many"}]}, "parts[1].cents is not a whole number"),
        ("paid", "it is not an object"),
        ({"parts": [], "when": "never"}, "KeyError: 'never'"),
        ({"parts": [{"cents": 1}] * 100}, "result too large: 1226 bytes, limit 1024"),
    ],
    ids=["missing", "inside", "text", "validator", "large"],
)
def test_what_an_operation_cannot_have_given_is_refused_and_leaves_it_as_it_is(
    paying: str, tmp_path: Path, capsys: Captured, value: Any, says: str
) -> None:
    """By the model of its output as it was stored with the run."""
    error = settled(capsys, tmp_path, "pay", value, code=2)
    assert error.startswith(f"hostler: error[invalid-data]: node pay cannot have given that: {says}; ")
    assert error.count("\n") == 1
    assert [node["status"] for node in shown(paying)["nodes"]] == ["ambiguous"]


def test_what_it_can_have_given_is_stored_as_its_model_gives_it(paying: str, tmp_path: Path, capsys: Captured) -> None:
    """With what was left out, as where the operation itself gives it."""
    assert settled(capsys, tmp_path, "pay", {"parts": [{"cents": 1}], "when": "now", "more": 1}, code=0) == ""
    assert main(["resume", paying]) == 0
    assert shown(paying)["outputs"] == {"parts": [{"cents": 1}], "when": "today"}


def test_a_program_gives_what_every_program_does(setting: Setting, tmp_path: Path, capsys: Captured) -> None:
    """Its exit code, and the files that it was to leave."""
    interrupted(setting, compiled(tmp_path, graph(tmp_path, command("make", "true", outputs={"made": "made.txt"}))))
    file = {"path": "made.txt", "bytes": 0, "sha256": "0" * 64}
    error = settled(capsys, tmp_path, "make", {"exit_code": "0", "outputs": {"made": file}}, code=2)
    assert "node make cannot have given that: exit_code: '0' is not of type 'integer'; " in error
    for wrong in (
        {},
        {"exit_code": 0},
        {"exit_code": 1, "outputs": {"made": file}},
        {"exit_code": 0, "outputs": {}},
        {"exit_code": 0, "outputs": {"maid": file}},
        {"exit_code": 0, "outputs": {"made": file | {"bytes": -1}}},
        {"exit_code": 0, "outputs": {"made": file | {"sha256": "zz"}}},
    ):
        assert "node make cannot have given that: " in settled(capsys, tmp_path, "make", wrong, code=2), wrong
    assert settled(capsys, tmp_path, "make", {"exit_code": 0, "outputs": {"made": file}}, code=0) == ""


def test_without_the_code_it_is_a_persons_word_and_that_is_said(
    setting: Setting, tmp_path: Path, capsys: Captured
) -> None:
    """An operation that is installed no more: what was paid is known all the same."""
    (tmp_path / "flow.py").write_text(FLOW)
    found = compiled(tmp_path, "flow.py")
    nodes = tuple(
        node.model_copy(update={"executor": node.executor.model_copy(update={"operation": "demo.gone"})})
        for node in found.plan.nodes
    )
    plan = found.plan.model_copy(update={"nodes": nodes})
    run_id = interrupted(setting, Compiled(plan=plan, plan_sha256="", folder=found.folder))
    error = settled(capsys, tmp_path, "pay", {"any": 1}, code=0)
    missing = "operation demo.gone@1 (not installed)"
    assert error == f"hostler: warning: what pay is said to have given is kept unchecked, without {missing}\n"
    assert [node["status"] for node in shown(run_id)["nodes"]] == ["completed"]


def test_why_says_the_three_ways_of_settling_it(paying: str, capsys: Captured) -> None:
    """Of the run as of its node, one a line."""
    for words in (["why", "-"], ["why", "-", "pay"]):
        assert main(words) == 0
        _, *lines = capsys.readouterr().out.splitlines()
        settle = f"hostler settle {paying} pay"
        assert lines == [f"  {settle} --failed", f"  or: {settle} --retry", f"  or: {settle} --completed FILE"]


def test_a_host_that_is_done_at_once_with_what_was_settled_is_what_is_told_of(capsys, tmp_path):
    """The command took up a run that had ended by then, for nothing, and said that it was to be resumed."""
    file = tmp_path / "flow.py"
    file.write_text(FLOW.replace('raise AssertionError("it is not made again")', "ctx.before_publication(); 1 / 0"))
    with Host() as host:
        run = host.submit(load("flow.py", folder=tmp_path))
        assert run.wait(timeout=60).status is RunStatus.AMBIGUOUS
        assert main(["settle", run.run_id, "pay", "--failed"]) == 0
        assert capsys.readouterr().out.endswith(" goes on with it\n")
        until(lambda: run.left)
        assert run.wait(timeout=60).status is RunStatus.FAILED
    with reader() as store:
        assert [event.kind for event in store.events(run.run_id)].count("run-claimed") == 1
