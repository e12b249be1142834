"""Loading workflows: which text means what, how code is kept apart, and what a mistake looks like."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hostler.authoring import Build, compute, workflow
from hostler.bundles import pack
from hostler.code_space import open_space
from hostler.compiler import Compiled, compile_workflow
from hostler.loading import load
from hostres.errors import Code, HostlerError

FLOW = """
from hostler.authoring import workflow
@workflow("{id}")
def {name}(build, x: int = 1):
    return build.command(["echo", x], key="a")
"""

OPERATION = """
from pydantic import BaseModel
from hostler.authoring import operation, workflow
import helper
class Value(BaseModel):
    x: int
@operation("demo.scale")
def scale(ctx, input: Value) -> Value:
    import late
    return Value(x=input.x * helper.FACTOR + late.MORE)
@workflow("demo")
def flow(build):
    return build.call(scale, key="a", input={"x": 1})
"""


def lay_out(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def compiled(folder: Path, text: str, **inputs: Any) -> Compiled:
    return compile_workflow(load(text, folder=folder), inputs, folder=folder)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(HostlerError) as caught:
        load(text, folder=folder)
    assert caught.value.code is Code.INVALID_DATA
    line = str(caught.value)
    assert "\n" not in line
    assert "hostler_code_" not in line
    return line


def scaled(made: Compiled) -> int:
    scale = made.operations[("demo.scale", 1)]
    result: int = scale(None, scale.input_type(x=1)).x  # type: ignore[arg-type]
    return result


def test_a_file_with_one_workflow_needs_no_name(tmp_path: Path) -> None:
    lay_out(tmp_path, {"sub/flow.py": FLOW.format(id="demo", name="main")})
    for text in ("sub/flow.py", "sub/flow.py:main", str(tmp_path / "sub/flow.py")):
        found = load(text, folder=tmp_path)
        assert (found.id, found.source) == ("demo", f"{tmp_path}/sub/flow.py:main")


def test_the_folder_may_be_text_and_what_is_neither_is_named(tmp_path: Path) -> None:
    lay_out(tmp_path, {"flow.py": FLOW.format(id="one", name="one")})
    assert load("flow.py", folder=str(tmp_path)).id == "one"
    with pytest.raises(HostlerError, match="folder is 3; give the path of a folder, as text or Path"):
        load("flow.py", folder=3)  # type: ignore[arg-type]


def test_a_file_with_several_is_refused_with_the_list_of_them(tmp_path: Path) -> None:
    lay_out(tmp_path, {"flow.py": FLOW.format(id="one", name="first") + FLOW.format(id="two", name="second")})
    line = refusal(tmp_path, "flow.py")
    assert "flow.py has several workflows; choose: flow.py:first, flow.py:second" in line
    assert load("flow.py:second", folder=tmp_path).id == "two"
    assert "flow.py has no workflow third; it has: flow.py:first, flow.py:second" in refusal(tmp_path, "flow.py:third")
    assert "flow.py has no workflow workflow; it has" in refusal(tmp_path, "flow.py:workflow")


def test_an_imported_workflow_does_not_compete_with_those_of_the_file(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        {
            "base.py": FLOW.format(id="base", name="base"),
            "flow.py": "from base import base\n" + FLOW.format(id="own", name="own"),
        },
    )
    assert load("flow.py", folder=tmp_path).id == "own"
    assert load("flow.py:base", folder=tmp_path).id == "base"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("none.py", "there is no file {folder}/none.py"),
        ("none.toml", "there is no file {folder}/none.toml"),
        ("empty.py", "empty.py has no workflow; decorate its function with @workflow"),
        ("folder.py", "folder.py is a folder; give FILE.py"),
        ("notes.txt", "notes.txt is neither a Python file nor a graph file"),
        ("nothing", "'nothing' names no workflow; give FILE.py, FILE.py:NAME"),
        ("", "'' names no workflow"),
        ("no.such.module:flow", "there is no module no.such.module"),
        ("json:dumps", "json has no workflow dumps"),
        ("sys:flow", "module sys has no Python file"),
    ],
)
def test_a_text_that_names_nothing_says_what_would(tmp_path: Path, text: str, says: str) -> None:
    lay_out(tmp_path, {"empty.py": "x = 1\n", "notes.txt": "", "folder.py/x": ""})
    assert says.format(folder=tmp_path) in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("code", "line", "says"),
    [
        ("x = 1\ny = = 2\n", 2, "SyntaxError: invalid syntax"),
        ("\n\nx = 1 / 0\n", 3, "ZeroDivisionError: division by zero"),
        ("def f():\n    raise KeyError('a\\nb')\nf()\n", 2, "KeyError: 'a\\nb'"),
        ("import json\njson.loads('{')\n", 2, "JSONDecodeError: Expecting property name"),
        ("import no_such_thing\n", 1, "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("raise SystemExit(3)\n", 1, "SystemExit: 3"),
        ("x = 1\nassert x == 2\n", 2, "AssertionError"),
        ("from hostler import Policy\nPolicy(effect='bad')\n", 2, "Policy: effect is not 'pure'"),
        (
            "from hostler import operation\n@operation('demo.x')\ndef f(ctx, input):\n    pass\n",
            2,
            "operation demo.x (f): parameter input has no annotation",
        ),
        ("from hostler import nothing\n", 1, "ImportError: cannot import name 'nothing' from 'hostler'"),
    ],
)
def test_a_mistake_in_a_file_is_one_line_with_its_place(tmp_path: Path, code: str, line: int, says: str) -> None:
    lay_out(tmp_path, {"flow.py": code})
    assert f"{tmp_path}/flow.py line {line}: {says}" in refusal(tmp_path, "flow.py")


def test_a_mistake_in_an_imported_file_names_that_file(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        {
            "flow.py": "import sub.helper\n",
            "sub/helper.py": "\nx = undefined\n",
            "two.py": "from helper2 import y\n",
            "helper2.py": "x = 1\n",
            "three.py": "import sub.none\n",
        },
    )
    assert f"{tmp_path}/sub/helper.py line 2: NameError: name 'undefined'" in refusal(tmp_path, "flow.py")
    assert f"{tmp_path}/two.py line 1: ImportError: cannot import name 'y' from 'helper2'" in refusal(
        tmp_path, "two.py"
    )
    assert f"{tmp_path}/three.py line 1: ModuleNotFoundError" in refusal(tmp_path, "three.py")


def test_a_file_that_failed_leaves_nothing_behind_and_loads_once_it_is_mended(tmp_path: Path) -> None:
    lay_out(tmp_path, {"flow.py": "import helper\n" + FLOW.format(id="demo", name="main"), "helper.py": "1 / 0\n"})
    before = set(sys.modules)
    refusal(tmp_path, "flow.py")
    assert set(sys.modules) == before
    lay_out(tmp_path, {"helper.py": ""})
    assert load("flow.py", folder=tmp_path).id == "demo"


def test_files_and_helpers_of_the_same_name_never_meet(tmp_path: Path) -> None:
    """Also when an import runs long after the other file was loaded, and two versions of one file live together."""
    one = lay_out(tmp_path / "one", {"flow.py": OPERATION, "helper.py": "FACTOR = 10\n", "late.py": "MORE = 1\n"})
    two = lay_out(tmp_path / "two", {"flow.py": OPERATION, "helper.py": "FACTOR = 20\n", "late.py": "MORE = 2\n"})
    path = list(sys.path)
    first, second = compiled(one, "flow.py"), compiled(two, "flow.py")
    lay_out(one, {"helper.py": "FACTOR = 30\n", "late.py": "MORE = 3\n"})
    third = compiled(one, "flow.py")
    assert (scaled(first), scaled(second), scaled(third)) == (11, 22, 33)
    assert sys.path == path
    assert "helper" not in sys.modules
    assert "late" not in sys.modules
    assert "flow" not in sys.modules


def test_every_way_to_import_an_own_module_works(tmp_path: Path) -> None:
    code = """
import helper
import pack.inner
import pack.inner as alias
from pack import inner, other as renamed
from pack.inner import *
from . import helper as relative
import os.path, json
assert helper.NAME == relative.NAME == "helper"
assert pack.inner is alias is inner
assert pack.inner.UP == "pack" and renamed.NAME == "other" and STAR == 1
assert __file__.endswith("flow.py") and os.path.basename(helper.__file__) == "helper.py"
"""
    lay_out(
        tmp_path,
        {
            "flow.py": code + FLOW.format(id="demo", name="main"),
            "helper.py": "NAME = 'helper'\n",
            "pack/__init__.py": "NAME = 'pack'\n",
            "pack/inner.py": "from . import NAME as UP\nfrom .other import NAME\nSTAR = 1\n",
            "pack/other.py": "NAME = 'other'\n",
        },
    )
    found = load("flow.py", folder=tmp_path)
    assert found.bundle is not None
    assert sorted(found.bundle.files) == ["flow.py", "helper.py", "pack/__init__.py", "pack/inner.py", "pack/other.py"]


def test_what_runs_is_what_was_read_even_if_the_file_changes_meanwhile(tmp_path: Path) -> None:
    lay_out(tmp_path, {"flow.py": FLOW.format(id="demo", name="main")})
    found = load("flow.py", folder=tmp_path)
    lay_out(tmp_path, {"flow.py": "changed = True\n"})
    made = compile_workflow(found, {}, folder=tmp_path)
    assert made.bundle is not None
    assert b"@workflow" in made.bundle


@pytest.mark.parametrize("name", ["my-flow.py", "2024 flow.py", "a.b.py", "class.py"])
def test_a_file_name_that_no_import_could_write_is_fine(tmp_path: Path, name: str) -> None:
    lay_out(tmp_path, {name: FLOW.format(id="demo", name="main"), "my_flow.py": "1 / 0\n"})
    assert load(name, folder=tmp_path).id == "demo"


def test_dataclasses_enums_and_models_work_in_a_loaded_file(tmp_path: Path) -> None:
    code = """
from __future__ import annotations
import dataclasses, enum, pickle
from typing import NamedTuple
from pydantic import BaseModel
class Kind(enum.Enum):
    A = "a"
@dataclasses.dataclass
class Point:
    x: int
    kind: Kind = Kind.A
class Model(BaseModel):
    point: Point
    others: list[Model] = []
assert pickle.loads(pickle.dumps(Point(1))) == Point(1)
assert Model.model_validate({"point": {"x": 1}, "others": [{"point": {"x": 2}}]}).others[0].point.x == 2
"""
    lay_out(tmp_path, {"flow.py": code + FLOW.format(id="demo", name="main")})
    assert load("flow.py", folder=tmp_path).id == "demo"


def test_an_importable_module_is_loaded_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = "importable_a"
    lay_out(
        tmp_path,
        {
            f"{package}/__init__.py": "",
            f"{package}/flows.py": "from .tools import X\n" + FLOW.format(id="demo", name="main"),
            f"{package}/tools.py": "X = 1\n",
            f"{package}/broken.py": "\n1 / 0\n",
        },
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = load(f"{package}.flows:main", folder=Path("/"))
    assert found.source == f"{package}.flows:main"
    assert found.bundle is not None
    assert sorted(found.bundle.files) == [f"{package}/__init__.py", f"{package}/flows.py", f"{package}/tools.py"]
    assert f"{tmp_path}/{package}/broken.py line 2: ZeroDivisionError" in refusal(Path("/"), f"{package}.broken:main")
    assert f"there is no module {package}.none" in refusal(Path("/"), f"{package}.none:main")
    assert f"{package}.flows has no workflow other; it has: {package}.flows:main" in refusal(
        Path("/"), f"{package}.flows:other"
    )


def test_a_module_of_the_current_folder_is_found_too(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        {
            "importable_b/flows.py": FLOW.format(id="demo", name="main"),
            "importable_c.py": FLOW.format(id="c", name="main"),
        },
    )
    assert load("importable_b.flows:main", folder=tmp_path).source == "importable_b.flows:main"
    assert load("importable_c:main", folder=tmp_path).id == "c"


# --- workflows of a running program -------------------------------------------------------------------------------


@compute()
def doubled(input: int) -> int:
    return input * 2


@workflow("here")
def here(build: Build) -> Any:
    return build.call(doubled, key="a", input=1)


def test_a_workflow_of_an_imported_module_is_found_again_by_its_name() -> None:
    made = compile_workflow(here, {}, folder=Path())
    assert made.source == f"{__name__}:here"
    assert made.plan.bundle_sha256 == made.bundle_sha256
    assert made.bundle_sha256 is not None


def test_a_workflow_inside_a_function_has_no_source() -> None:
    @workflow("local")
    def local(build: Build) -> Any:
        return build.command(["true"], key="a")

    made = compile_workflow(local, {}, folder=Path())
    assert (made.source, made.bundle, made.bundle_sha256) == (None, None, None)


def test_a_workflow_of_a_script_is_found_again_by_its_file(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from hostler import compile_workflow
if __name__ == "__main__":
    print(compile_workflow(main, {}, folder=Path()).source)
"""
    lay_out(tmp_path, {"script.py": FLOW.format(id="demo", name="main") + code})
    ran = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert ran.stdout.strip() == f"{tmp_path}/script.py:main"
    assert load("script.py", folder=tmp_path).id == "demo"


def test_importing_the_package_loads_nothing_and_every_public_name_resolves() -> None:
    code = """
import sys
bare = set(sys.modules)
import hostler
new = {name for name in set(sys.modules) - bare if name not in ("hostler", "__future__")}
assert not new, new
assert "operation" in dir(hostler)
for name in hostler.__all__:
    assert getattr(hostler, name) is not None, name
try:
    hostler.nothing
except AttributeError as error:
    print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout.strip(), ran.stderr) == ("module 'hostler' has no attribute 'nothing'", "")


class Importing(str):
    """The name of a module; whoever looks at it finds that another thread has just imported something."""

    __slots__ = ()

    def startswith(self, *_: Any) -> bool:
        sys.modules.setdefault("imported_meanwhile", sys)
        return False


def test_modules_may_be_imported_by_other_threads_while_those_of_a_workflow_are_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many runs are taken up at once, each with code of its own."""
    bundle = pack({"flow.py": b""})
    space = open_space(bundle, entry="flow.py", root=tmp_path)
    space.load()
    monkeypatch.setitem(sys.modules, Importing("between"), sys)
    monkeypatch.delitem(sys.modules, "imported_meanwhile", raising=False)
    try:
        assert [each.__name__ for each in space.modules()] == [f"{space.prefix}.flow"]
    finally:
        space.forget()
        sys.modules.pop("imported_meanwhile", None)
