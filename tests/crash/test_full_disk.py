"""The disk with the state folder fills up in the middle of a run: it stops by name, and goes on once there is room."""

from pathlib import Path
from typing import Any

import pytest

from tests.crash.support import ROOT
from tests.end_to_end.support import command, graph
from tests.store.test_faults import on_small_disk

FLOW = """
from pathlib import Path

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Given(BaseModel):
    folder: str
    n: int


class Made(BaseModel):
    text: str


def note(ctx, input):
    with (Path(input.folder) / "steps.log").open("a") as log:
        print(ctx.node, ctx.attempt, file=log)


@operation("test.fill", version=1, policy=Policy(effect="local-derived-write"))
def fill(ctx, input: Given) -> Made:
    note(ctx, input)
    with (Path(input.folder) / "disk" / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
    return Made(text="full")


@operation("test.large", version=1, policy=Policy(effect="local-derived-write"))
def large(ctx, input: Given) -> Made:
    note(ctx, input)
    return Made(text="x" * 400_000)


@workflow("fills", version=1)
def fills(build, folder: str):
    build.call(fill, key="fill", input={"folder": folder, "n": 0})
    build.call(large, key="large", input={"folder": folder, "n": 1}, after=["fill"])
    return {}
"""

SCRIPT = """
import json, os, subprocess, sys
from pathlib import Path
disk = Path(sys.argv[1])
folder = disk.parent
os.environ["HOSTLER_HOME"] = str(disk / "home")
def hostler(*words):
    done = subprocess.run([sys.executable, "-m", "hostler", *words], capture_output=True, text=True)
    return done.stdout if "--json" in words else [done.returncode, done.stderr]
run = ("run", str(folder / "flow.py"), "-i", f"folder={folder}")
answers = {"run": hostler(*run), "full": hostler("show", "-")}
answers["refused"] = [hostler(*words) for words in (run, ("resume", "-"), ("submit", *run[1:]))]
answers["runs"] = json.loads(hostler("runs", "--json"))["runs"]
(disk / "filler").unlink()
answers["resume"] = hostler("resume", "-")
answers["verified"] = hostler("events", "-")
print(json.dumps(answers))
"""


def test_a_run_stops_by_name_on_a_full_disk_and_completes_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S14, field case 48: what was acknowledged stays, and one line says what to do."""
    (tmp_path / "flow.py").write_text(FLOW)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    answers: Any = on_small_disk(tmp_path / "disk", "6m", SCRIPT)
    for code, said in (answers["run"], *answers["refused"]):
        assert code == 69, said
        (error,) = [line for line in said.splitlines() if "error[" in line]
        assert error.startswith("hostler: error[unavailable]: the disk is full: ")
        assert "make room" in error
    assert answers["full"] == [0, ""]
    assert len(answers["runs"]) == 1, "a run was taken without room for it"
    assert answers["resume"][0] == 0, answers
    assert answers["verified"] == [0, ""]
    steps = (tmp_path / "steps.log").read_text().splitlines()
    assert steps == ["fill 1", "large 1"], "a step began without room for its result"


CUT = """
import json, os, subprocess, sys
from pathlib import Path
disk = Path(sys.argv[1])
os.environ["HOSTLER_HOME"] = str(disk / "home")
def hostler(*words):
    done = subprocess.run([sys.executable, "-m", "hostler", *words], capture_output=True, text=True)
    return [done.returncode, done.stdout]
answers = {"run": hostler("run", str(disk.parent / "graph.json"))}
answers["show"] = hostler("show", "-")
answers["json"] = json.loads(hostler("show", "-", "--json")[1])["nodes"]
answers["log"] = hostler("logs", "-", "noisy")[1][-100:]
answers["verify"] = hostler("verify", "-")
print(json.dumps(answers))
"""
NOISY = 'dd if=/dev/zero of="$0" bs=4096 2>/dev/null; head -c 1000000 /dev/zero | tr "\\0" x; rm "$0"'
"""Fills the disk, writes more than a pipe holds, and makes room again; so the end of the run can be recorded."""


def test_a_log_that_a_full_disk_cuts_is_told_of_in_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never silently: in what `run` and `show` print, in the log itself once there is room, and as an event."""
    noisy = command("noisy", "sh", "-c", NOISY, str(tmp_path / "disk" / "filler"))
    graph(tmp_path, noisy, command("quiet", "echo", "done", after=("noisy",)), name="graph")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    answers: Any = on_small_disk(tmp_path / "disk", "6m", CUT)
    line = "log cut: stdout of noisy, attempt 1, lacks up to "
    for name in ("run", "show"):
        code, said = answers[name]
        assert code == 0, said
        (cut,) = [row for row in said.splitlines() if row.startswith(line)]
        assert cut.endswith(" bytes: No space left on device")
    nodes = {node["key"]: node for node in answers["json"]}
    # the note of which program it was may come too late for the disk as well
    (cut,) = [cut for cut in nodes["noisy"]["log_cuts"] if cut["stream"] != "program"]
    assert (cut["attempt"], cut["stream"], cut["message"]) == (1, "stdout", "No space left on device")
    assert 0 < cut["bytes"] <= 1_000_000
    assert "log_cuts" not in nodes["quiet"]
    assert f"[hostler: {cut['bytes']} bytes dropped here]" in answers["log"]
    assert answers["verify"][0] == 0


COLLECTED = """
import json, os, subprocess, sys
from pathlib import Path
disk = Path(sys.argv[1])
os.environ["HOSTLER_HOME"] = str(disk / "home")
def hostler(*words):
    done = subprocess.run([sys.executable, "-m", "hostler", *words], capture_output=True, text=True)
    return [done.returncode, done.stderr]
def free():
    return os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
run = ("run", str(disk.parent / "flow.py"))
answers = {"run": hostler(*run)}
with (disk / "filler").open("wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)) == 4096:
            pass
    except OSError:
        pass
answers["full"] = [free(), hostler(*run)[0]]
answers["gc"] = hostler("gc", "--older-than", "0s")
answers["made"] = free()
answers["reserve"] = (disk / "home" / "reserve").stat().st_size
answers["again"] = hostler(*run, "-i", "count=2")
answers["verify"] = hostler("verify", "--all")
print(json.dumps(answers))
"""
ROWS = """
from pydantic import BaseModel
from hostler import Policy, operation, workflow
class Given(BaseModel):
    n: int
class Made(BaseModel):
    text: str
@operation("test.row", version=1, policy=Policy())
def row(ctx, input: Given) -> Made:
    return Made(text=f"{input.n:09d}" * 22_000)
@workflow("rows", version=1)
def rows(build, count: int = 20):
    for n in range(count):
        build.call(row, key=f"n{n}", input={"n": n})
    return {}
"""
"""Leaves 4 MB of rows, of which none is so large that it lies in a file."""


def test_gc_makes_room_on_a_disk_that_is_full_to_the_last_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the words of a full disk suggest; to remove rows takes room in the log before it gives any back."""
    (tmp_path / "flow.py").write_text(ROWS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    answers: Any = on_small_disk(tmp_path / "disk", "12m", COLLECTED)
    assert answers["run"][0] == 0, answers
    assert answers["full"] == [0, 69]
    assert answers["gc"] == [0, ""]
    assert answers["made"] > 2 << 20
    assert answers["reserve"] == 1 << 20
    assert answers["again"][0] == 0, answers
    assert answers["verify"] == [0, ""]
