"""A host that is no longer the owner of its run writes nothing more, starts nothing more, and says so."""

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from store.clock import SystemClock
from store.home import Home
from store.hosts import HostIdentity, host_alive
from store.reader import Reader
from store.run_store import RunStore
from tests.crash.support import hosting, processes_of
from tests.support import until

WAITS = 'echo "$0" >>log; while [ ! -e go ]; do sleep 0.01; done'
NOTES = 'echo "$0" >>log'


def graph(folder: Path) -> Path:
    """Return a workflow of two steps; the first waits for the file `go`."""

    def node(key: str, script: str, *after: str) -> dict[str, object]:
        command = {"argv": ["sh", "-c", script, key], "cwd": str(folder)}
        return {"key": key, "after": after, "executor": {"command": command}}

    path = folder / "two.json"
    nodes = [node("first", WAITS), node("second", NOTES, "first")]
    path.write_text(json.dumps({"workflow": {"id": "two", "version": 1}, "nodes": nodes, "outputs": {}}))
    return path


def rows(home: Home) -> list[object]:
    """Return everything that the store says."""
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as connection:
        return [
            connection.execute(f"SELECT * FROM {table}").fetchall()
            for table in ("runs", "nodes", "events", "outputs", "summaries", "node_plans", "grants", "requests")
        ]


@contextmanager
def in_the_first_step(folder: Path, home: Home) -> Iterator[tuple["subprocess.Popen[str]", str, str]]:
    """Give a host that waits in its first step, the id of its run and its own."""
    with hosting("run", str(graph(folder)), cwd=folder) as host:
        assert host.stdout is not None
        run = host.stdout.readline().strip()
        until((folder / "log").exists)
        (name,) = [name for name in os.listdir(home.root / "hosts") if name.startswith("host_")]
        try:
            yield host, run, name
        finally:
            (folder / "go").touch()


def forged(home: Home, name: str) -> None:
    """Put a FIFO that nobody holds in the place of the host's: to everybody else it is dead."""
    place = home.hosts / name
    place.unlink()
    os.mkfifo(place, 0o600)
    assert not host_alive(home, name)


def removed(home: Home, name: str) -> None:
    (home.hosts / name).unlink()


@pytest.mark.parametrize("lose", [forged, removed])
def test_a_host_that_others_take_for_dead_starts_nothing_more_and_writes_nothing_more(
    tmp_path: Path, lose: Callable[[Home, str], None]
) -> None:
    home = Home(tmp_path / "home", exists=True)
    with in_the_first_step(tmp_path, home) as (host, run, name):
        lose(home, name)
        before = rows(home)
        (tmp_path / "go").touch()
        said = host.communicate(timeout=60)[0]
    assert host.returncode == 70, said
    assert "error[ownership-lost]" in said
    assert rows(home) == before
    assert (tmp_path / "log").read_text().split() == ["first"]
    assert processes_of(run) == {}


def log_removed(home: Home) -> None:
    for name in ("runs.db-wal", "runs.db-shm"):
        (home.root / name).unlink()


def emptied(home: Home) -> None:
    os.truncate(home.database, 0)


@pytest.mark.parametrize("lose", [log_removed, emptied])
def test_a_host_whose_log_is_gone_or_whose_file_is_emptied_stops_before_its_next_write(
    tmp_path: Path, lose: Callable[[Home], None]
) -> None:
    """What it went on to acknowledge would be in a log that nobody else finds, or in one without its file."""
    home = Home(tmp_path / "home", exists=True)
    with in_the_first_step(tmp_path, home) as (host, run, _):
        lose(home)
        (tmp_path / "go").touch()
        said = host.communicate(timeout=60)[0]
    assert host.returncode == 70, said
    assert "error[ownership-lost]: runs.db or its log" in said
    assert (tmp_path / "log").read_text().split() == ["first"]
    assert processes_of(run) == {}


def test_a_host_whose_run_was_taken_over_while_it_was_stopped_writes_nothing_and_ends_its_processes(
    tmp_path: Path,
) -> None:
    """R12: as a takeover would if the stopped host could be taken for dead: its file is forged, another claims the run."""
    home = Home(tmp_path / "home", exists=True)
    with in_the_first_step(tmp_path, home) as (host, run, name):
        host.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, host.pid, os.WSTOPPED | os.WNOWAIT)
        forged(home, name)
        identity = HostIdentity.register(home)
        store = RunStore.open(home, clock=SystemClock())
        assert store.claim(run, identity).fence.generation == 2
        before = rows(home)
        host.send_signal(signal.SIGCONT)
        (tmp_path / "go").touch()
        said = host.communicate(timeout=60)[0]
        assert host.returncode == 70, said
        assert rows(home) == before
        with Reader.open(home) as reader:
            owner = reader.run(run).owner
        assert owner is not None
        assert (owner.host, owner.alive) == (identity.host_id, True)
        store.close()
        identity.close()
    assert processes_of(run) == {}
    assert (tmp_path / "log").read_text().split() == ["first"]


def test_a_claim_of_a_higher_generation_ends_the_owners_work_although_its_host_lives(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", exists=True)
    with in_the_first_step(tmp_path, home) as (host, _, _):
        with closing(sqlite3.connect(home.database)) as connection, connection:
            connection.execute("UPDATE runs SET generation = generation + 1, token = 'another'")
        before = rows(home)
        (tmp_path / "go").touch()
        said = host.communicate(timeout=60)[0]
    assert host.returncode == 5, said
    assert "error[conflict]: claim 1 on run" in said
    assert rows(home) == before
    assert (tmp_path / "log").read_text().split() == ["first"]
