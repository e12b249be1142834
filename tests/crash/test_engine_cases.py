"""Publication keys across processes, a host that is told to stop again and again, and a reconciler that hangs."""

import os
import signal
from pathlib import Path

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
        build.call(publish, key=f"n{number}", input={"folder": folder, "target": f"{folder}/./x/../film.mp4"})
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
    """R4."""
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    arguments = ("run", f"{flow}:publishing", "-i", f"folder={tmp_path}", "--jobs", "3")
    with hosting(*arguments) as one, hosting(*arguments) as other:
        said = [host.communicate(timeout=60)[0] for host in (one, other)]
        assert [one.returncode, other.returncode] == [0, 0], said
    assert not (tmp_path / "together").exists()
    published = lines(tmp_path, "published")
    assert len(published) == 6


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
        "what the attempt did could not be found out: stopped by timeout"
    ]
    (tmp_path / "hang").unlink()
    assert hostler("resume", run_id).returncode == 0
    assert len(lines(tmp_path, "calls")) == 1
    assert len(lines(tmp_path, "looks")) == 2
