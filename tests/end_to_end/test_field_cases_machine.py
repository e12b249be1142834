"""More troubles that people reported of other queues: of slots, descriptors, paths, logs, modes and forks."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hostres.logs import KEEP_BYTES
from tests.end_to_end.support import command, graph, hostler, shown, started

ENCODER = """#!/bin/sh
for number in 1 2 3; do
  if mkdir "$0.session.$number" 2>/dev/null; then
    echo running; sleep 0.1; rmdir "$0.session.$number"; exit 0
  fi
done
echo "OpenEncodeSessionEx failed: out of memory (10)" >&2
exit 1
"""
"""A card that allows three sessions, whoever asks."""


def test_sessions_of_a_hardware_encoder_are_a_resource_like_any_other(tmp_path: Path) -> None:
    """Field case 38: ten from three programs, three at a time, and none fails."""
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\nencoder-session = 3\n")
    encoder = tmp_path / "encoder"
    encoder.write_text(ENCODER)
    encoder.chmod(0o755)
    claims = {"encoder-session": 1}
    runs = []
    for number in range(3):
        nodes = [command(f"n{each}", str(encoder), claims=claims) for each in range(4 if number == 0 else 3)]
        runs.append(started("run", graph(tmp_path, *nodes, name=f"w{number}"), "--jobs", "4"))
    for run in runs:
        with run as process:
            assert process.wait(timeout=60) == 0


FLAT = """
import os
from pydantic import BaseModel
from hostler import Host, Policy, operation, workflow

class Number(BaseModel):
    n: int

def run(ctx, n):
    ctx.run(["sh", "-c", ["exit 0", "exit 1", "exec sleep 600"][n % 3]])

@operation("test.step", version=1, policy=Policy(
    effect="local-derived-write", claims={"local-io": 1}, max_seconds=0.3))
def step(ctx, input: Number) -> Number:
    run(ctx, input.n)
    return input

@workflow("some", version=1)
def some(build):
    for n in range(12):
        build.call(step, key=f"n{n}", input={"n": n})
    return {}

counts = []
with Host(jobs=4) as host:
    for round in range(5):
        host.submit(some).wait(60)
        counts.append(len(os.listdir("/proc/self/fd")))
print(counts)
"""


def test_steps_that_end_or_fail_or_are_stopped_leave_no_descriptor() -> None:
    """Field case 45: else after some thousand "too many open files" comes from whatever happens next."""
    done = subprocess.run(
        [sys.executable, "-c", FLAT], capture_output=True, text=True, timeout=100, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert max(counts[2:]) <= max(counts[:2]), counts


def test_where_descriptors_run_out_steps_fail_clean_and_are_tried_again(tmp_path: Path) -> None:
    """Field case 45: the store and the log stay usable meanwhile."""
    retry = {"attempts": 16, "delays": {"first_s": 0.1}, "codes": ["unavailable"]}
    nodes = [command(f"n{number:02}", "sh", "-c", "sleep 0.2; echo said", retry=retry) for number in range(12)]
    argv = ["prlimit", "--nofile=50", sys.executable, "-m", "hostler", "run", graph(tmp_path, *nodes), "--jobs", "12"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False, env=os.environ)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    tries = {node["key"]: node["attempt"] for node in shown("-")["nodes"]}
    assert max(tries.values()) > 1, "some of them met the limit"
    assert hostler("verify", "-")


def test_a_program_that_only_the_service_does_not_find_is_told_with_the_path_that_was_searched(tmp_path: Path) -> None:
    """Field case 80: people are told to install what they have."""
    tool = tmp_path / "bin" / "mytool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    flow = graph(tmp_path, command("use", "mytool"))
    with started("run", flow, PATH="/usr/bin:/bin") as run:
        assert run.wait(timeout=60) == 1
    (node,) = shown("-")["nodes"]
    assert "there is no program mytool in PATH=/usr/bin:/bin" in node["failure"]["message"]
    assert "PATH" in node["failure"]["todo"]
    with started("run", flow, PATH=f"{tool.parent}:/usr/bin:/bin") as run:
        assert run.wait(timeout=60) == 0


def test_logs_of_a_run_are_bounded_however_much_its_programs_say(tmp_path: Path) -> None:
    """Field case 82: of each stream the first and the last part."""
    noisy = "head -c 12000000 /dev/zero | tr '\\0' e >&2; echo done"
    run_id = hostler("run", graph(tmp_path, *(command(f"n{each}", "sh", "-c", noisy) for each in range(3)))).split()[0]
    folder = Path(os.environ["HOSTLER_HOME"]) / "logs" / run_id
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < 3 * (KEEP_BYTES + 1000)


@pytest.mark.parametrize("umask", ["000", "777"])
def test_everything_is_private_from_its_making_whatever_the_umask(tmp_path: Path, umask: str) -> None:
    """Field case 97: also what is there for a moment only, which a program of the run sees."""
    places = (os.environ["HOSTLER_HOME"], os.environ["HOSTLER_MACHINE_DIR"])
    look = f"find {' '.join(places)} -not -type l -perm /077 -print"
    flow = graph(tmp_path, command("look", "sh", "-c", look, claims={"cpu": 1}))
    done = subprocess.run(
        ["sh", "-c", f'umask {umask}; exec "$@"', "sh", sys.executable, "-m", "hostler", "run", flow],
        capture_output=True, text=True, timeout=60, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert hostler("logs", "-", "look") == ""
    for place in places:
        for path in (Path(place), *Path(place).rglob("*")):
            mode = path.lstat().st_mode
            assert stat.S_IMODE(mode) & 0o077 == 0 or path.is_relative_to(Path(place) / "staging"), path


CLIENT = """
import multiprocessing, sys, threading
from pathlib import Path
from hostler import Host

GRAPH = Path(__file__).with_name("test.json") if "__file__" in globals() else Path("test.json")

def use(where):
    from hostler.loading import load
    with Host() as host:
        run = host.submit(load(str(GRAPH), folder=GRAPH.parent))
        assert run.wait(60).status == "completed", where

if __name__ == "__main__":
    assert threading.active_count() == 1, "importing starts no thread"
    if sys.argv[1] == "thread":
        thread = threading.Thread(target=use, args=("thread",))
        thread.start()
        thread.join()
    elif sys.argv[1] == "itself":
        use("itself")
    else:
        process = multiprocessing.get_context(sys.argv[1]).Process(target=use, args=(sys.argv[1],))
        process.start()
        process.join()
        assert process.exitcode == 0
    print("done")
"""


@pytest.mark.parametrize("way", ["itself", "thread", "fork", "forkserver", "spawn", "-c"])
def test_a_program_uses_it_from_wherever_it_is(tmp_path: Path, way: str) -> None:
    """Field case 100: forked, spawned, from a thread, and from code without a file."""
    graph(tmp_path, command("say", "true"))
    (tmp_path / "client.py").write_text(CLIENT)
    argv = ["-c", CLIENT, "itself"] if way == "-c" else ["client.py", way]
    done = subprocess.run(
        [sys.executable, *argv], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False, env=os.environ
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_program_that_a_name_meant_is_kept_with_the_run(tmp_path: Path) -> None:
    """Case 80: in another environment the same name means another one."""
    folder = tmp_path / "tools"
    folder.mkdir()
    tool = folder / "say-it"
    tool.write_text("#!/bin/sh\necho here\n", encoding="utf-8")
    tool.chmod(0o755)
    workflow = graph(tmp_path, command("say", "say-it"))
    hostler("run", workflow, PATH=f"{folder}:{os.environ['PATH']}")
    shape = json.loads(hostler("logs", "-", "say", "--json"))
    assert [process["program"] for process in shape["processes"]] == [str(tool)]
    assert "say-it" not in hostler("logs", "-", "say")
    assert "verified" in hostler("verify", "-")
