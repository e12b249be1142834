"""A disk that fails a single call, or a kill at one: a clear refusal or a clean recovery, and no wrong record.

With strace the kernel's own answers are replaced: any write, sync, cut or removal of a real program, one after the
other. `tests/store/test_faults.py` makes the errors inside the process, where there is no strace.
"""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store.clock import SystemClock
from store.home import Home
from store.hosts import HostIdentity
from store.reader import Reader
from store.run_store import RunStore
from tests.crash.power import why_no_recording
from tests.crash.test_store_crash import ROOT

# Goes on after every refusal, as the next attempt of a scheduler does; says what was acknowledged and what refused.
PERSISTENT = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.store.support import *
folder = Path(sys.argv[1])
said = {"acknowledged": 0, "refused": []}
def tell():
    Path(sys.argv[3]).write_text(json.dumps(said))
tell()
def persist(work):
    for _ in range(4):
        try:
            answer = work()
        except HostlerError as error:
            answer = error
        if not isinstance(answer, HostlerError):
            return answer
        said["refused"].append([answer.code, str(answer)])
        tell()
    raise SystemExit(3)
setting = persist(lambda: Setting(folder))
setting.store._connection.execute("PRAGMA wal_autocheckpoint = 25")
plan = plan_of({"a": []})
record = record_of(plan)
persist(lambda: setting.store.create(record, plan, bundle=None))
claimed = persist(lambda: setting.store.claim(record.run_id, setting.identity))
said["acknowledged"] = 2
tell()
large = Output.of("a", "x" * 300_000)
running = moved(claimed.nodes[0], Status.RUNNING, attempt=1, started_at=STAMP.at)
done = moved(running, Status.COMPLETED, output_sha256=large.sha256, finished_at=STAMP.at)
for number in range(40):
    more = {19: {"nodes": (running,)}, 20: {"nodes": (done,), "outputs": (large,)}}.get(number, {})
    persist(lambda: setting.write(claimed, events=(NOTE,), **more))
    said["acknowledged"] += 1
    tell()
setting.close()
"""


def injected(tmp_path: Path, calls: str, what: str, when: int) -> tuple[int, dict[str, object], Home]:
    """Run the program with the nth of those calls on the store's files answered otherwise.

    Returns:
        How it ended, what it said, and its home.

    """
    folder, said = tmp_path / "home", tmp_path / "said"
    home = Home.open(folder, create=True)
    paths = [home.database, f"{home.database}-wal", home.root, home.content]
    command = [
        "strace",
        "-f",
        "-o",
        str(tmp_path / "log"),
        "-e",
        f"trace={calls}",
        "-e",
        f"inject={calls}:{what}:when={when}",
    ]
    for path in paths:
        command += ["-P", str(path)]
    done = subprocess.run(
        [*command, sys.executable, "-c", PERSISTENT, str(folder), ROOT, str(said)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(said.read_text()), home


def assert_as_acknowledged(home: Home, acknowledged: object) -> None:
    """Open the store as the next program does: all that was acknowledged is there, and all of it is right."""
    assert isinstance(acknowledged, int)
    identity = HostIdentity.register(home)
    store = RunStore.open(home, clock=SystemClock())
    with Reader.open(home) as reader:
        runs = [row.run_id for row in reader.runs()]
        if acknowledged:
            (run,) = runs
            assert len(list(reader.events(run))) in (acknowledged, acknowledged + 1)
    for run in runs:
        store.claim(run, identity)
    assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store.close()
    identity.close()


CASES = [
    # calls, the answer, among how many of them one is chosen
    ("pwrite64", "error=EIO", 200),
    ("pwrite64", "error=ENOSPC", 200),
    ("fsync,fdatasync", "error=EIO", 40),
    ("rename,unlink", "error=EROFS", 2),
]


@pytest.mark.parametrize(("calls", "what", "number"), CASES)
def test_a_call_that_fails_is_refused_clearly_and_the_next_attempt_works(
    tmp_path: Path, calls: str, what: str, number: int
) -> None:
    if why_no_recording():
        pytest.skip(why_no_recording())
    when = random.Random(f"{calls} {what}").randint(1, number)
    code, said, home = injected(tmp_path, calls, what, when)
    assert code == 0, (when, said)
    assert "(INJECTED)" in (tmp_path / "log").read_text()
    for refused, line in said["refused"]:  # type: ignore[attr-defined]
        assert refused == "unavailable", line
        assert len(line.splitlines()) == 1
    assert said["acknowledged"] == 42
    assert_as_acknowledged(home, 42)


@pytest.mark.parametrize(("calls", "number"), [("pwrite64", 200), ("fsync,fdatasync", 40)])
def test_a_program_killed_at_any_call_leaves_what_it_had_acknowledged(tmp_path: Path, calls: str, number: int) -> None:
    if why_no_recording():
        pytest.skip(why_no_recording())
    code, said, home = injected(tmp_path, calls, "signal=KILL", random.Random(calls).randint(1, number))
    assert code in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert_as_acknowledged(home, said["acknowledged"])
