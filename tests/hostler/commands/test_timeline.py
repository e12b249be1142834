"""`hostler timeline`: which picture, and where it goes."""

import io
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostler.commands.picture_file import write_picture
from hostres.errors import HostlerError
from store.lifecycle import Status
from tests.hostler.pictures.support import parsed, words
from tests.store.support import STAMP, Setting, finish_node, moved, plan_of

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run_id() -> str:
    """A run that a living host works on: one node is done, one runs, one waits."""
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    run_id = setting.created(plan_of({"a": [], "b": ["a"], "c": ["b"]}))
    claimed = setting.store.claim(run_id, setting.identity)
    nodes = {node.key: node for node in claimed.nodes}
    finish_node(setting, claimed, "a", {})
    setting.accept(claimed, nodes=(moved(nodes["b"], Status.READY),))
    setting.accept(claimed, nodes=(moved(nodes["b"], Status.RUNNING, attempt=1, started_at=STAMP.at),))
    setting.close()
    return run_id


def refusal(capsys: Captured, *arguments: str, code: int) -> str:
    capsys.readouterr()
    assert main(["timeline", *arguments]) == code
    line = capsys.readouterr().err
    assert line.startswith("hostler: error[")
    assert line.count("\n") == 1
    return line


def test_the_suffix_says_what_is_drawn(run_id: str, tmp_path: Path, capsys: Captured) -> None:
    for name in ("t.svg", "T.SVG"):
        assert main(["timeline", "-", "-o", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out == f"wrote {tmp_path / name}\n"
        assert f"test@1 · {run_id}" in words(parsed((tmp_path / name).read_text(encoding="utf-8")))
    assert main(["timeline", run_id[:12], "-o", str(tmp_path / "t.html")]) == 0
    assert (tmp_path / "t.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_with_json_it_says_what_it_wrote(run_id: str, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "t.svg"
    assert main(["timeline", "-", "-o", str(target), "--json"]) == 0
    shape = json.loads(capsys.readouterr().out)
    assert shape == {"format_version": 1, "run_id": run_id, "file": str(target), "bytes": target.stat().st_size}
    assert "--json" in refusal(capsys, "-", "-o", "-", "--json", code=2)


def test_a_dash_is_standard_output_and_holds_the_svg_alone(run_id: str, capsys: Captured) -> None:
    assert main(["timeline", run_id, "-o", "-"]) == 0
    assert {"a", "b", "c"} <= {*words(parsed(capsys.readouterr().out))}


def test_a_standard_output_that_is_not_utf_8_gets_a_document_that_is(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["timeline", run_id, "-o", "-"]) == 0
    written = out.buffer.getvalue()
    assert f"test@1 · {run_id}" in words(parsed(written.decode("ascii")))


@pytest.mark.parametrize("name", ["t", "t.png", "svg", ".svg"])
def test_an_unknown_suffix_is_refused_before_anything_is_read(name: str, tmp_path: Path, capsys: Captured) -> None:
    line = refusal(capsys, "none", "-o", str(tmp_path / name), code=2)
    assert ".svg or .html" in line
    assert name in line


def test_a_run_that_is_not_there_is_not_found(run_id: str, tmp_path: Path, capsys: Captured) -> None:
    assert "not-found" in refusal(capsys, "run_x", "-o", str(tmp_path / "t.svg"), code=4)
    assert not (tmp_path / "t.svg").exists()


@pytest.mark.parametrize("where", ["missing/t.svg", "file/t.svg", f"{'x' * 300}.svg", "folder.svg"])
def test_a_place_that_cannot_be_written_is_one_line_that_names_it(
    where: str, run_id: str, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.svg").mkdir()
    line = refusal(capsys, run_id, "-o", str(tmp_path / where), code=69)
    assert str(tmp_path / where) in line
    assert ".new" not in line


def test_the_old_picture_stands_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "t.svg"
    target.write_text("old", encoding="utf-8")

    def full(_: int) -> None:
        assert target.read_text(encoding="utf-8") == "old"
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(HostlerError, match="no space left on device"):
            write_picture(str(target), "new")
    assert [path.name for path in tmp_path.iterdir()] == ["t.svg"]
    assert target.read_text(encoding="utf-8") == "old"
    target.chmod(0o640)
    link = tmp_path / "link.svg"
    link.symlink_to(target)
    with target.open(encoding="utf-8") as opened:
        write_picture(str(link), "new")
        assert opened.read() == "old", "whoever reads the old one reads all of it"
    assert target.read_text(encoding="utf-8") == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"t.svg", "link.svg"}
    assert (target.stat().st_mode & 0o777, link.is_symlink()) == (0o640, True)


def test_a_pipe_is_written_into_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "t.svg"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_picture(str(pipe), "new")
    reader.join(60)
    assert read == ["new"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("library", ["drawsvg"])
def test_without_its_library_the_refusal_says_how_to_have_it(
    library: str, run_id: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    line = refusal(capsys, run_id, "-o", str(tmp_path / "t.svg"), code=69)
    assert f"{library}, which is not installed; pip install 'hostler[pictures]'" in line
