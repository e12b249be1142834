"""Finding programs before anything is spent on them."""

import subprocess
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from hostres.programs import find_program


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    (folder / "data").write_text("")
    (folder / "folder").mkdir()
    return folder


def refused(name: str, path: str, cwd: Path | None = None) -> HostlerError:
    with pytest.raises(HostlerError) as caught:
        find_program(name, environ={"PATH": path}, cwd=cwd)
    return caught.value


def code(name: str, path: str, cwd: Path | None = None) -> Code:
    return refused(name, path, cwd).code


def test_a_name_is_looked_for_in_the_path_of_the_command(bin_folder: Path) -> None:
    assert find_program("tool", environ={"PATH": f"/nowhere:{bin_folder}"}) == f"{bin_folder}/tool"
    assert code("tool", "/nowhere") is Code.NOT_FOUND
    assert code("", str(bin_folder)) is Code.NOT_FOUND
    assert find_program("sh", environ={}).endswith("/sh")


@pytest.mark.parametrize(("name", "said"), [("tool", "tool"), ("", "''"), ("two words", "'two words'")])
def test_a_name_that_would_not_be_seen_by_itself_is_quoted(name: str, said: str) -> None:
    assert refused(name, "/nowhere").what == f"there is no program {said} in PATH=/nowhere"


def test_what_is_there_but_cannot_run_is_told_apart(bin_folder: Path) -> None:
    assert code("data", str(bin_folder)) is Code.UNAVAILABLE
    assert code("folder", str(bin_folder)) is Code.UNAVAILABLE
    assert code(f"{bin_folder}/data", "") is Code.UNAVAILABLE
    assert code(f"{bin_folder}/missing", "") is Code.NOT_FOUND


def test_a_relative_path_starts_where_the_command_does(bin_folder: Path) -> None:
    found = find_program("./tool", environ={}, cwd=bin_folder)
    subprocess.run([found], cwd=bin_folder, check=True)
    assert code("./tool", "", bin_folder.parent) is Code.NOT_FOUND
    found = find_program("tool", environ={"PATH": "bin"}, cwd=bin_folder.parent)
    subprocess.run([found], cwd=bin_folder.parent, check=True)
