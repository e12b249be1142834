"""kill -9 of a host whose nodes run in worker processes, and of workers: nothing runs on unseen, nothing runs twice."""

import json
import os
import signal

from hostres.procfs import read_process
from tests.crash.support import events, hosting, hostler, processes_of, show, top
from tests.support import until

FLOW = """
import os
import time
from pathlib import Path

from pydantic import BaseModel

from hostler import Policy, compute, operation, workflow


class Given(BaseModel):
    folder: str


def note(folder, name):
    with (Path(folder) / "ran.log").open("a") as log:
        print(name, file=log)
    beside = Path(folder) / f".{name}"
    beside.write_text(str(os.getpid()))
    beside.rename(Path(folder) / f"{name}.pid")


@operation("test.tool", policy=Policy(
    effect="local-derived-write", claims={"ffmpeg": 2}, isolation="process"))
def tool(ctx, input: Given) -> Given:
    note(input.folder, f"tool-{ctx.attempt}")
    if ctx.attempt == 1:
        ctx.run(["sleep", "600"])
    return input


@operation("test.paid", policy=Policy(
    effect="project-mutation", resume="ambiguous-after-dispatch", claims={"network": 1}, isolation="process"))
def paid(ctx, input: Given) -> Given:
    note(input.folder, "paid")
    time.sleep(600)
    return input


@compute
def counts(input):
    note(input, "counts")
    time.sleep(600)


@workflow("killed")
def killed(build, folder: str):
    build.call(tool, key="tool", input={"folder": folder})
    build.call(paid, key="paid", input={"folder": folder})
    build.call(counts, key="counts", input=folder)
"""


def is_gone(pid: int) -> bool:
    process = read_process(pid)
    return process is None or process.gone


def is_stopped(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and process.state == "T"


def test_a_killed_host_takes_its_workers_along_and_what_is_left_is_ended_before_anything_runs_again(tmp_path):
    """The tool keeps the capacity it uses; a worker that is stopped cannot see its host die, and is found."""
    (tmp_path / "flow.py").write_text(FLOW)
    names = ("tool-1", "paid", "counts")
    with hosting("run", str(tmp_path / "flow.py"), "--jobs", "3", "-i", f"folder={tmp_path}") as host:
        run_id = host.stdout.readline().strip()
        files = {name: tmp_path / f"{name}.pid" for name in names}
        until(lambda: all(file.exists() for file in files.values()), timeout=60)
        workers = {name: int(file.read_text()) for name, file in files.items()}
        (sleeper,) = until(lambda: [pid for pid, name in processes_of(run_id).items() if name == "sleep"], timeout=60)
        os.kill(workers["paid"], signal.SIGSTOP)
        until(lambda: is_stopped(workers["paid"]))  # until then another of its threads may still see the host go
        host.kill()
        host.wait()

    until(lambda: is_gone(workers["tool-1"]), timeout=60)
    until(lambda: is_gone(workers["counts"]), timeout=60)
    assert set(processes_of(run_id)) == {sleeper, workers["paid"]}
    held = {ticket["claims"].popitem(): [each["pid"] for each in ticket["processes"]] for ticket in top()["tickets"]}
    assert held == {("ffmpeg", 2): [sleeper], ("network", 1): [workers["paid"]]}

    resumed = hostler("resume", "-")
    assert resumed.returncode == 3, resumed.stdout + resumed.stderr
    assert processes_of(run_id) == {}
    assert top()["tickets"] == []
    nodes = {node["key"]: (node["status"], node["attempt"]) for node in show(run_id)["nodes"]}
    assert nodes == {"tool": ("completed", 2), "paid": ("ambiguous", 1), "counts": ("ambiguous-code", 1)}
    ran = (tmp_path / "ran.log").read_text().split()
    assert sorted(ran) == ["counts", "paid", "tool-1", "tool-2"]
    left = json.dumps([event["data"] for event in events(run_id) if event["kind"] == "leftover"])
    assert str(sleeper) in left
    assert str(workers["paid"]) in left


def test_a_killed_worker_fails_its_node_and_what_it_had_started_ends_with_it(tmp_path):
    """Somebody, or the kernel out of memory, kills the one process; its tool must not go on without it."""
    (tmp_path / "flow.py").write_text(
        FLOW.replace('build.call(paid, key="paid"', "(")
        .replace('build.call(counts, key="counts", input=folder)', "")
        .replace('(, input={"folder": folder})', "...")
    )
    with hosting("run", str(tmp_path / "flow.py"), "-i", f"folder={tmp_path}") as host:
        run_id = host.stdout.readline().strip()
        file = tmp_path / "tool-1.pid"
        until(file.exists, timeout=60)
        (sleeper,) = until(lambda: [pid for pid, name in processes_of(run_id).items() if name == "sleep"], timeout=60)
        os.kill(int(file.read_text()), signal.SIGKILL)
        assert host.wait(timeout=60) == 1
    assert is_gone(sleeper)
    assert top()["tickets"] == []
    (node,) = show(run_id)["nodes"]
    assert node["status"] == "failed"
    assert node["failure"]["code"] == "subprocess"
    assert "killed from outside by signal 9" in node["failure"]["message"]
    assert node["failure"]["retryable"] is True
