"""A module of somebody else's that is called as one of this program's packages is named, wherever it is met."""

import subprocess
import sys
from pathlib import Path

import pytest

from hostler import load
from hostler.own_names import stranger
from hostres.errors import HostlerError

PROGRAM = "from hostler import Policy\n"


def said_by(*words: str, folder: Path) -> str:
    """Return the last line that a Python says which looks for modules in the current folder first."""
    ended = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode
    return ended.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", ["actors", "store", "hostres"])
def test_a_program_beside_a_module_of_our_name_is_told_which_file_that_is(name: str, tmp_path: Path) -> None:
    """It was a ModuleNotFoundError about `store.policy`, of which its author had never heard."""
    (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "program.py").write_text(PROGRAM + "from hostler import Host, OperationFailed\n")
    said = said_by("program.py", folder=tmp_path)
    assert said.startswith(f"ImportError: Hostler finds {tmp_path / name}.py in the place of its own package; actors,")


def test_a_package_of_our_name_with_modules_of_our_names_is_found_too(tmp_path: Path) -> None:
    package = tmp_path / "store"
    package.mkdir()
    for file in ("__init__.py", "policy.py"):
        (package / file).write_text("")
    (tmp_path / "program.py").write_text(PROGRAM)
    assert f"finds {package / '__init__.py'} in the place" in said_by("program.py", folder=tmp_path)


def test_the_command_line_blames_that_file_and_not_itself(tmp_path: Path) -> None:
    (tmp_path / "store.py").write_text("")
    said = said_by("-m", "hostler", "show", "-", folder=tmp_path)
    assert said.startswith(f"hostler: error[unavailable]: {tmp_path / 'store.py'} was found in the place of a package")


def test_a_workflow_that_imports_a_module_of_our_name_is_told_that_it_is_ours(tmp_path: Path) -> None:
    (tmp_path / "store.py").write_text("PRICE = 3\n")
    (tmp_path / "flow.py").write_text("from store import PRICE\n")
    with pytest.raises(HostlerError, match=r"line 1: ImportError: cannot import name 'PRICE'.*Hostler's own names"):
        load("flow.py", folder=tmp_path)


def test_a_package_that_stands_beside_the_package_of_a_workflow_is_in_the_way_too(tmp_path: Path) -> None:
    for package in ("flows", "actors"):
        (tmp_path / package).mkdir()
    (tmp_path / "actors" / "lead.py").write_text("")
    (tmp_path / "flows" / "__init__.py").write_text("")
    (tmp_path / "flows" / "flow.py").write_text("from actors.lead import play\n")
    with pytest.raises(HostlerError, match=r"No module named 'actors.lead'.*Hostler's own names"):
        load("flows.flow:play", folder=tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from hostler import worfklow", "ImportError: cannot import name 'worfklow' from 'hostler'"),
        ("import hostler.nothing", "ModuleNotFoundError: No module named 'hostler.nothing'"),
        ("from store.policy import Polcy", "ImportError: cannot import name 'Polcy' from 'store.policy'"),
    ],
)
def test_a_typo_in_an_import_of_ours_is_told_as_one(line: str, said: str, tmp_path: Path) -> None:
    """Its author was told to rename a module that there is not."""
    (tmp_path / "store").mkdir()  # of data
    (tmp_path / "flow.py").write_text(f"{line}\n")
    with pytest.raises(HostlerError) as caught:
        load("flow.py", folder=tmp_path)
    assert f"flow.py line 1: {said}" in caught.value.what
    assert caught.value.todo == "mend that line"


def test_here_all_are_ours() -> None:
    assert stranger() is None
