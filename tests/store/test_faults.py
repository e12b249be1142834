"""A disk that is full or read-only, a file that is damaged, a lock that is kept: clear errors, nothing lost."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store import database
from store.contracts import NodeRecord, RequestKind
from store.database import WAL_BYTES, begin_write, open_writer
from store.faults import store_error
from store.home import Home
from store.lifecycle import Status
from store.reader import Reader
from store.requests import post
from store.run_store import RunStore
from store.schema import SCHEMA_VERSION
from store.transactions import Claimed, Output
from tests.store.support import (
    CLOCK,
    NOTE,
    STAMP,
    Setting,
    assert_refused,
    finish_node,
    moved,
    plan_of,
    request_of,
    transaction,
)


def test_a_full_disk_refuses_all_of_a_group_loses_nothing_and_writing_goes_on_once_there_is_room(
    setting: Setting,
) -> None:
    """S14."""
    claimed, other = setting.claimed(), setting.claimed()
    run = claimed.fence.run_id
    running, done, output = finishing(claimed, "x" * 100_000)
    setting.accept(claimed, nodes=(running,), events=(NOTE,))
    connection = setting.store._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    commits, acknowledged = setting.store.commits, 3
    answers = setting.store.write(
        [transaction(claimed, nodes=(done,), outputs=(output,), events=(NOTE,)), transaction(other, events=(NOTE,))]
    )
    for answer in answers:
        assert_refused(answer, Code.UNAVAILABLE, "the disk is full")
    assert setting.store.commits == commits
    with Reader.open(setting.home) as reader:
        assert len(list(reader.events(run))) == acknowledged
    connection.execute("PRAGMA max_page_count = 1000000")
    setting.accept(claimed, nodes=(done,), outputs=(output,), events=(NOTE,), release=True)
    setting.accept(other, events=(NOTE,))
    again = setting.store.claim(run, setting.identity)
    assert again.nodes == (done, *claimed.nodes[1:])


def finishing(claimed: Claimed, value: JsonValue, place: int = 0) -> tuple[NodeRecord, NodeRecord, Output]:
    """Return a node, the first one, while it runs and when it is done, with what it gave."""
    output = Output.of(claimed.nodes[place].key, value)
    running = moved(claimed.nodes[place], Status.RUNNING, attempt=1, started_at=STAMP.at)
    return running, moved(running, Status.COMPLETED, output_sha256=output.sha256, finished_at=STAMP.at), output


FULL = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.store.support import *
from store.database import WAL_BYTES
from store.reader import Reader
from store.requests import post
root = Path(sys.argv[1])
setting = Setting(root / "home")
claimed = setting.claimed(plan_of({"a": []}))
run = claimed.fence.run_id
filler = root / "filler"
filler.write_bytes(bytes(500_000))
said, acknowledged = set(), 2
event = NewEvent(kind=EventKind.LATE_RESULT, data={"text": "x" * 4000})
while not said:
    answer = setting.write(claimed, events=(event,))
    if answer is None:
        acknowledged += 1
    else:
        said.add(f"{answer.code}: {answer.what}")
blocker = root / "blocker"
with blocker.open("wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)) == 4096:
            pass
    except OSError:
        pass
large = setting.write(claimed, outputs=(Output.of("a", "x" * 300_000),))
try:
    post(setting.home, request_of(run, RequestKind.CANCEL), clock=CLOCK)
    posted = "stored"
except HostlerError as error:
    posted = error.code
with Reader.open(setting.home) as reader:
    seen = len(list(reader.events(run)))
other = RunStore.open(setting.home, clock=CLOCK)
other.close()
blocker.unlink()
filler.unlink()
after = setting.write(claimed, events=(event,), release=True)
again = setting.store.claim(run, setting.identity)
with Reader.open(setting.home) as reader:
    events = list(reader.events(run))
print(json.dumps({
    "said": sorted(said), "large": large and large.code, "posted": posted, "acknowledged": acknowledged,
    "seen": seen, "after": after and str(after), "in_the_end": len(events),
}))
setting.close()
"""

READ_ONLY = """
import json, os, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.store.support import *
from store.reader import Reader
from store.requests import post
root, how = Path(sys.argv[1]), sys.argv[3]
if how == "killed":
    child = os.fork()
    if child == 0:
        setting = Setting(root / "home")
        claimed = setting.claimed()
        setting.accept(claimed, events=(NOTE,) * 7)
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
else:
    setting = Setting(root / "home")
    claimed = setting.claimed()
    setting.accept(claimed, events=(NOTE,) * 7)
    setting.close()
subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)
answers = {}
home = Home.open(root / "home", create=False)
with Reader.open(home) as reader:
    run = reader.find("-")
    answers["events"] = len(list(reader.events(run)))
    answers["nodes"] = len(reader.nodes(run))
    answers["alive"] = reader.runs()[0].alive
for name, action in {
    "store": lambda: RunStore.open(Home.open(root / "home", create=True), clock=CLOCK),
    "post": lambda: post(home, request_of(run, RequestKind.CANCEL), clock=CLOCK),
    "host": lambda: HostIdentity.register(home),
}.items():
    try:
        action()
        answers[name] = "done"
    except HostlerError as error:
        answers[name] = error.code
print(json.dumps(answers))
"""


LOG_WITHOUT_INDEX = """
import json, os, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.store.support import *
from store.reader import Reader
root = Path(sys.argv[1])
child = os.fork()
if child == 0:
    Setting(root / "home").created()
    os.kill(os.getpid(), 9)
os.waitpid(child, 0)
(root / "home" / "runs.db-shm").unlink()
subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)
try:
    Reader.open(Home.open(root / "home", create=False)).close()
    print(json.dumps({"code": "opened"}))
except HostlerError as error:
    print(json.dumps({"code": error.code}))
"""


@cache
def own_mounts() -> tuple[str, ...] | None:
    """Return the command under which a mount is nobody else's, or None if this system allows none."""
    for command in (("unshare", "--mount"), ("unshare", "--mount", "--map-root-user")):
        if shutil.which("unshare"):
            trial = [*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
            if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
                return command
    return None


def on_small_disk(folder: Path, size: str, script: str, *more: str) -> dict[str, object]:
    """Run *script* with *folder* on a disk of that size."""
    command = own_mounts()
    if command is None:
        pytest.skip("this system lets nobody mount a small disk for the test")
    folder.mkdir()
    shell = 'mount -t tmpfs -o mode=0700,size="$0" tmpfs "$1" && shift && exec "$@"'
    root = str(Path(database.__file__).parents[1])
    done = subprocess.run(
        [*command, "sh", "-c", shell, size, str(folder), sys.executable, "-c", script, str(folder), root, *more],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, object] = json.loads(done.stdout)
    return answers


def test_a_small_disk_that_fills_up_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """S14, field case 48."""
    answers = on_small_disk(tmp_path / "disk", "4m", FULL)
    (said,) = answers["said"]  # type: ignore[misc]
    assert said.startswith("unavailable: the disk is full")  # type: ignore[has-type]
    assert answers["large"] == "unavailable"
    assert answers["posted"] in {"unavailable", "stored"}
    assert answers["after"] is None
    assert answers["seen"] == answers["acknowledged"]
    acknowledged = answers["acknowledged"]
    assert isinstance(acknowledged, int)
    assert acknowledged > 10
    assert answers["in_the_end"] == acknowledged + 3  # the last one, its release, the new claim


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_read_only_store_can_be_looked_into_and_says_so_when_written_to(tmp_path: Path, how: str) -> None:
    """S14, field case 52."""
    answers = on_small_disk(tmp_path / "disk", "20m", READ_ONLY, how)
    assert answers == {
        "events": 9,
        "nodes": 4,
        "alive": False,
        "store": "unavailable",
        "post": "unavailable",
        "host": "unavailable",
    }


def test_the_log_is_grown_before_use_and_never_over_what_is_in_it(setting: Setting) -> None:
    log = setting.home.database.with_name("runs.db-wal")
    assert log.stat().st_size == WAL_BYTES
    claimed = setting.claimed()
    other = RunStore.open(setting.home, clock=CLOCK)
    setting.accept(claimed, events=(NOTE,))
    other.close()
    with Reader.open(setting.home) as reader:
        assert len(list(reader.events(claimed.fence.run_id))) == 3
    assert log.stat().st_size == WAL_BYTES


def test_nobody_else_can_write_into_the_log_while_it_is_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "home"
    Setting(folder).close()
    refusals: list[int] = []
    real = os.pwrite

    def watched(fd: int, data: bytes, offset: int) -> int:
        other = sqlite3.connect(folder / "runs.db", timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError) as caught:
            other.execute("BEGIN IMMEDIATE")
        refusals.append(caught.value.sqlite_errorcode)
        other.close()
        return real(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", watched)
    Setting(folder).close()
    assert refusals == [sqlite3.SQLITE_BUSY]


def test_a_read_only_store_whose_log_cannot_be_read_is_not_shown_without_it(tmp_path: Path) -> None:
    answers = on_small_disk(tmp_path / "disk", "20m", LOG_WITHOUT_INDEX)
    assert answers == {"code": "unavailable"}


def test_no_room_to_grow_the_log_is_no_reason_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", no_room)
    setting = Setting(tmp_path / "home")
    setting.accept(setting.claimed(), events=(NOTE,))
    setting.close()


def test_every_byte_of_a_large_value_is_synced_before_the_row_that_names_it(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed = setting.claimed()
    running, done, output = finishing(claimed, "x" * 300_000)
    setting.accept(claimed, nodes=(running,))
    order: list[str] = []
    real_sync, real_rename = os.fsync, Path.rename
    connection = setting.store._connection
    connection.set_trace_callback(lambda text: order.append(text.split()[0]))

    def synced(fd: int) -> None:
        name = Path(f"/proc/self/fd/{fd}").readlink().name
        order.append("sync folder" if name == "content" else "sync file")
        real_sync(fd)

    def renamed(path: Path, target: Path) -> Path:
        order.append("rename")
        return real_rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    setting.accept(claimed, nodes=(done,), outputs=(output,))
    assert order[:4] == ["sync file", "rename", "sync folder", "BEGIN"]
    assert order[-1] == "COMMIT"


def test_a_large_value_for_which_there_is_no_room_is_refused_and_leaves_nothing(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(fd: int) -> None:
        raise OSError(28, "No space left on device")

    claimed = setting.claimed()
    monkeypatch.setattr(os, "fsync", no_room)
    refusal = setting.write(claimed, outputs=(Output.of("a", "x" * 300_000),))
    assert_refused(refusal, Code.UNAVAILABLE, "No space left")
    assert list(setting.home.content.iterdir()) == []


def test_a_write_waits_for_another_programs_write_and_no_lock_error_is_seen(setting: Setting) -> None:
    """Field case 46."""
    claimed = setting.claimed()
    blocker = open_writer(setting.home.database, SCHEMA_VERSION, create=False)
    begin_write(blocker)
    answers: list[HostlerError | None] = []
    begun = threading.Event()

    def write() -> None:
        begun.set()
        answers.append(setting.write(claimed, events=(NOTE,)))

    thread = threading.Thread(target=write)
    thread.start()
    assert begun.wait(timeout=60)
    assert answers == []
    blocker.execute("COMMIT")
    thread.join(timeout=60)
    assert answers == [None]
    blocker.close()


def test_a_store_that_stays_busy_is_unavailable(setting: Setting) -> None:
    blocker = open_writer(setting.home.database, SCHEMA_VERSION, create=False)
    begin_write(blocker)
    with pytest.raises(sqlite3.OperationalError) as caught:
        begin_write(setting.store._connection, busy_seconds=0.05)
    assert_refused(store_error(caught.value, setting.home.database), Code.UNAVAILABLE, "kept busy")
    blocker.close()


def test_a_damaged_page_is_unsafe_state(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "home")
    claimed = setting.claimed(plan_of({f"n{number}": () for number in range(300)}))
    setting.accept(claimed, events=(NOTE,) * 300)
    setting.close()
    size = setting.home.database.stat().st_size
    with setting.home.database.open("r+b") as file:
        for page in range(2, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 64)

    def look() -> None:
        with Reader.open(Home.open(setting.home.root, create=True)) as reader:
            list(reader.events(claimed.fence.run_id))

    with pytest.raises(HostlerError) as caught:
        look()
    assert_refused(caught.value, Code.UNSAFE_STATE, "damaged")


MEANINGS = [
    ("SQLITE_FULL", Code.UNAVAILABLE, "full"),
    ("SQLITE_IOERR_SHMSIZE", Code.UNAVAILABLE, "the disk is full"),
    ("SQLITE_BUSY", Code.UNAVAILABLE, "busy"),
    ("SQLITE_BUSY_SNAPSHOT", Code.UNAVAILABLE, "busy"),
    ("SQLITE_LOCKED", Code.UNAVAILABLE, "busy"),
    ("SQLITE_READONLY", Code.UNAVAILABLE, "read-only"),
    ("SQLITE_READONLY_DBMOVED", Code.UNAVAILABLE, "read-only"),
    ("SQLITE_PERM", Code.UNAVAILABLE, "read-only"),
    ("SQLITE_CANTOPEN", Code.UNAVAILABLE, "cannot be opened"),
    ("SQLITE_IOERR_FSYNC", Code.UNAVAILABLE, "SQLITE_IOERR_FSYNC"),
    ("SQLITE_CORRUPT", Code.UNSAFE_STATE, "damaged"),
    ("SQLITE_NOTADB", Code.UNSAFE_STATE, "damaged"),
    ("SQLITE_MISUSE", Code.INTERNAL, "text"),
]


def test_every_error_of_the_database_means_something_to_a_person() -> None:
    for name, code, part in MEANINGS:
        error = sqlite3.OperationalError("text")
        error.sqlite_errorcode = getattr(sqlite3, name)
        error.sqlite_errorname = name
        said = store_error(error, Path("/x/runs.db"))
        assert_refused(said, code, "/x/runs.db", part)
        assert said.todo


def test_a_failed_commit_is_not_acknowledged_and_the_next_one_works(setting: Setting) -> None:
    claimed = setting.claimed()
    done = finish_node(setting, claimed, "a", 1)

    class Failing:
        def __init__(self, connection: sqlite3.Connection) -> None:
            self.connection = connection

        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement == "COMMIT":
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
                error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
                raise error
            return self.connection.execute(statement, *values)

        @property
        def in_transaction(self) -> bool:
            return self.connection.in_transaction

    real = setting.store._connection
    setting.store._connection = Failing(real)  # type: ignore[assignment]
    ready = moved(claimed.nodes[1], Status.READY)
    answer = setting.write(claimed, nodes=(ready,))
    setting.store._connection = real
    assert_refused(answer, Code.UNAVAILABLE, "SQLITE_IOERR_FSYNC")
    with Reader.open(setting.home) as reader:
        assert reader.nodes(claimed.fence.run_id)[:2] == (done, claimed.nodes[1])
    setting.accept(claimed, nodes=(ready,))


def test_a_posted_request_survives_a_busy_store(setting: Setting) -> None:
    run = setting.created()
    blocker = open_writer(setting.home.database, SCHEMA_VERSION, create=False)
    begin_write(blocker)
    begun = threading.Event()
    answers: list[bool] = []

    def ask() -> None:
        begun.set()
        answers.append(post(setting.home, request_of(run, RequestKind.CANCEL), clock=CLOCK))

    thread = threading.Thread(target=ask)
    thread.start()
    assert begun.wait(timeout=60)
    blocker.execute("ROLLBACK")
    thread.join(timeout=60)
    assert answers == [True]
    blocker.close()
