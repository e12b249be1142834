"""Where a worker process finds the code of its node: a file, what that imports late, a package; and where none could."""

from typing import Any, cast

import pytest

from hostler import Host, HostlerError, Policy, load, operation
from hostler.compiler import compile_workflow
from store.lifecycle import RunStatus
from tests.hostler.host_support import Number
from tests.hostler.worker_support import HEAD, WAIT_S, compiled, log_of, records

LAZY = """
@workflow("lazy")
def flow(build: Build):
    from steps_of_this_test import sum_of, where
    return [build.call(sum_of, key="sum", input=[1, 2]), build.call(where, key="where", input={})["found"]]
"""


STEPS = """
@compute
def rest(input):
    return None

class Given(BaseModel):
    n: int = 0

class Found(BaseModel):
    found: str

@operation("test.where", policy=Policy(isolation="process"))
def where(ctx: Context, input: Given) -> Found:
    print("caf\\xe9")
    return Found(found=__file__)

sum_of = compute("sum")(sum_up)
"""


def test_what_the_workflow_imports_only_when_it_is_called_is_found_too(tmp_path, monkeypatch):
    """It is in the bundle, and was there when the plan was made; and a locale without letters breaks no print."""
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    (tmp_path / "steps_of_this_test.py").write_text(HEAD + "from sums_of_this_test import sum_up\n" + STEPS)
    (tmp_path / "sums_of_this_test.py").write_text("def sum_up(input):\n    return sum(input)\n")
    with Host() as host:
        run = host.start(compiled(tmp_path, LAZY))
        outcome = run.wait(WAIT_S)
        assert outcome.outputs == [3, str(tmp_path / "steps_of_this_test.py")], records(run.run_id)
        assert log_of(run.run_id, "where") == "café\n"


PACKAGE = """
class Given(BaseModel):
    n: int = 0

@operation("test.where", policy=Policy(isolation="process"))
def where(ctx: Context, input: Given) -> dict_of:
    return dict_of(found=[__name__, __file__])

@compute
def trusted(input):
    return [__name__.partition(".")[2], __file__]

@workflow("packaged")
def flow(build: Build):
    return [build.call(where, key="where", input={})["found"], build.call(trusted, key="trusted", input=None)]
""".replace("@operation", "class dict_of(BaseModel):\n    found: list[str]\n\n@operation", 1)


@pytest.mark.parametrize("installed", [True, False])
def test_code_of_a_package_is_found_whether_it_is_installed_or_lies_in_the_folder(installed, tmp_path, monkeypatch):
    """`package.module:name` has its own names, its own place, and no file of its own folder in the way."""
    package = f"parcel_{'installed' if installed else 'lying'}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / package / "flows.py").write_text(HEAD + PACKAGE)
    if installed:
        monkeypatch.syspath_prepend(str(tmp_path))
    made = compile_workflow(load(f"{package}.flows:flow", folder=tmp_path), {}, folder=tmp_path)
    with Host() as host:
        outcome = host.start(made).wait(WAIT_S)
    assert outcome.status is RunStatus.COMPLETED
    file = str(tmp_path / package / "flows.py")
    (name, where), trusted = cast("Any", outcome.outputs)
    assert where == file
    assert name == f"{package}.flows" if installed else name.endswith(f".{package}.flows")
    assert trusted == [f"{package}.flows", file]


def test_an_operation_that_no_process_could_find_is_refused_before_anything_runs(tmp_path):
    """A closure cannot be imported."""

    @operation("test.inner", policy=Policy(isolation="process"))
    def inner(ctx, input: Number) -> Number:
        return input

    (tmp_path / "flow.py").write_text(HEAD)
    from hostler import workflow  # noqa: PLC0415

    @workflow("inner")
    def flow(build):
        build.call(inner, key="a", input={})

    with pytest.raises(HostlerError, match="top level of its module"):
        compile_workflow(flow, {}, folder=tmp_path)
