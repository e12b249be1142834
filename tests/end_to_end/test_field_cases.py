"""Troubles that people reported of other queues, tried on the real program; the numbers are those of the reports."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.crash.support import top
from tests.end_to_end.support import (
    command,
    gate,
    graph,
    hostler,
    read_until,
    shown,
    started,
    told,
)
from tests.support import until


def test_a_process_that_somebody_stopped_is_named_with_what_continues_it(tmp_path: Path) -> None:
    """Field case 8: as by a terminal that it touched, it would be "running" for ever."""
    with started("run", graph(tmp_path, command("work", "sh", "-c", "kill -STOP $$; echo on"))) as run:
        run_id = read_until(run, "work  running")[0]
        why = until(lambda: (said := told("why", run_id, "work"))["why"].count("stopped") and said)
        assert "Somebody has stopped sh " in why["why"]
        assert why["command"].startswith("kill -CONT ")
        (pid,) = map(int, why["command"].split()[2:])
        os.kill(pid, signal.SIGCONT)
        assert run.wait(timeout=60) == 0


FLOW = """
import time

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Given(BaseModel):
    folder: str


@operation("test.noted", version=1, policy=Policy(
    effect="local-derived-write", claims={"whisper": 1}, cancellable=False))
def noted(ctx, input: Given) -> Given:
    (ctx.path(input.folder) / ctx.node).touch()
    while not (ctx.path(input.folder) / "go").exists():
        time.sleep(0.01)
    return input


@workflow("noting", version=1)
def noting(build, folder: str):
    first = build.call(noted, key="a", input={"folder": folder})
    for key in "bc":
        build.call(noted, key=key, input={"folder": folder})
    build.call(noted, key="d", input={"folder": folder}, after=[first])
    return {}
"""


def test_what_is_cancelled_is_called_so_only_when_nothing_of_it_runs_and_nothing_starts_meanwhile(
    tmp_path: Path,
) -> None:
    """Field case 12: until then it says cancelling, and its place on the machine is taken."""
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    with started("run", str(flow), "-i", f"folder={tmp_path}", "--jobs", "1") as run:
        run_id = read_until(run, "a  running")[0]
        hostler("cancel", run_id)
        shape = until(lambda: (found := shown(run_id))["nodes"][0].get("cancelling") and found)
        assert (shape["status"], shape["cancelling"]) == ("running", True)
        assert [node["status"] for node in shape["nodes"]] == ["running", "cancelled", "cancelled", "cancelled"]
        assert hostler("show", run_id).count("running (cancelling)") == 2
        assert "may not be interrupted, so that it is let finish" in hostler("why", run_id, "a")
        assert [ticket["claims"] for ticket in top()["tickets"]] == [{"whisper": 1}]
        (tmp_path / "go").touch()
        assert run.wait(timeout=60) == 130
    assert shown(run_id)["status"] == "cancelled"
    assert "cancelling" not in json.dumps(shown(run_id))
    assert top()["tickets"] == []
    assert not [key for key in "bcd" if (tmp_path / key).exists()]


def test_files_of_one_name_in_the_working_folders_of_many_nodes_never_meet(tmp_path: Path) -> None:
    """Field case 21."""
    script = 'echo "$0" >audio.wav; echo "$0" >ffmpeg2pass-0.log; cat ffmpeg2pass-0.log >>audio.wav'
    keys = [f"n{number:02d}" for number in range(16)]
    nodes = [command(key, "sh", "-c", script, key, outputs={"audio": "audio.wav"}) for key in keys]
    hostler("run", graph(tmp_path, *nodes), "--jobs", "16")
    files = list((tmp_path / "home").rglob("audio.wav"))
    assert sorted(file.read_text() for file in files) == [f"{key}\n{key}\n" for key in keys]


def test_a_state_folder_with_a_long_and_odd_name_is_as_good_as_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 33: no socket, so no 108 bytes; another process finds the host there and is heard."""
    home = tmp_path / ("d" * 150) / "a b é\nc"
    home.mkdir(parents=True)
    home.chmod(0o700)
    monkeypatch.setenv("HOSTLER_HOME", str(home))
    flow = graph(tmp_path, gate("ok"), command("long", "sh", "-c", 'until [ -e "$0" ]; do sleep 0.02; done', "ended"))
    with started("run", flow) as run:
        run_id = read_until(run, "long  running")[0]
        hostler("cancel", run_id)
        assert run.wait(timeout=60) == 130
    assert "cancelled" in hostler("runs")
