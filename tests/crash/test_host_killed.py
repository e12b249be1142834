"""kill -9 of a host in the middle of ffmpeg, and of hosts at many other moments."""

import itertools
import json
import os
import random
import signal
from pathlib import Path

import pytest

from tests.crash.support import events, hosting, hostler, processes_of, show, top
from tests.support import until

FLOW = """
from pathlib import Path

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Given(BaseModel):
    folder: str
    ffmpeg: str
    seconds: int


class Made(BaseModel):
    path: str


@operation("test.once", version=1, policy=Policy(effect="local-derived-write", claims={"ffmpeg": 1}))
def once(ctx, input: Given) -> Made:
    with (Path(input.folder) / "once.log").open("a") as log:
        print(ctx.idempotency_key, file=log)
    return Made(path=input.folder)


@operation("test.encode", version=1, policy=Policy(effect="local-derived-write", claims={"ffmpeg": 2}))
def encode(ctx, input: Given) -> Made:
    film = ctx.workspace / "film.mp4"
    seconds = 600 if ctx.attempt == 1 else input.seconds  # the first goes on until it is ended, however late that is
    ctx.run([input.ffmpeg, "-nostdin", "-v", "error", "-y", "-re", "-f", "lavfi",
             "-i", f"testsrc2=size=160x90:rate=10:duration={seconds}", "-c:v", "libx264", "-preset", "ultrafast",
             f"file:{film}"])
    return Made(path=str(ctx.publish(film, Path(input.folder) / "film.mp4")))


@workflow("film", version=1)
def film(build, folder: str, ffmpeg: str, seconds: int):
    given = {"folder": folder, "ffmpeg": ffmpeg, "seconds": seconds}
    first = build.call(once, key="once", input=given)
    made = build.call(encode, key="encode", input={**given, "folder": first["path"]})
    return {"path": made["path"]}
"""


def duration(path: Path) -> float:
    av = pytest.importorskip("av")
    with av.open(str(path)) as film:
        return float(film.duration / av.time_base)


@pytest.mark.media
def test_ffmpeg_outlives_its_killed_host_keeps_its_capacity_and_is_ended_by_the_resume(tmp_path):
    """Field case 1."""
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra `media` is not installed")
    pytest.importorskip("av", reason="the extra `media` is not installed")
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    inputs = {"folder": str(tmp_path), "ffmpeg": imageio_ffmpeg.get_ffmpeg_exe(), "seconds": 3}
    (tmp_path / "inputs.json").write_text(json.dumps(inputs))

    with hosting("run", str(flow), "--input", str(tmp_path / "inputs.json")) as host:
        run_id = host.stdout.readline().strip()
        (encoder,) = until(lambda: [pid for pid, name in processes_of(run_id).items() if name.startswith("ffmpeg")])
        host.kill()
        host.wait()

    # the capacity stays with ffmpeg, and everybody can see who has it
    (ticket,) = top()["tickets"]
    assert ticket["state"] == "admitted"
    assert ticket["claims"] == {"ffmpeg": 2}
    assert encoder in {process["pid"] for process in ticket["processes"]}
    assert hostler("exec", "--claim", "ffmpeg=1", "--wait", "0s", "--", "true").returncode == 75
    assert not (tmp_path / "film.mp4").exists()
    lost = show(run_id)
    assert lost["status"] == "running"
    assert lost["owner"]["alive"] is False

    resumed = hostler("resume", "-")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert encoder not in processes_of(run_id)
    assert processes_of(run_id) == {}
    nodes = {node["key"]: node for node in show(run_id)["nodes"]}
    assert (nodes["once"]["attempt"], nodes["encode"]["attempt"]) == (1, 2)
    assert (tmp_path / "once.log").read_text().splitlines() == [f"{run_id}:once:1"]
    assert duration(tmp_path / "film.mp4") == pytest.approx(3.0, abs=0.3)
    (leftover,) = [event for event in events(run_id) if event["kind"] == "leftover"]
    assert str(encoder) in json.dumps(leftover["data"])
    assert top()["tickets"] == []


STEPS = """
import os
from pathlib import Path

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Step(BaseModel):
    folder: str
    n: int


@operation("test.step", version=1, policy=Policy(effect="local-derived-write", claims={"cpu": 1}))
def step(ctx, input: Step) -> Step:
    with (Path(input.folder) / "steps.log").open("a") as log:
        print(f"{ctx.node} {ctx.attempt}", file=log)
    ctx.run(["sleep", "0.02"])
    return Step(folder=input.folder, n=input.n + 1)


@workflow("steps", version=1)
def steps(build, folder: str):
    last = None
    for index in range(12):
        given = {"folder": folder, "n": 0 if last is None else last["n"]}
        last = build.call(step, key=f"s{index:02d}", input=given)
    return {"n": last["n"]}
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_again_and_again_ends_with_every_finished_step_done_once(tmp_path, seed):
    """Field case 61: whatever was completed before a kill is not started again; what was interrupted is."""
    rng = random.Random(seed)
    flow = tmp_path / "steps.py"
    flow.write_text(STEPS)
    completed: set[str] = set()
    with hosting("run", str(flow), "-i", f"folder={tmp_path}") as host:
        run_id = host.stdout.readline().strip()
        kill_after(host, rng.randint(1, 6))
    for _ in range(4):
        completed |= finished(run_id)
        started_before = started(tmp_path)
        with hosting("resume", run_id) as host:
            kill_after(host, rng.randint(1, 6))
        again = set(started(tmp_path)[len(started_before) :])
        assert not again & completed, "a finished step ran again"
    last = hostler("resume", run_id)
    assert last.returncode == 0, last.stdout + last.stderr
    assert show(run_id)["outputs"] == {"n": 12}
    assert processes_of(run_id) == {}
    assert top()["tickets"] == []
    check_chain(events(run_id))


def kill_after(host, lines: int) -> None:
    for _ in range(lines):
        if not host.stdout.readline():
            return
    os.kill(host.pid, signal.SIGKILL)
    host.wait()


def started(folder: Path) -> list[str]:
    log = folder / "steps.log"
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def finished(run_id: str) -> set[str]:
    return {node["key"] for node in show(run_id)["nodes"] if node["status"] == "completed"}


def check_chain(log) -> None:
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    for before, after in itertools.pairwise(log):
        assert after["prev_sha256"] == before["sha256"]
