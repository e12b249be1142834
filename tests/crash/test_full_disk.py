"""The disk with the state folder fills up in the middle of a run: it stops by name, and goes on once there is room."""

from pathlib import Path

import pytest

from tests.crash.support import ROOT
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
    return [done.returncode, done.stderr]
answers = {"run": hostler("run", str(folder / "flow.py"), "-i", f"folder={folder}"), "full": hostler("show", "-")}
(disk / "filler").unlink()
answers["resume"] = hostler("resume", "-")
answers["verified"] = hostler("events", "-")
print(json.dumps(answers))
"""


def test_a_run_stops_by_name_on_a_full_disk_and_completes_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    answers = on_small_disk(tmp_path / "disk", "6m", SCRIPT)
    code, said = answers["run"]  # type: ignore[misc]
    assert code == 69, said  # type: ignore[has-type]
    errors = [line for line in said.splitlines() if "error[" in line]  # type: ignore[has-type]
    assert len(errors) == 1
    assert errors[0].startswith("hostler: error[unavailable]: ")
    assert "make room" in errors[0]
    assert answers["full"] == [0, ""]
    assert answers["resume"][0] == 0, answers  # type: ignore[index]
    assert answers["verified"] == [0, ""]
    steps = (tmp_path / "steps.log").read_text().splitlines()
    assert steps == ["fill 1", "large 1", "large 2"]
