"""Every example runs, as its first lines say."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import AbstractContextManager, chdir
from pathlib import Path
from typing import Final

import pytest

from scripts.demo_report import most_at_once, steps_of
from tests.docs.blocks import ROOT
from tests.end_to_end.support import hostler, read_until, refused, running, started, statuses, told
from tests.hostler.operations.support import clip, needs_av, needs_ffmpeg
from tests.support import until

EXAMPLES: Final = ROOT / "examples"
ELSEWHERE: Final = {
    "podcast.py": "end_to_end/test_demo.py",
    "graph.json": "hostler/test_graph_files.py",
    "graph.toml": "hostler/test_graph_files.py",
    "graph.yaml": "hostler/test_graph_files.py",
    "greeting.toml": "end_to_end/test_readme.py",
}
"""Whose tests stand elsewhere."""


def said(path: Path) -> str:
    """Return the words at the top of an example."""
    text = path.read_text(encoding="utf-8")
    found = re.match(r'"""(.*?)"""|((?:#.*\n)+)', text, re.DOTALL)
    return found[0] if found else ""


@pytest.mark.parametrize(
    "path", sorted(path for path in EXAMPLES.iterdir() if path.is_file()), ids=lambda path: path.name
)
def test_an_example_says_how_it_is_run_and_a_test_runs_it(path: Path) -> None:
    """JSON has no comments: its twins say it."""
    if path.suffix != ".json":
        assert f"examples/{path.name}" in said(path), "no line to type at the top"
    tests = ROOT / "tests" / ELSEWHERE.get(path.name, "docs/test_examples.py")
    assert path.stem in tests.read_text(encoding="utf-8")


def program(name: str, *words: str, cwd: Path) -> "AbstractContextManager[subprocess.Popen[str]]":
    """Start an example that is a program; it is killed if it is still there at the end."""
    return running(sys.executable, str(EXAMPLES / name), *words, cwd=cwd, stdin=subprocess.PIPE)


@pytest.mark.parametrize(
    ("typed", "says", "code"),
    [
        ("clip.py", "give a file to make", 2),
        ("clip.py talk.mp4 long", "give a file to make", 2),
        ("clip.py talk.mp4 1 2", "give a file to make", 2),
        pytest.param(
            "clip.py nowhere/talk.mp4 1", "No such file or directory", 1, marks=[pytest.mark.media, needs_ffmpeg]
        ),
        ("worker.py", "give it a name", 2),
        ("worker.py ann bob", "give it a name", 2),
        ("worker.py ''", "is no name of a worker", 1),
        ("desktop.py talk.mp4", "it takes no words", 2),
        ("stand_in_agent.py", "is no request", 2),
    ],
)
def test_an_example_that_is_started_wrongly_says_so_in_one_line(
    typed: str, says: str, code: int, tmp_path: Path
) -> None:
    """Nothing on standard input, no film at hand, too few or too many words."""
    name, *words = shlex.split(typed)
    with program(name, *words, cwd=tmp_path) as process:
        printed, error = process.communicate(timeout=60)
        assert (process.returncode, printed) == (code, "")
    assert error.startswith(f"{name.removesuffix('.py')}: ")
    assert says in error
    assert error.count("\n") == 1


def type_into(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


@pytest.mark.media
@needs_ffmpeg
@needs_av
def test_two_batches_at_once_never_have_more_than_the_machine(tmp_path: Path) -> None:
    """Two programs, one ffmpeg more wanted than there is; the events of both on one clock."""
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\nffmpeg = 1\ncpu = 4\n", encoding="utf-8")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for number in range(2):
            clip(tmp_path / name / f"{number}.mp4", seconds=1)
    batch = str(EXAMPLES / "batch.py")
    words = [
        [f"folder={tmp_path / name}", "-i", f"out={tmp_path / 'out' / name}", "-i", "width=160"]
        for name in ("one", "two")
    ]
    with started("run", batch, "-i", *words[0]) as one, started("run", batch, "-i", *words[1]) as two:
        runs = [read_until(each, "run_")[0] for each in (one, two)]
        assert [each.wait(timeout=60) for each in (one, two)] == [0, 0]
    steps = [
        step for run in runs for step in steps_of(run, map(json.loads, hostler("events", run, "--json").splitlines()))
    ]
    assert len([step for step in steps if step.claims.get("ffmpeg")]) == 4
    assert most_at_once(steps)["ffmpeg"] == 1
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.mp4")) == ["0.mp4", "0.mp4", "1.mp4", "1.mp4"]


def test_a_batch_refuses_films_that_it_cannot_name_before_it_makes_any(tmp_path: Path) -> None:
    """A name that is not UTF-8, a folder without films, one that is not there: each in one line that names it."""
    batch = str(EXAMPLES / "batch.py")
    (tmp_path / "films").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / "films") + b"/caf\xe9.mp4")).touch()
    (tmp_path / "none").mkdir()
    for folder, says in (
        ("films", "films/caf?.mp4' is not UTF-8; rename the file"),
        ("none", "there is no film in "),
        ("nowhere", "nowhere; check that path"),
    ):
        error = refused("run", batch, "-i", f"folder={tmp_path / folder}", "-i", f"out={tmp_path}", code=2)
        assert says in error
    assert hostler("runs") == "no runs\n"


def test_films_that_differ_in_their_suffix_alone_get_names_of_their_own(tmp_path: Path) -> None:
    for name in ("talk.mov", "talk.mp4", "walk.mp4"):
        (tmp_path / name).touch()
    plan = told("plan", str(EXAMPLES / "batch.py"), "-i", f"folder={tmp_path}", "-i", "out=small")
    targets = [node["input"]["target"] for node in plan["nodes"] if node["key"].endswith("publish")]
    assert targets == ["small/talk.mov.mp4", "small/talk.mp4.mp4", "small/walk.mp4"]


@pytest.mark.media
@needs_ffmpeg
@needs_av
@pytest.mark.parametrize("words", [["batch.py", "folder=."], ["podcast.py", "source=talk.mp4", "whisper=false"]])
def test_an_example_replaces_nothing_of_yours_unless_it_is_told_to(words: list[str], tmp_path: Path) -> None:
    """As docs/media.md says of the operation that gives the files their names."""
    clip(tmp_path / "talk.mp4", seconds=1)
    (tmp_path / "out").mkdir()
    mine = tmp_path / "out" / "talk.mp4"
    mine.write_text("mine")
    name, *pairs = words
    asked = ["run", str(EXAMPLES / name), *(word for pair in [*pairs, "out=out"] for word in ("-i", pair))]
    with chdir(tmp_path):
        hostler(*asked, code=1)
        assert mine.read_text() == "mine"
        assert "talk.mp4 exists and has other content" in hostler("show", "-")
        hostler(*asked, "-i", "overwrite=true")
    assert mine.read_bytes()[4:8] == b"ftyp"


def test_the_smallest_workflow_greets_as_often_as_it_is_told(tmp_path: Path) -> None:
    """hello.py whole: operation, compute function and program."""
    with chdir(tmp_path):
        made = told("run", str(EXAMPLES / "hello.py"), "-i", "name=Ann", "-i", "times=3")["outputs"]
    assert made["lines"] == ["Hello, Ann!"] * 3
    assert Path(made["letter"]).read_text(encoding="utf-8") == "Hello, Ann!\n"


def test_agents_plan_a_person_agrees_and_a_worker_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """agents.toml whole: stand_in_agent.py, the gate, worker.py."""
    flow = str(EXAMPLES / "agents.toml")
    monkeypatch.chdir(ROOT)
    hostler("run", flow, "-i", "text=Sweep. Water.", code=3)
    (waits,) = told("show", "-")["waiting_on"]
    assert waits["node"] == "agree"
    assert told("approve", "-", code=3)["waiting_on"][0]["plan"]["input"] == {
        "steps": ["Do this: Sweep", "Do this: Water"]
    }
    hostler(*shlex.split(waits["command"])[1:])
    with started("resume", "-") as host:
        read_until(host, "run_")
        with program("worker.py", "ann", cwd=tmp_path) as worker:
            read_until(worker, "completed")
            assert host.wait(timeout=60) == 0
    assert told("show", "-")["outputs"] == {
        "plan": "2 steps",
        "done": {"steps_done": 2, "notes": told("show", "-")["outputs"]["done"]["notes"]},
    }
    events = [json.loads(line) for line in hostler("events", "-", "--json").splitlines()]
    assert [event["data"]["amount"] for event in events if event["kind"] == "spending"] == [
        {"tokens": 2, "cost": "0.01"},
        {"tokens": 20, "cost": "0.02"},
    ]


@pytest.mark.media
@needs_ffmpeg
@needs_av
def test_the_desktop_program_shows_progress_and_cancels(tmp_path: Path) -> None:
    """clip.py makes the film; what was cancelled is cancelled in the store too."""
    with program("clip.py", "talk.mp4", "20", cwd=tmp_path) as made:
        assert made.wait(timeout=60) == 0
    with program("desktop.py", cwd=tmp_path) as desktop:
        type_into(desktop, "start no-such-film.mp4")
        assert read_until(desktop, "no-such-film.mp4")
        type_into(desktop, "start talk.mp4 2")
        read_until(desktop, "%")
        type_into(desktop, "cancel")
        assert read_until(desktop, "cancelled")
        type_into(desktop, "quit")
        assert desktop.wait(timeout=60) == 0
    assert told("show", "-", code=0)["status"] == "cancelled"


@pytest.mark.media
@needs_ffmpeg
@needs_av
def test_what_the_desktop_program_leaves_is_gone_on_with_by_the_service(tmp_path: Path) -> None:
    """It quits in the middle; the service completes the same run, and the next start of the program finds it done."""
    clip(tmp_path / "talk.mp4", seconds=6)
    with started("serve") as service:
        read_until_told(service, "started")
        with program("desktop.py", cwd=tmp_path) as desktop:
            type_into(desktop, "start talk.mp4 2")
            read_until(desktop, "%")
            type_into(desktop, "quit")
            assert desktop.wait(timeout=60) == 0
        until(lambda: statuses() == {"film": "completed"}, timeout=60)
        service.send_signal(signal.SIGTERM)
        assert service.wait(timeout=60) == 0
    (node,) = told("show", "-")["nodes"]
    assert node["attempt"] == 2
    with program("desktop.py", cwd=tmp_path) as desktop:
        type_into(desktop, "start talk.mp4 2")
        read_until(desktop, "talk.mp4: completed")


def read_until_told(process: "subprocess.Popen[str]", text: str) -> None:
    """Read the log of a service until it says *text*."""
    assert process.stderr is not None
    assert any(text in line for line in process.stderr)
