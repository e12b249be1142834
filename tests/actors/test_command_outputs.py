"""The outputs of a command are files, and reading them ends when the attempt does."""

import os
from pathlib import Path

import pytest

from actors.command_outputs import output_of
from actors.context import OperationFailed
from actors.control import Control, OperationAborted
from actors.dependencies import KeptFile, check_files
from store.policy import FailureCode

LARGE = 64 << 20


class Asked:
    """A control that is asked to stop after so many pieces."""

    def __init__(self, after: int) -> None:
        self._after = after
        self.control = Control()
        self.pieces = 0

    def between(self) -> None:
        self.control.check()
        self.pieces += 1
        if self.pieces == self._after:
            self.control.note("cancel")


def large(path: Path) -> Path:
    """Make a file of many pieces, without writing them."""
    path.touch()
    os.truncate(path, LARGE)
    return path


def test_the_digest_of_a_large_output_ends_with_the_next_piece_after_a_stop(tmp_path):
    large(tmp_path / "f")
    asked = Asked(3)
    with pytest.raises(OperationAborted):
        output_of(tmp_path, "x", "f", between=asked.between)
    assert asked.pieces == 3


def test_a_large_file_of_an_earlier_node_is_looked_through_no_longer_than_the_attempt_lasts(tmp_path):
    path = large(tmp_path / "f")
    kept = KeptFile(node="a", name="x", path=path, bytes=LARGE, sha256="0" * 64, hashed=True)
    asked = Asked(3)
    with pytest.raises(OperationAborted):
        check_files((kept,), between=asked.between)
    assert asked.pieces == 3


def test_an_output_is_told_with_its_place_its_size_and_its_digest(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("f")
    told = output_of(tmp_path, "x", "link", between=lambda: None)
    # the example of FIPS 180-4
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert told == {"path": str(tmp_path / "f"), "bytes": 3, "sha256": abc}


def made(folder: Path, kind: str) -> None:
    match kind:
        case "folder":
            (folder / "f").mkdir()
        case "pipe":
            os.mkfifo(folder / "f")
        case "circle":
            (folder / "f").symlink_to("f")
        case "long circle":
            (folder / "f").symlink_to("g")
            (folder / "g").symlink_to("f")
        case "below a file":
            (folder / "d").touch()


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("nothing", "f"),
        ("folder", "f"),
        ("pipe", "f"),
        ("circle", "f"),
        ("long circle", "f"),
        ("circle", "f/f"),
        ("below a file", "d/f"),
    ],
)
def test_what_is_no_file_is_a_malformed_output(tmp_path, kind, path):
    made(tmp_path, kind)
    with pytest.raises(OperationFailed, match=f"left no file {path} for its output x") as told:
        output_of(tmp_path, "x", path, between=lambda: None)
    assert told.value.code is FailureCode.MALFORMED_OUTPUT


def test_a_link_that_leads_out_is_no_output(tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "f").touch()
    (tmp_path / "w" / "f").symlink_to("../f")
    with pytest.raises(OperationFailed, match="outside the workspace") as told:
        output_of(tmp_path / "w", "x", "f", between=lambda: None)
    assert told.value.code is FailureCode.INVALID_DATA


@pytest.mark.parametrize("kind", ["pipe", "folder", "circle"])
def test_a_file_that_was_exchanged_for_something_else_is_a_conflict(tmp_path, kind):
    made(tmp_path, kind)
    kept = KeptFile(node="a", name="x", path=tmp_path / "f", bytes=0, sha256="0" * 64, hashed=False)
    with pytest.raises(OperationFailed, match="output x of node a is ") as told:
        check_files((kept,), between=lambda: None)
    assert told.value.code is FailureCode.CONFLICT
