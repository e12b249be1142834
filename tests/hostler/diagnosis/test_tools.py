"""ffmpeg and its like: not only there, but working."""

from pathlib import Path

import pytest

from hostler.diagnosis.findings import Finding
from hostler.diagnosis.tools import look_at_tools

VERSION = "echo 'ffmpeg version 7.0 Copyright'"


def looked(folder: Path, script: str | None) -> list[Finding]:
    if script is not None:
        program = folder / "ffmpeg"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return [found for found in look_at_tools({"PATH": str(folder)}) if found.name == "ffmpeg"]


def test_a_whole_ffmpeg_is_told_with_its_version(tmp_path: Path) -> None:
    """It was run for that."""
    lists = "echo ' V....D libx264 x'; echo ' A....D aac x'; echo ' .. subtitles V->V x'"
    (found,) = looked(tmp_path, f"case $2 in -version) {VERSION};; *) {lists};; esac")
    assert found.said == f"{tmp_path / 'ffmpeg'}, version 7.0"
    assert not found.todo


def test_one_that_does_not_run_is_noted(tmp_path: Path) -> None:
    """For want of a library, say."""
    (found,) = looked(tmp_path, "exit 127")
    assert "does not run" in found.said
    assert "-version" in found.todo


def test_one_that_lacks_what_the_operations_use_is_noted(tmp_path: Path) -> None:
    """Each with what to do instead."""
    found = looked(tmp_path, f"case $2 in -version) {VERSION};; -encoders) echo ' A....D aac x';; esac")
    assert [one.said.rpartition(" ")[2] for one in found[1:]] == ["libx264", "subtitles"]
    assert "libass" in found[2].todo


def test_none_at_all_names_what_installs_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on PATH nor as a package."""
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    (found,) = looked(tmp_path, None)
    assert "not found" in found.said
    assert "install" in found.todo
