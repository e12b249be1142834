"""The generation of a run is raised while its owner is stopped in mid-node: continued, the old owner does no harm."""

import json
import os
import signal
import sqlite3
from pathlib import Path

from store.claiming import take
from store.clock import SystemClock
from store.heads import read_head
from store.home import Home
from store.hosts import HostIdentity
from store.limits import Limits
from tests.crash.support import events, hosting, hostler, processes_of, show, top
from tests.support import until

FLOW = """
from pathlib import Path

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Given(BaseModel):
    folder: str


TREE = "trap '' TERM; setsid sh -c 'trap \\"\\" TERM; while :; do sleep 0.05; done' & while :; do sleep 0.05; done"


def body(ctx, input: Given) -> Given:
    with Path(input.folder, ctx.node).open("a") as ledger:
        print(ctx.attempt, file=ledger)
    ctx.run(["sh", "-c", TREE])
    return input


live = operation("test.live", version=1, policy=Policy(
    effect="project-mutation", resume="non-resumable-live", claims={"ffmpeg": 1}))(body)
paid = operation("test.paid", version=1, policy=Policy(
    effect="project-mutation", resume="ambiguous-after-dispatch", claims={"network": 1}))(body)


@workflow("stopped", version=1)
def stopped(build, folder: str):
    made = [build.call(each, key=each.kind.removeprefix("test."), input={"folder": folder}) for each in (live, paid)]
    build.call(live, key="never", input={"folder": folder}, after=made)
    return {}
"""


def raise_generation(run_id: str) -> HostIdentity:
    """Take the run as a takeover would that the kernel's lock does not allow; return who has it now."""
    home = Home.open(Path(os.environ["HOSTLER_HOME"]), create=False)
    identity = HostIdentity.register(home)
    connection = sqlite3.connect(home.database, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    take(connection, read_head(connection, run_id), identity.host_id, SystemClock().now(), Limits())
    connection.execute("COMMIT")
    connection.close()
    return identity


def test_a_stopped_owner_cannot_be_taken_over_and_once_it_was_it_writes_nothing_and_ends_its_processes(tmp_path):
    """R12."""
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    with hosting("run", str(flow), "-i", f"folder={tmp_path}") as host:
        run_id = host.stdout.readline().strip()
        until(lambda: len([name for name in processes_of(run_id).values() if name == "sh"]) == 4)
        os.kill(host.pid, signal.SIGSTOP)
        refused = hostler("resume", run_id)
        assert refused.returncode == 5, "a merely stopped owner cannot be taken over"
        taker = raise_generation(run_id)
        before = json.dumps(events(run_id))
        os.kill(host.pid, signal.SIGCONT)
        said = host.communicate(timeout=60)[0]
        assert host.returncode == 5, said
        assert "no longer in force" in said
    assert processes_of(run_id) == {}, "it left before its processes had ended"
    assert json.dumps(events(run_id)) == before, "it wrote something"
    assert top()["tickets"] == []
    taker.close()

    assert hostler("resume", run_id).returncode == 3
    assert [node["status"] for node in show(run_id)["nodes"]] == ["ambiguous", "ambiguous", "pending"]
    assert [(tmp_path / key).read_text() for key in ("live", "paid")] == ["1\n", "1\n"], "executed once"
