"""The live view of a run: what it shows, and how it fits a terminal."""

import itertools
from typing import Any

import pytest
from rich.cells import cell_len

from actors.actions import NodeChanged, RunChanged
from actors.messages import Progress
from hostler.views.board import Board, Looked, Usage
from hostler.views.columns import shortened
from hostler.views.live import screen
from store.lifecycle import RunStatus, Status
from store.plans import AgentExecutor, GateExecutor, GraphPlan, OperationExecutor
from tests.hostler.views import screens
from tests.hostler.views.support import AT, FAILURE, RUN_ID, node, planned

MB = 1 << 20


def operation(kind: str) -> OperationExecutor:
    return OperationExecutor(operation=kind, version=1)


PLAN = GraphPlan(
    workflow="podcast",
    version=1,
    inputs={},
    nodes=(
        planned("probe", operation("media.probe")),
        planned("video", operation("media.transcode"), after=("probe",)),
        planned("audio", operation("media.extract-audio"), after=("probe",)),
        planned("text", operation("speech.transcribe"), after=("audio",)),
        planned("subtitled", operation("media.add-subtitles"), after=("text", "video")),
        planned("publish/talk.mp4", operation("files.publish"), after=("subtitled",)),
        planned("publish/talk.srt", operation("files.publish"), after=("text",)),
        planned("review", GateExecutor(gate="publication"), after=("probe",)),
        planned("poster", after=("probe",)),
    ),
)


def new(plan: GraphPlan = PLAN) -> Board:
    known = Board(run_id=RUN_ID, workflow="podcast", started_s=100.0, status=RunStatus.RUNNING)
    known.fill(plan, ())
    return known


def change(known: Board, key: str, status: Status, at_s: float = 105.0, **more: Any) -> None:
    known.apply(NodeChanged(run_id=RUN_ID, record=node(key, status, **more)), at_s)


def busy() -> Board:
    """A run with something of everything."""
    known = new()
    change(known, "probe", Status.RUNNING, 100.1, attempt=1)
    change(known, "probe", Status.COMPLETED, 100.5, attempt=1)
    change(known, "video", Status.RUNNING, 100.6, attempt=1)
    change(known, "audio", Status.RUNNING, 100.6, attempt=1)
    change(known, "audio", Status.COMPLETED, 104.0, attempt=1)
    change(known, "text", Status.QUEUED, 104.0)
    change(known, "review", Status.APPROVAL_REQUIRED, 104.0)
    change(known, "poster", Status.FAILED, attempt=1, failure=FAILURE)
    known.apply(Progress(node="video", attempt=1, fraction=0.42, text="transcoding", speed=2.5, left_s=31.0), 106.0)
    known.looked = Looked(
        usage={"video": Usage(cpus=1.4, memory_bytes=210 * MB)},
        held={"text": "waits for whisper, held by run_01aa talk"},
    )
    return known


def ended() -> Board:
    known = busy()
    for key in PLAN.nodes:
        change(known, key.key, Status.COMPLETED, 112.0)
    known.apply(RunChanged(run_id=RUN_ID, status=RunStatus.COMPLETED), 112.0)
    return known


def stopping() -> Board:
    known = busy()
    known.ends_s = 120.0
    known.looked = Looked(usage={"video": Usage(cpus=0.0, memory_bytes=210 * MB, stopped=(41, 42))})
    change(known, "video", Status.RUNNING, attempt=1, cancelling=True)
    change(known, "audio", Status.AMBIGUOUS, attempt=1)
    return known


def lines(known: Board, *, width: int = 120, height: int = 24, now_s: float = 112.0) -> list[str]:
    return [line.plain for line in screen(known, width=width, height=height, now_s=now_s)]


@pytest.mark.parametrize(
    ("name", "known", "width", "height"),
    [
        ("live", busy(), 120, 24),
        ("live-80", busy(), 80, 24),
        ("live-narrow", busy(), 40, 24),
        ("live-low", busy(), 100, 7),
        ("live-stopping", stopping(), 110, 24),
        ("live-ended", ended(), 100, 24),
    ],
)
def test_the_view_is_as_it_was_looked_at(name: str, known: Board, width: int, height: int) -> None:
    screens.check(name, lines(known, width=width, height=height), width=width, height=height)


def test_it_fits_any_terminal_and_nothing_in_it_can_command_one() -> None:
    evil = new()
    evil.lines["text"].runs = "[red]\x1b[2J日本語" * 9
    change(evil, "text", Status.RUNNING, attempt=1)
    evil.apply(
        Progress(node="text", attempt=1, fraction=0.9999, text="\x1b]0;owned\x07\u202e", speed=1e8, left_s=1e9), 106.0
    )
    for known, width, height in itertools.product(
        (busy(), stopping(), evil), (1, 2, 9, 24, 47, 80, 200), (1, 2, 5, 24)
    ):
        shown = lines(known, width=width, height=height)
        assert len(shown) <= height
        assert all(cell_len(line) <= width for line in shown)
        assert all(line.isprintable() for line in shown)


def test_what_runs_is_in_sight_among_4000_nodes_and_the_others_are_counted() -> None:
    keys = [f"part-{number:04}" for number in range(4000)]
    known = new(GraphPlan(workflow="podcast", version=1, inputs={}, nodes=tuple(map(planned, keys))))
    for key in keys[:2000]:
        change(known, key, Status.COMPLETED)
    change(known, keys[3210], Status.RUNNING, attempt=1)
    shown = lines(known, height=20)
    assert any(f" {keys[3210]} " in line for line in shown)
    assert "2000/4000" in shown[-1]
    assert "(3982 not shown)" in shown[-1]


def test_a_node_that_is_tried_again_counts_down_to_that() -> None:
    known = busy()
    known.until_s = lambda _: 30.0
    change(known, "poster", Status.CORRECTIVE, 105.0, attempt=1, failure=FAILURE, due_at=AT)
    (shown,) = [line for line in lines(known, now_s=112.0) if "poster" in line]
    assert shown.endswith(r"tried again in 23 s: subprocess: ffmpeg ended\x1b[2J with 1")


def test_work_for_others_says_that_it_waits_for_one_or_that_one_has_it() -> None:
    agent = planned("write", AgentExecutor(external=True))
    known = new(GraphPlan(workflow="podcast", version=1, inputs={}, nodes=(agent,)))
    assert "ready           waits for a worker to take it" in lines(known)[1]
    change(known, "write", Status.RUNNING, attempt=1)
    assert lines(known)[1].endswith("a worker has it")


def test_the_mark_of_what_runs_turns_and_all_else_stays() -> None:
    first, second = lines(busy(), now_s=121.25), lines(busy(), now_s=121.45)
    (changed,) = [(one, other) for one, other in zip(first, second, strict=True) if one != other]
    assert changed[0][1:] == changed[1][1:]
    assert " ├ video " in changed[0]


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (135, {"runs", "status", "speed", "usage", "left"}),
        (120, {"status", "speed", "usage", "left"}),
        (90, {"speed", "usage", "left"}),
        (80, {"usage", "left"}),
        (70, {"left"}),
        (50, set()),
    ],
)
def test_in_a_narrow_terminal_all_is_left_out_before_a_key_is_shortened(width: int, told: set[str]) -> None:
    known = busy()
    known.lines["audio"].runs = "x" * 80
    shown = "\n".join(lines(known, width=width))
    texts = {
        "runs": "x" * 80,
        "status": "running     ",
        "speed": "2.5×",
        "usage": "1.4 cpu  210 MB",
        "left": "31 s left",
    }
    assert {name for name, text in texts.items() if text in shown.partition("\n")[2].rpartition("\n")[0]} == told
    assert "publish/talk.mp4" in shown
    assert "42 %" in shown


def test_long_keys_are_shortened_in_the_middle_and_stay_apart() -> None:
    keys = [f"{'deep/' * 12}part-{index}/{'tail' * 6}" for index in range(4)]
    known = new(GraphPlan(workflow="podcast", version=1, inputs={}, nodes=tuple(map(planned, keys))))
    shown = lines(known, width=40)[1:5]
    assert len({line[2:] for line in shown}) == 4
    assert all("…" in line for line in shown)


@pytest.mark.parametrize("width", [1, 3, 8, 20])
def test_shortened_keys_are_never_alike(width: int) -> None:
    keys = [*(f"a{index}bbbbbbbbbbbbbbbbbbbbbbbbbc" for index in range(9)), "short"]
    short = shortened(keys, width)
    assert list(short) == keys
    assert all(len(text) <= width for text in short.values())
    if width > 1:
        assert len(set(short.values())) == len(keys)
    if width > 5:
        assert short["short"] == "short"


def test_below_the_tree_stands_what_to_type_for_what_waits_however_narrow_it_is() -> None:
    command = f"hostler approve {RUN_ID} review"
    assert f"review waits for you: {command}" in lines(busy())
    assert command in " ".join(" ".join(lines(busy(), width=40, height=8)).split())
    known = busy()
    change(known, "poster", Status.APPROVAL_REQUIRED)
    assert f"2 nodes wait for you: hostler approve {RUN_ID}" in lines(known)


def test_the_title_counts_from_the_start_of_the_run_and_leaves_its_length_to_the_ending() -> None:
    known = busy()
    known.ran_before_s = 60.0
    assert lines(known)[0] == f"{RUN_ID}  running  1 m 12 s  podcast"
    assert lines(ended())[0] == f"{RUN_ID}  completed  podcast"
