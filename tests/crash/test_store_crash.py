"""A writer is killed outright at seeded moments: what it acknowledged is there, and nothing is half there."""

import random
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from store.clock import SystemClock
from store.contracts import EventKind
from store.home import Home
from store.hosts import HostIdentity, known_hosts
from store.lifecycle import Status
from store.reader import Reader
from store.run_store import RunStore

ROOT = str(Path(__file__).parents[2])
KILLS = 12

# One line a step that is durable. `big` outputs lie in files; every third group carries several transactions.
WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.store.support import *
setting = Setting(Path(sys.argv[1]))
print("ready", flush=True)
number = 0
while True:
    number += 1
    plan = plan_of({"a": [], "b": ["a"]}, inputs={"n": number})
    record = record_of(plan, run_id=new_run_id(EPOCH_MS + int(sys.argv[3]) * 100_000 + number, bytes(10)))
    setting.store.create(record, plan, bundle=None)
    print("created", record.run_id, flush=True)
    claimed = setting.store.claim(record.run_id, setting.identity)
    print("claimed", record.run_id, flush=True)
    seq = 2
    for key in ("a", "b"):
        node = next(node for node in claimed.nodes if node.key == key)
        frozen = node_plan(record.run_id, key, number)
        output = Output.of(key, {"key": key, "text": "x" * (300_000 if key == "a" and number % 3 == 0 else 10)})
        running = moved(node, Status.RUNNING, attempt=1, plan_sha256=frozen.sha256, started_at=STAMP.at)
        done = moved(running, Status.COMPLETED, output_sha256=output.sha256, finished_at=STAMP.at)
        note = NewEvent(kind=EventKind.NODE_STATUS, node=key, data={"n": number})
        steps = [
            dict(started=True, plans=(frozen,), nodes=(moved(node, Status.READY, plan_sha256=frozen.sha256),), events=(note,)),
            dict(nodes=(running,), events=(note,)),
            dict(nodes=(done,), outputs=(output,), events=(note, note)),
        ]
        groups = [steps] if number % 3 == 1 else [[step] for step in steps]
        for group in groups:
            answers = setting.store.write([transaction(claimed, **step) for step in group])
            assert answers == [None] * len(group), answers
            seq += sum(len(step["events"]) for step in group)
            print("wrote", record.run_id, key, seq, len(group), flush=True)
"""


@pytest.mark.parametrize("seed", range(KILLS))
def test_what_a_killed_writer_acknowledged_is_there_and_nothing_is_half_there(tmp_path: Path, seed: int) -> None:
    moment = random.Random(seed)
    folder = tmp_path / "home"
    acknowledged = kill_a_writer(folder, seed, lines=moment.randrange(1, 60), pause_s=moment.random() * 0.004)
    home = Home.open(folder, create=True)
    check_acknowledged(home, acknowledged)
    identity = HostIdentity.register(home)
    store = RunStore.open(home, clock=SystemClock())
    with Reader.open(home) as reader:
        runs = [row.run_id for row in reader.runs()]
        assert not any(row.alive for row in reader.runs())
    for run in runs:
        claimed = store.claim(run, identity)
        for node in claimed.nodes:
            assert (node.status is Status.COMPLETED) == (node.key in claimed.outputs)
    assert known_hosts(home) == [identity.host_id]
    store.close()
    identity.close()


def kill_a_writer(folder: Path, seed: int, *, lines: int, pause_s: float) -> list[list[str]]:
    """Start a writer, kill it soon after so many lines, and return all that it said in whole lines."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), ROOT, str(seed)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    said = [writer.stdout.readline() for _ in range(lines)]
    spin_until = time.perf_counter() + pause_s
    while time.perf_counter() < spin_until:  # the moment of the kill, not a wait for anything
        select.select([], [], [], 0)
    writer.send_signal(signal.SIGKILL)
    said += writer.communicate(timeout=60)[0].splitlines(keepends=True)
    assert writer.returncode == -signal.SIGKILL
    assert said[0] == "ready\n"
    return [line.split() for line in said[1:] if line.endswith("\n")]


def check_acknowledged(home: Home, acknowledged: list[list[str]]) -> None:
    """Look, before anybody writes again."""
    with Reader.open(home) as reader:
        for step, run, *rest in acknowledged:
            events = list(reader.events(run))
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            kinds = {event.kind for event in events}
            assert EventKind.RUN_CREATED in kinds
            if step != "created":
                assert EventKind.RUN_CLAIMED in kinds
            if step == "wrote":
                assert len(events) >= int(rest[1])
        known = {run for _, run, *_ in acknowledged}
        for row in reader.runs():
            nodes = reader.nodes(row.run_id)
            assert [node.key for node in nodes] == ["a", "b"]
            if row.run_id in known:
                known.discard(row.run_id)
            for node in nodes:
                if node.status is Status.COMPLETED:
                    assert reader.output(row.run_id, node.key) is not None
        assert known == set()


def test_a_run_is_listed_whole_or_not_at_all_when_its_creation_is_killed_at_any_statement(tmp_path: Path) -> None:
    """S3: the writer dies at its nth SQL statement after the store was opened, for every n of a creation and a claim."""
    script = WRITER.replace(
        'print("ready", flush=True)',
        "import os\n"
        "left = int(sys.argv[4])\n"
        "def die(statement):\n"
        "    global left\n"
        "    left -= 1\n"
        "    if left < 0:\n"
        "        os.kill(os.getpid(), 9)\n"
        "setting.store._connection.set_trace_callback(die)\n"
        'print("ready", flush=True)',
    )
    folder = tmp_path / "home"
    for number in range(0, 40, 3):
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder), ROOT, str(number), str(number)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        said = [line.split() for line in done.stdout.splitlines()[1:]]
        home = Home.open(folder, create=True)
        check_acknowledged(home, said)
        with Reader.open(home) as reader:
            for row in reader.runs():
                assert re.fullmatch("planned|running", row.status)
                reader.plan(reader.run(row.run_id).record.plan_sha256)
