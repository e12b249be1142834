"""Publication keys across processes, a host that is told to stop again and again, and a reconciler that hangs."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from hostler import Host
from hostler.compiler import compile_workflow
from hostler.loading import load
from hostler.stored_runs import reading
from scripts.soaking.checks import read_ledger
from scripts.soaking.torment import FLOW as FLOW_OF_SOAK
from scripts.soaking.torment import HOST as HOST_OF_SOAK
from store.lifecycle import RUN_FINAL, RunStatus
from tests.crash.support import events, hosting, hostler, processes_of, show, top
from tests.crash.test_reconciliation import FLOW as SHOP
from tests.crash.test_reconciliation import killed_in_mid_call, lines
from tests.support import until

FLOW = """
import fcntl
from pathlib import Path

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Given(BaseModel):
    folder: str
    target: str = "one"


@operation("test.publish", version=1, policy=Policy(effect="local-derived-write", publishes=("target",)))
def publish(ctx, input: Given) -> Given:
    with Path(input.folder, "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            Path(input.folder, "together").touch()
        with Path(input.folder, "published").open("a") as log:
            print(ctx.run_id, file=log)
        ctx.run(["sleep", "0.1"])
    return input


@workflow("publishing", version=1)
def publishing(build, folder: str):
    for number in range(3):
        target = f"{folder}/link/film.mp4" if number else f"{folder}/./x/../film.mp4"
        build.call(publish, key=f"n{number}", input={"folder": folder, "target": target})
    return {}


DEAF = "trap '' TERM INT HUP; echo up > $1; setsid sleep 600 & while :; do sleep 0.05; done"


@operation("test.deaf", version=1, policy=Policy(effect="local-derived-write", claims={"ffmpeg": 1}))
def deaf(ctx, input: Given) -> Given:
    up = Path(input.folder, "up")
    if not Path(input.folder, "enough").exists():
        ctx.run(["sh", "-c", DEAF, "sh", up])
    return input


@workflow("deaf", version=1)
def hearing_nothing(build, folder: str):
    build.call(deaf, key="deaf", input={"folder": folder})
    return {}
"""


def test_nodes_with_one_publication_key_never_run_together_also_in_two_processes(tmp_path: Path) -> None:
    """R4, field case 19: one file, however its name is written, also through a linked folder."""
    (tmp_path / "link").symlink_to(tmp_path)
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    arguments = ("run", f"{flow}:publishing", "-i", f"folder={tmp_path}", "--jobs", "3")
    with hosting(*arguments) as one, hosting(*arguments) as other:
        said = [host.communicate(timeout=60)[0] for host in (one, other)]
        assert [one.returncode, other.returncode] == [0, 0], said
    assert not (tmp_path / "together").exists()
    published = lines(tmp_path, "published")
    assert len(published) == 6


def test_five_hosts_that_start_at_once_share_the_runs_and_reach_each_body_once(tmp_path: Path) -> None:
    """Field case 22: nobody takes what another has, and nobody ends for that reason."""
    (tmp_path / "ledger").touch()
    arguments = {"folder": str(tmp_path), "nodes": 12, "kinds": ["step", "order", "pure"], "seconds": 0.0}
    with Host(jobs=1) as creator:
        for seed in range(10):
            compiled = compile_workflow(
                load(f"{FLOW_OF_SOAK}:soak", folder=tmp_path),
                {**arguments, "seed": seed},
                folder=tmp_path,
                max_nodes=64,
            )
            creator.create(compiled)
        crowd = [
            subprocess.Popen([sys.executable, str(HOST_OF_SOAK)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(5)
        ]
        with reading() as (_, reader):
            until(lambda: all(row.status in RUN_FINAL for row in reader.runs()), timeout=50)
            assert {row.status for row in reader.runs()} == {RunStatus.COMPLETED}
            noticed = [node for row in reader.runs() for node in reader.nodes(row.run_id) if node.key[0] != "p"]
        said = [host.communicate(timeout=60)[1] for host in crowd]
    assert [host.returncode for host in crowd] == [0] * 5, said
    assert all(node.attempt == 1 for node in noticed)
    reached = Counter(line[1:] for line in read_ledger(tmp_path))
    assert len(reached) == len(noticed)
    assert set(reached.values()) == {1}


def test_a_host_told_to_stop_thrice_kills_what_is_deaf_before_it_hands_the_run_over(tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    with hosting("run", f"{flow}:hearing_nothing", "-i", f"folder={tmp_path}") as host:
        assert host.stdout is not None
        reading = host.stdout
        run_id = reading.readline().strip()
        until(lambda: (tmp_path / "up").exists() and len(processes_of(run_id)) >= 3)
        os.kill(host.pid, signal.SIGTERM)
        until(lambda: "stopping" in reading.readline())
        os.kill(host.pid, signal.SIGINT)
        os.kill(host.pid, signal.SIGHUP)
        said = host.communicate(timeout=60)[0]
        assert host.returncode == 130, said
        assert processes_of(run_id) == {}, "it left before what it had started was dead"
    (node,) = show(run_id)["nodes"]
    assert (node["status"], node["attempt"]) == ("ready", 1)
    assert top()["tickets"] == []
    (tmp_path / "enough").touch()
    assert hostler("resume", run_id).returncode == 0
    assert "cleanup-error" not in {event["kind"] for event in events(run_id)}


def test_a_reconciler_that_hangs_lets_its_claim_go_at_its_deadline_and_a_later_resume_completes(tmp_path: Path) -> None:
    """R11."""
    flow = tmp_path / "flow.py"
    flow.write_text(SHOP.replace("max_seconds=60", "max_seconds=1.5"))
    (tmp_path / "hang").touch()
    run_id = killed_in_mid_call(["run", str(flow), "-i", f"ledger={tmp_path}"], tmp_path)
    hostler("resume", run_id)
    (node,) = show(run_id)["nodes"]
    assert node["status"] == "running", "what it did is still not known"
    assert top()["tickets"] == [], "its claim is free"
    assert [event["data"]["message"] for event in events(run_id) if event["kind"] == "cleanup-error"] == [
        "what the attempt did could not be found out: its reconciler ran out of its time"
    ]
    (tmp_path / "hang").unlink()
    assert hostler("resume", run_id).returncode == 0
    assert len(lines(tmp_path, "calls")) == 1
    assert len(lines(tmp_path, "looks")) == 2
