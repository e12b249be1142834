"""What the last word of a command line may become, and that looking for it leaves no trace."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostler.commands import COMMANDS
from hostler.commands.complete import rejoined
from hostler.completing.candidates import FILES, PROGRAMS
from hostler.completing.vocabulary import PLACE
from scripts.command_words import vocabulary
from scripts.write_tables import files
from store.lifecycle import RunStatus
from tests.hostler.views.support import PLAN
from tests.store.support import Setting, record_of

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def setting() -> Iterator[Setting]:
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    yield setting
    setting.close()


@pytest.fixture
def runs(setting: Setting) -> list[str]:
    """Two runs, the newest last."""
    found = []
    for _ in range(2):
        record = record_of(PLAN)
        setting.store.create(record, PLAN, bundle=None)
        found.append(record.run_id)
    return found


def offered(capsys: Captured, *words: str, shell: str = "bash") -> list[str]:
    capsys.readouterr()
    assert main(["complete", shell, *words]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out.splitlines()


def test_the_table_is_that_of_the_parsers() -> None:
    """If not: scripts/write-tables."""
    assert files()[PLACE] == PLACE.read_text(encoding="utf-8")
    assert vocabulary()["below"].keys() == COMMANDS.keys()


def test_commands_actions_options_and_their_values(capsys: Captured) -> None:
    assert offered(capsys, "re") == ["resume", "receipt", "retry", "recover", "replay"]
    assert offered(capsys, "receipt", "") == ["create", "list", "revoke"]
    assert offered(capsys, "cancel", "--n") == ["--node"]
    assert offered(capsys, "--debug", "show", "-", "--j") == ["--json"]
    assert offered(capsys, "runs", "--status", "") == [status.value for status in RunStatus]
    assert offered(capsys, "runs", "--status=f", shell="fish") == ["--status=failed"]
    assert offered(capsys, "runs", "--status", "=", "f") == ["failed"]
    assert offered(capsys, "nonsense", "") == []
    assert offered(capsys, "plan", "x.py", "--format", "m") == ["mermaid"]
    assert "show" in offered(capsys, "schema", "")


def test_files_and_programs_are_left_to_the_shell(capsys: Captured) -> None:
    assert offered(capsys, "run", "") == [FILES]
    assert offered(capsys, "run", "x.py", "--input", "") == [FILES]
    assert offered(capsys, "exec", "--", "l") == [PROGRAMS]
    assert offered(capsys, "exec", "ls", "--") == [FILES]


def test_runs_come_newest_first_also_without_what_all_ids_begin_with(runs: list[str], capsys: Captured) -> None:
    newest_first = runs[::-1]
    assert offered(capsys, "show", "") == ["-", *newest_first]
    assert offered(capsys, "show", "run_") == newest_first
    assert offered(capsys, "show", runs[0][4:11]) == [run[4:] for run in newest_first]
    assert offered(capsys, "runs", "--before", runs[0]) == [runs[0]]
    assert offered(capsys, "show", "x") == []
    assert offered(capsys, "verify", "r")[-1] == FILES
    assert offered(capsys, "show", runs[0], shell="fish") == [f"{runs[0]}\tpodcast, planned"]
    assert offered(capsys, "show", runs[0], shell="zsh") == [f"{runs[0]}:podcast, planned"]


def test_nodes_are_those_of_the_run_that_is_named(runs: list[str], capsys: Captured) -> None:
    assert offered(capsys, "logs", "-", "") == ["audio", "text", "upload", "release"]
    assert offered(capsys, "logs", runs[0], "re") == ["release"]
    assert offered(capsys, "cancel", runs[1], "--node", "a") == ["audio"]
    assert offered(capsys, "logs", "run_", "") == [], "which one is not said"
    assert offered(capsys, "logs", "-", "text", "") == []


def test_resources_and_tickets(capsys: Captured) -> None:
    assert offered(capsys, "exec", "--claim", "ffm") == ["ffmpeg="]
    assert offered(capsys, "machine", "set", "cpu=2", "ffm") == ["ffmpeg="]
    folder = Path(os.environ["HOSTLER_MACHINE_DIR"]) / "t"
    folder.mkdir(parents=True)
    for name in ("h.7.0a0a", "w.12.0b0b", ".new.x"):
        (folder / name).touch()
    assert offered(capsys, "machine", "revoke", "") == ["7", "12"]


def test_what_readline_breaks_is_put_together() -> None:
    assert rejoined(["runs", "--status", "=", "fa"]) == (["runs", "--status=fa"], "--status=")
    assert rejoined(["runs", "--status", "="]) == (["runs", "--status="], "--status=")
    assert rejoined(["run", "x.py", ":", "na"]) == (["run", "x.py:na"], "x.py:")
    assert rejoined(["show", ""]) == (["show", ""], "")
    assert rejoined([]) == ([], "")


def tree(*folders: Path) -> list[tuple[str, int, int]]:
    return sorted(
        (str(path), status.st_size, status.st_mtime_ns)
        for folder in folders
        for path in [folder, *folder.rglob("*")]
        if (status := path.stat())
    )


def test_it_makes_and_changes_nothing(runs: list[str], setting: Setting, capsys: Captured, tmp_path: Path) -> None:
    for words in (["show", ""], ["logs", "-", ""], ["exec", "--claim", ""], ["machine", "revoke", ""]):
        before = tree(tmp_path)
        offered(capsys, *words)
        assert tree(tmp_path) == before
    setting.close()
    before = tree(tmp_path)
    assert offered(capsys, "show", "")[0] == "-"
    assert len(offered(capsys, "logs", "-", "")) == 4
    assert tree(tmp_path) == before, "not even the index of a log that nobody has open"


def test_where_there_is_nothing_nothing_is_made(capsys: Captured, tmp_path: Path) -> None:
    assert offered(capsys, "show", "") == ["-"]
    assert offered(capsys, "logs", "-", "") == []
    assert offered(capsys, "machine", "revoke", "") == []
    assert tree(tmp_path) == tree(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("home", ["~nobody-is-called-so/x", "/dev/null", "/"])
def test_it_is_silent_whatever_is_wrong(
    home: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOSTLER_HOME", home)
    monkeypatch.setenv("HOSTLER_MACHINE_DIR", "relative")
    for words in ([], ["show", ""], ["logs", "-", ""], ["exec", "--claim", ""], ["machine", "revoke", ""], ["\udcff"]):
        offered(capsys, *words)
    monkeypatch.setenv("HOSTLER_HOME", str(tmp_path))
    (tmp_path / "runs.db").write_bytes(b"SQLite format 3\0" + bytes(2000))
    assert offered(capsys, "logs", "-", "") == []


def test_a_tab_imports_next_to_nothing(runs: list[str]) -> None:
    script = (
        "import sys\nfrom hostler.__main__ import main\nmain(['complete', 'fish', 'logs', '-', ''])\n"
        "heavy = {'argparse', 'pydantic', 'orjson', 'dataclasses', 'pykka', 'rich', 'psutil', 'fasteners', 'inspect'}\n"
        "print('HEAVY', *sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["audio", "text", "upload", "release", "HEAVY"]


def test_a_reader_that_goes_away_is_no_error(runs: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hostler", "complete", "bash", ""], stdout=write, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(write)
    assert done.stderr == b""
