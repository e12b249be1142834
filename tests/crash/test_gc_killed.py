"""`gc` and `import` are killed outright at every step they take: what is listed is whole, and the next one finishes."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store.home import Home
from store.proving import check_file, numbers, prove
from store.reader import Reader
from store.retention.collection import collect
from tests.store.keeping.conftest import Kept, original  # noqa: F401 - a fixture
from tests.store.keeping.support import archive_of, copied
from tests.store.keeping.test_retention import files, orphans

ROOT = str(Path(__file__).parents[2])
LATER = "2100-01-01T00:00:00.000Z"

EVERY = 13
"""Of so many steps one is tried; with 1 here every one is, which takes minutes."""

# The process dies at its nth statement or change of a file, counted from the moment the store is opened.
DYING = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from store import database
from store.clock import SystemClock
from store.home import Home
from store.retention import collection
from store.archive import importing
left = int(sys.argv[3])
def die(what, *_):
    global left
    left -= not what.startswith("PRAGMA incremental_vacuum")  # one for each page
    if left < 0:
        os.kill(os.getpid(), 9)
def hear(event, args):
    if event in {"os.remove", "os.rmdir", "os.rename", "shutil.rmtree", "os.mkdir"}:
        die(event)
opened = database.open_writer
def open_writer(*args, **more):
    connection = opened(*args, **more)
    connection.set_trace_callback(die)
    return connection
database.open_writer = open_writer
home = Home.open(Path(sys.argv[2]), create=True)
sys.addaudithook(hear)
"""
COLLECT = DYING + f"collection.collect(home, before={LATER!r}, keep=0, now_unix_s=0.0)\n"
IMPORT = DYING + "importing.bring_in(home, open(sys.argv[4], 'rb'), 'x', clock=SystemClock())\n"


def dies(program: str, *arguments: str) -> bool:
    done = subprocess.run([sys.executable, "-c", program, ROOT, *arguments], capture_output=True, check=False)
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr.decode()
    return done.returncode != 0


def check_whole(home: Home) -> None:
    assert check_file(home) == []
    for run in numbers(home):
        assert prove(home, run, files=False).problems == ()


def test_a_collection_that_is_killed_anywhere_leaves_a_whole_store_and_the_next_one_finishes(
    original: Kept,  # noqa: F811
    tmp_path: Path,
) -> None:
    for step in range(0, 400, EVERY):
        home = copied(original.home, tmp_path / f"home{step}")
        died = dies(COLLECT, str(home.root), str(step))
        check_whole(home)
        with Reader.open(home) as reader:
            if reader.runs():  # then nothing of it is gone
                assert [note.absence for note in prove(home, 1).notes] == []
        collect(home, before=LATER, keep=0, now_unix_s=0.0)
        assert (orphans(home), files(home), numbers(home)) == ({}, set(), {})
        shutil.rmtree(home.root)
        if not died:
            break
    else:
        pytest.fail("it takes more steps than were tried")


def test_an_import_that_is_killed_anywhere_leaves_all_or_nothing_and_can_be_made_again(
    original: Kept,  # noqa: F811
    tmp_path: Path,
) -> None:
    archive = tmp_path / "x.tar"
    archive.write_bytes(archive_of(original.home, original.run_id))
    for step in range(0, 400, 4 * EVERY):
        home = Home.open(tmp_path / f"home{step}", create=True)
        died = dies(IMPORT, str(home.root), str(step), str(archive))
        check_whole(home)
        if not died:
            assert len(numbers(home)) == 1
            break
        assert not dies(IMPORT, str(home.root), "100000", str(archive))
        check_whole(home)
        assert archive_of(home, original.run_id) == archive.read_bytes()
        collect(home, before=LATER, keep=0, now_unix_s=2e10)
        assert (orphans(home), files(home)) == ({}, set())
    else:
        pytest.fail("it takes more steps than were tried")
