"""A run that an operation begins, of a workflow beside it: it can be gone on with as any other."""

import sys

import pytest

from hostler import Host, code_space, load
from hostler.config import Config
from hostler.stored_code import code_of
from store.home import Home
from store.lifecycle import Status
from tests.hostler.host_support import reader

FLOW = """
from hostler import Host, Policy, compute, operation, workflow
from {parts} import Number, beside
@compute
def double(input: int) -> int:
    return 2 * input
@workflow("inner")
def inner(build, n: int):
    return {{"n": build.call(double, key="double", input=n)}}
@operation("runs.planner", policy=Policy(isolation="{isolation}"))
def planner(ctx, input: Number) -> Number:
    with Host() as host:
        runs = [host.submit(each, n=input.n, submission_key=each.id) for each in (inner, beside)]
        return Number(n=sum(run.wait(timeout=60).outputs["n"] for run in runs))
@workflow("outer")
def outer(build):
    return {{"n": build.call(planner, key="planner", input={{"n": 3}})["n"]}}
"""
PARTS = """
from pydantic import BaseModel
from hostler import compute, workflow
class Number(BaseModel):
    n: int
@compute
def triple(input: int) -> int:
    return 3 * input
@workflow("beside")
def beside(build, n: int):
    return {"n": build.call(triple, key="triple", input=n)}
"""


@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize("package", ["", "package."])
def test_an_operation_begins_runs_of_the_workflows_of_its_own_code(isolation, package, tmp_path, monkeypatch):
    """Their source was the private name under which their code was loaded; nobody else could find that."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / package.strip(".")
    folder.mkdir(exist_ok=True)
    if package:
        (folder / "__init__.py").touch()
    (folder / "flow.py").write_text(FLOW.format(parts=f"{package}parts", isolation=isolation))
    (folder / "parts.py").write_text(PARTS)
    with Host() as host:
        run = host.submit(load(f"{package}flow:outer" if package else "flow.py:outer", folder=tmp_path))
        assert run.wait(timeout=60).outputs == {"n": 15}
    with reader() as store:
        begun = {each.workflow: store.run(each.run_id).record for each in store.runs()}
    beside = "package.parts" if package else f"{tmp_path}/parts.py"
    assert begun["inner"].source == f"{beside.replace('parts', 'flow')}:inner"
    assert begun["beside"].source == f"{beside}:beside"
    for name in [each for each in tuple(sys.modules) if each.startswith(code_space.PREFIX)]:
        del sys.modules[name]  # as in another program
    code_space._spaces.clear()
    for record in begun.values():
        found, _, _ = code_of(Home.open(Config.load().home, create=False), record.run_id, frozenset(Status))
        assert not found.lacking
