"""A store that is damaged, closed to writing or of a newer version: one line, the right exit code, nothing touched."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostler.service_units import HOPELESS
from hostres.errors import EXIT_CODES, Code
from store import database_file
from tests.store.support import Setting, finish_node, plan_of

ROOT = Path(database_file.__file__).parents[1]
LOOKS = (["runs"], ["show", "-"], ["events", "-"])
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def home() -> Path:
    """Give a home with a run in it."""
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    claimed = setting.claimed(plan_of({"a": [], "b": ["a"]}))
    finish_node(setting, claimed, "a", 1)
    setting.accept(claimed, release=True)
    setting.close()
    database_file._opened.clear()  # who looks next is a new program
    return setting.home.root


def graph(folder: Path) -> str:
    path = folder / "graph.json"
    node = {"key": "a", "executor": {"command": {"argv": ["true"]}}}
    path.write_text(json.dumps({"workflow": {"id": "g", "version": 1}, "nodes": [node], "outputs": {}}))
    return str(path)


def garbage(home: Path) -> None:
    (home / "runs.db").write_bytes(b"not a database " * 500)


def pages(home: Path) -> None:
    with (home / "runs.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 30)


@pytest.mark.parametrize("damage", [garbage, pages])
def test_every_command_refuses_a_damaged_store_with_73_names_it_and_leaves_it_alone(
    home: Path, tmp_path: Path, capsys: Captured, damage: Callable[[Path], None]
) -> None:
    damage(home)
    before = (home / "runs.db").read_bytes()
    for words in (*LOOKS, ["cancel", "-"], ["resume", "-"], ["run", graph(tmp_path)]):
        assert main(words) == 73, words
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1, said
        assert said.startswith(f"hostler: error[unsafe-state]: {home}/runs.db is damaged: ")
        assert "put a copy in its place" in said
    assert main(["doctor"]) == 73
    assert "runs.db is damaged" in capsys.readouterr().out
    assert (home / "runs.db").read_bytes() == before


@pytest.mark.parametrize("left", ["gone", "empty"])
def test_a_log_without_its_file_is_no_empty_store_to_any_command(
    home: Path, tmp_path: Path, capsys: Captured, left: str
) -> None:
    with closing(sqlite3.connect(home / "runs.db")) as connection, connection:
        connection.execute("INSERT INTO removals VALUES (99, 'x')")
        connection.commit()
        log = (home / "runs.db-wal").read_bytes()
    (home / "runs.db").unlink()
    (home / "runs.db-wal").write_bytes(log)
    (home / "runs.db-wal").chmod(0o600)
    if left == "empty":
        (home / "runs.db").touch(0o600)
    for words in (*LOOKS, ["verify", "--all"], ["cancel", "-"], ["run", graph(tmp_path)], ["gc", "--dry-run"]):
        assert main(words) == 73, words
        assert capsys.readouterr().err.startswith("hostler: error[unsafe-state]: ")
    assert main(["doctor"]) == 73
    assert "log" in capsys.readouterr().out
    assert (home / "runs.db-wal").read_bytes() == log


def test_a_newer_store_is_refused_with_73_naming_what_is_needed(home: Path, tmp_path: Path, capsys: Captured) -> None:
    """S15, field case 53."""
    with closing(sqlite3.connect(home / "runs.db")) as connection, connection:
        connection.execute("INSERT INTO schema_versions VALUES (99, '7.1.0')")
        connection.execute("PRAGMA user_version = 99")
    before = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    for words in (*LOOKS, ["cancel", "-"], ["run", graph(tmp_path)]):
        assert main(words) == 73
        said = capsys.readouterr().err
        assert "schema version 99" in said
        assert "use Hostler 7.1.0 or newer" in said
    assert {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()} == before


@cache
def powerless() -> tuple[str, ...] | None:
    """Return the command under which permissions bind this user too; None if there is none."""
    if os.geteuid() != 0:
        return ()
    command = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
    if shutil.which("setpriv") is None or subprocess.run([*command, "true"], check=False).returncode != 0:
        return None
    return command


COMMANDS = """
import json, os, sys
from hostler.__main__ import main
answers = []
for words in json.loads(sys.argv[1]):
    print(words[0], main(words), file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize("closed", ["runs.db", "."])
def test_a_store_that_may_not_be_written_can_still_be_looked_into(home: Path, tmp_path: Path, closed: str) -> None:
    """S14, field case 52."""
    prefix = powerless()
    if prefix is None:
        pytest.skip("nothing here takes from root what only root may do")
    place = home / closed
    mode = place.stat().st_mode & 0o7777
    words = [*LOOKS, ["cancel", "-"], ["run", graph(tmp_path)]]
    place.chmod(0o400 if closed == "runs.db" else 0o500)
    try:
        done = subprocess.run(
            [*prefix, sys.executable, "-c", COMMANDS, json.dumps(words)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        place.chmod(mode)
    lines = done.stderr.splitlines()
    assert [line for line in lines if not line.startswith("hostler: ")] == [
        "runs 0", "show 0", "events 0", "cancel 69", "run 69",
    ], done.stderr  # fmt: skip
    errors = [line for line in lines if line.startswith("hostler: ")]
    assert len(errors) == 2
    assert all(line.startswith("hostler: error[unavailable]: ") for line in errors)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_store_of_another_user_is_refused_by_every_command_and_left_alone(
    home: Path, tmp_path: Path, capsys: Captured
) -> None:
    """Field case 52: as of a person, by one who became root; the one line says whose it is."""
    for path in (home, *home.rglob("*")):
        os.chown(path, 4242, 4242)

    def state() -> dict[Path, tuple[int, int, int]]:
        return {path: (s.st_uid, s.st_size, s.st_mtime_ns) for path in home.rglob("*") if (s := path.lstat())}

    before = state()
    for words in (*LOOKS, ["cancel", "-"], ["run", graph(tmp_path)], ["submit", graph(tmp_path)], ["serve"], ["gc"]):
        assert main(words) == 73, words
        assert "belongs to user id 4242" in capsys.readouterr().err
    assert state() == before


def test_the_service_ends_at_once_on_a_newer_store_however_often_it_is_started(home: Path, capsys: Captured) -> None:
    """Field case 53: with the code after which no unit starts it again, also where it waits for what is to come."""
    with closing(sqlite3.connect(home / "runs.db")) as connection, connection:
        connection.execute("INSERT INTO schema_versions VALUES (99, '7.1.0')")
        connection.execute("PRAGMA user_version = 99")
    before = (home / "runs.db").read_bytes()
    for words in (["serve"], ["serve", "--wait"], ["serve", "--wait"]):
        assert main(words) == 73
        (line,) = capsys.readouterr().err.splitlines()
        assert "schema version 99" in line
    assert (home / "runs.db").read_bytes() == before
    assert EXIT_CODES[Code.NEWER_SCHEMA] in HOPELESS
