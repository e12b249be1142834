"""The code a stored run goes on with: what still matches, from where, and what is named when it does not."""

import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from actors.operations import Compute, Operation
from hostler.authoring import operation
from hostler.compiler import Compiled, compile_workflow
from hostler.loading import code_for_run, load
from hostler.registry import GROUP, Registry
from hostres.errors import Code, HostlerError
from store.contracts import RunRecord
from store.policy import Policy

RUN = "run_" + "0" * 26
FLOW = """
from pydantic import BaseModel
from hostler.authoring import compute, operation, workflow
from hostler.operations.files import publish
from store.policy import Policy
import helper
class Value(BaseModel):
    x: int
@operation("demo.add", policy=Policy(max_seconds=10))
def add(ctx, input: Value) -> Value:
    return Value(x=input.x + helper.FACTOR)
@compute()
def double(input):
    return (input * 2, helper.FACTOR, __file__)
@workflow("demo")
def flow(build):
    a = build.call(add, key="a", input={"x": 1})
    b = build.call(double, key="b", input=a["x"])
    return build.call(publish, key="c", input={"source": "s", "target": "t"}, after=[b])
"""
HELPER = "FACTOR = 10\n"


class Thing(BaseModel):
    name: str


def lay_out(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


class Stored:
    """A run as the store would give it back."""

    def __init__(self, made: Compiled) -> None:
        self.made = made
        self.bundles = {made.bundle_sha256: made.bundle}
        self.record = RunRecord(
            run_id=RUN,
            workflow=made.plan.workflow,
            workflow_version=made.plan.version,
            plan_sha256=made.plan_sha256,
            bundle_sha256=made.bundle_sha256,
            folder=made.folder,
            source=made.source,
            created_at="2026-01-01T00:00:00.000Z",
            principal="user:test",
        )

    def code(self, scratch: Path, **options: Any) -> tuple[dict[tuple[str, int], Operation], dict[str, Compute]]:
        return code_for_run(self.record, self.made.plan, self.read, scratch, **options)

    def read(self, sha256: str) -> bytes:
        found = self.bundles[sha256]
        assert found is not None
        return found

    def refusal(self, scratch: Path, code: Code = Code.CONFLICT, **options: Any) -> str:
        with pytest.raises(HostlerError) as caught:
            self.code(scratch, **options)
        assert caught.value.code is code
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "work", {"flow.py": FLOW, "helper.py": HELPER})


@pytest.fixture
def stored(folder: Path) -> Stored:
    return Stored(compile_workflow(load("flow.py", folder=folder), {}, folder=folder))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def added(code: tuple[dict[tuple[str, int], Operation], dict[str, Compute]]) -> int:
    add = code[0][("demo.add", 1)]
    result: int = add(None, add.input_type(x=1)).x  # type: ignore[arg-type]
    return result


def test_an_unchanged_file_provides_everything(stored: Stored, scratch: Path, folder: Path) -> None:
    operations, computes = code = stored.code(scratch)
    assert set(operations) == {("demo.add", 1), ("files.publish", 1)}
    assert added(code) == 11
    assert computes["double"](3) == (6, 10, f"{folder}/flow.py")


def test_an_unrelated_edit_changes_nothing_for_a_waiting_run(stored: Stored, scratch: Path, folder: Path) -> None:
    """The operation is the edited file's, since it still matches its plan; compute stays what was stored."""
    lay_out(folder, {"flow.py": FLOW + "\n# a remark\n", "helper.py": "FACTOR = 20\n"})
    code = stored.code(scratch)
    assert added(code) == 21
    assert code[1]["double"](3) == (6, 10, f"{folder}/flow.py")


@pytest.mark.parametrize(
    "edit",
    [
        ("max_seconds=10", "max_seconds=20"),
        ("x: int", "x: float"),
        ('"demo.add"', '"demo.more"'),
        ("def flow(build):", "def flow(build)"),
        ("import helper", "import no_such_helper as helper"),
    ],
)
def test_a_related_edit_or_a_broken_file_falls_back_to_the_stored_code(
    stored: Stored, scratch: Path, folder: Path, edit: tuple[str, str]
) -> None:
    lay_out(folder, {"flow.py": FLOW.replace(*edit), "helper.py": "FACTOR = 20\n"})
    code = stored.code(scratch)
    assert added(code) == 11
    assert code[1]["double"](3)[1] == 10


def test_a_file_that_is_gone_falls_back_to_the_stored_code_that_still_says_where_it_was(
    stored: Stored, scratch: Path, folder: Path
) -> None:
    shutil.rmtree(folder)
    code = stored.code(scratch)
    assert added(code) == 11
    assert code[1]["double"](3) == (6, 10, f"{folder}/flow.py")
    laid_out = {path.name for path in scratch.rglob("*.py")}
    assert laid_out == {"flow.py", "helper.py"}


def test_a_changed_byte_of_the_stored_code_is_refused_by_its_digest(stored: Stored, scratch: Path) -> None:
    sha256 = stored.made.bundle_sha256
    data = bytearray(stored.made.bundle or b"")
    data[data.index(b"input * 2")] ^= 1
    stored.bundles[sha256] = bytes(data)
    assert f"bundle {sha256} is damaged" in stored.refusal(scratch, Code.INVALID_DATA)


def test_what_cannot_be_provided_is_named_with_the_reason(
    stored: Stored, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_built_in = Registry(built_in={}, installed=list)
    plan = stored.made.plan
    other = Stored(stored.made)
    other.record = stored.record.model_copy(update={"source": None})
    line = other.refusal(scratch, registry=no_built_in)
    assert f"error[conflict]: run {RUN} needs compute double (" in line
    assert "operation demo.add@1 (not installed), operation files.publish@1 (not installed)" in line

    @operation("demo.add", policy=Policy(max_seconds=11))
    def changed(ctx: Any, input: Thing) -> Thing:
        return input

    @operation("demo.add", policy=plan.nodes[0].policy)
    def reshaped(ctx: Any, input: Thing) -> Thing:
        return input

    for each, reason in ((changed, "its policy differs"), (reshaped, "its input schema differs")):
        monkeypatch.setitem(sys.modules, "plug_in_differing", vars_of(each))
        entries = [EntryPoint("x", "plug_in_differing", GROUP)]
        registry = Registry(built_in={}, installed=lambda entries=entries: entries)  # type: ignore[misc]
        assert f"operation demo.add@1 ({reason} from the plan)" in other.refusal(
            scratch, registry=registry, nodes=["a"]
        )


def test_only_nodes_that_still_have_to_run_need_their_code(stored: Stored, scratch: Path) -> None:
    no_built_in = Registry(built_in={}, installed=list)
    operations, computes = stored.code(scratch, registry=no_built_in, nodes=["b"])
    assert (operations, set(computes)) == ({}, {"double"})
    assert stored.code(scratch, registry=no_built_in, nodes=[]) == ({}, {})


def test_a_run_of_commands_loads_no_code_at_all(folder: Path, scratch: Path) -> None:
    text = (
        "from hostler.authoring import workflow\n@workflow('c')\ndef c(build):\n    build.command(['true'], key='a')\n"
    )
    made = compile_workflow(load("c.py", folder=lay_out(folder, {"c.py": text})), {}, folder=folder)
    lay_out(folder, {"c.py": "1 / 0\n"})
    assert Stored(made).code(scratch) == ({}, {})
    assert not scratch.exists()


def test_a_workflow_of_a_module_goes_on_from_the_module_or_the_bundle(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = lay_out(
        tmp_path / "src",
        {
            "runcode_pack/__init__.py": "",
            "runcode_pack/flow.py": FLOW.replace("import helper", "from . import helper"),
            "runcode_pack/helper.py": HELPER,
        },
    )
    made = compile_workflow(load("runcode_pack.flow:flow", folder=package), {}, folder=package)
    stored = Stored(made)
    assert added(stored.code(scratch)) == 11
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(package))
        assert added(stored.code(scratch)) == 11
        code = stored.code(scratch)
        assert code[1]["double"](3) == (6, 10, f"{package}/runcode_pack/flow.py")
    shutil.rmtree(package)
    elsewhere = Stored(made)
    elsewhere.record = elsewhere.record.model_copy(update={"source": "runcode_pack.gone:flow"})
    assert "operation demo.add@1 (" in elsewhere.refusal(scratch, nodes=["a"])


def vars_of(each: Operation) -> ModuleType:
    module = ModuleType("plug_in_differing")
    vars(module)["each"] = each
    return module
