"""A slip in a name: what was probably meant is named, for every kind of name that a person types."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostres.suggestions import did_you_mean, nearest
from tests.hostler.views.support import PLAN
from tests.store.support import Setting, record_of

EXAMPLE = Path(__file__).parent.parent.parent.parent / "examples" / "podcast.py"
GRAPH = '{"workflow": {"id": "w", "version": 1}, "nodes": [{"key": "a", "executor": {"operation": "files.publsh@1"}}]}'


@pytest.fixture
def run_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A run, in a folder with workflow files."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, "podcast.py")
    Path("graph.json").write_text(GRAPH, encoding="utf-8")
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    record = record_of(PLAN)
    setting.store.create(record, PLAN, bundle=None)
    yield record.run_id
    setting.close()


@pytest.mark.parametrize(
    ("typed", "code", "meant"),
    [
        ("shwo -", 2, "show"),
        ("receipt creat -", 2, "create"),
        ("machine shwo", 2, "show"),
        ("cancel - --noed a", 2, "--node"),
        ("receipt list - --jsno", 2, "--json"),
        ("exec --clami ffmpeg=1 -- true", 2, "--claim"),
        ("runs --status=complet", 2, "completed"),
        ("plan podcast.py --format mermiad", 2, "mermaid"),
        ("completion bsh", 2, "bash"),
        ("why - txt", 4, "text"),
        ("logs - aduio", 4, "audio"),
        ("cancel - --node audoi", 4, "audio"),
        ("retry - realease", 4, "release"),
        ("plan podcsat.py", 2, "podcast.py"),
        ("plan graph.jso", 2, "graph.json"),
        ("plan podcast.py:podcats", 2, "podcast"),
        ("plan graph.json", 2, "files.publish@1"),
        ("plan podcast.py -i sorce=x -i out=y", 2, "source"),
        ("exec --claim fmpeg=1 -- true", 2, "ffmpeg"),
        ("machine set fmpeg=", 4, "ffmpeg"),
        ("schema shwo", 4, "show"),
    ],
)
def test_what_was_meant_is_named(
    run_id: str, typed: str, code: int, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(typed.split(), code, capsys).count(f"did you mean {meant}?") == 1


def test_a_run_whose_id_has_a_slip_in_it_is_guessed(run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_id.startswith("run_01")  # as all do in these years
    slip = f"run_10{run_id[6:]}"
    assert f"did you mean {run_id}?" in refusal(["show", slip], 4, capsys)
    assert f"did you mean {run_id}?" in refusal(["show", run_id.removeprefix("run_")[:-1] + "u"], 4, capsys)
    assert "did you mean" not in refusal(["show", "run_zzzzzzzzzzzz"], 4, capsys)


def test_what_is_like_nothing_is_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean" not in refusal(["xyzzy"], 2, capsys)
    assert nearest("", ["a"]) is None
    assert nearest("a" * 10_000, ["a" * 10_000]) is None, "not compared: that takes the square of its length"
    assert did_you_mean("shwo", ["show", "why"], "see help") == "did you mean show? see help"


def test_a_wrong_word_is_told_in_one_bounded_line_without_what_could_move_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for word in ("x" * 100_000, "a\nb\x1b[2J", "--" + "y" * 9000):
        assert len(refusal([word], 2, capsys)) < 2000


def refusal(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    try:
        found = main(words)
    except SystemExit as left:
        found = int(left.code or 0)
    printed = capsys.readouterr()
    assert (found, printed.out) == (code, "")
    assert re.fullmatch(r"hostler: error\[[a-z-]+\]: [^\n\x1b]+; [^\n\x1b]+\n", printed.err), printed.err
    return printed.err
