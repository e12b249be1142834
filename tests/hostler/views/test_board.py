"""What a live view knows, and the plain lines it writes where there is no terminal."""

import io

import pytest
from rich.console import Console

from actors.actions import NodeChanged, RunChanged
from actors.messages import Progress
from hostler.views.board import Board
from hostler.views.columns import shortened
from hostler.views.lines import PlainView
from hostler.views.live import LiveView
from store.lifecycle import RunStatus, Status
from store.plans import GraphPlan
from tests.hostler.views.support import FAILURE, PLAN, RUN_ID, node, planned


def board() -> Board:
    board = Board(run_id=RUN_ID, workflow="podcast", started_s=100.0, status=RunStatus.RUNNING)
    board.fill(PLAN, [node("audio", Status.COMPLETED)])
    return board


def changed(key: str, status: Status, **known: object) -> NodeChanged:
    return NodeChanged(run_id=RUN_ID, record=node(key, status, **known))


def test_nodes_of_which_the_store_says_nothing_stand_as_in_a_new_run() -> None:
    assert [line.status for line in board().lines.values()] == [Status.COMPLETED, *[Status.PENDING] * 3]
    new = Board(run_id=RUN_ID, workflow="podcast", started_s=0.0, status=RunStatus.PLANNED)
    new.fill(PLAN, ())
    assert [line.status for line in new.lines.values()] == [Status.READY, *[Status.PENDING] * 3]


def fraction(known: Board) -> float | None:
    return known.lines["text"].fraction


def test_each_change_of_a_status_is_one_line_with_the_time_since_the_start() -> None:
    said: list[str] = []
    view = PlainView(board(), said.append)
    view.apply(changed("text", Status.QUEUED), 101.0)
    view.apply(changed("text", Status.RUNNING, attempt=2), 102.0)
    view.apply(Progress(node="text", attempt=2, fraction=0.5), 103.0)
    view.apply(changed("text", Status.RUNNING, attempt=2, gate_passed=True), 103.5)
    view.apply(changed("text", Status.COMPLETED, attempt=2), 104.5)
    assert said == [
        "     1.0 s  text  queued",
        "     2.0 s  text  running  (attempt 2)",
        "     4.5 s  text  completed  (2.5 s)",
    ]


def test_a_failure_is_told_with_its_code_and_harmless() -> None:
    said: list[str] = []
    PlainView(board(), said.append).apply(changed("text", Status.FAILED, failure=FAILURE), 101.0)
    assert said == ["     1.0 s  text  failed  subprocess: ffmpeg ended\\x1b[2J with 1"]


def test_progress_of_an_attempt_that_is_over_is_forgotten() -> None:
    known = board()
    known.apply(changed("text", Status.RUNNING, attempt=2), 101.0)
    known.apply(Progress(node="text", attempt=1, fraction=0.9), 102.0)
    assert fraction(known) is None
    known.apply(Progress(node="text", attempt=2, fraction=0.4), 102.0)
    assert fraction(known) == 0.4
    known.apply(changed("text", Status.COMPLETED, attempt=2), 103.0)
    assert fraction(known) is None


def test_the_status_of_the_run_is_kept() -> None:
    known = board()
    known.apply(RunChanged(run_id=RUN_ID, status=RunStatus.PARTIAL), 101.0)
    assert known.status is RunStatus.PARTIAL


def test_where_there_is_little_room_what_runs_is_shown_first_and_in_order() -> None:
    known = board()
    known.apply(changed("upload", Status.APPROVAL_REQUIRED), 101.0)
    known.apply(changed("text", Status.RUNNING, attempt=1), 102.0)
    assert [line.key for line in known.most_telling(2)] == ["text", "upload"]
    assert [line.key for line in known.most_telling(9)] == ["audio", "text", "upload", "release"]


def shown(known: Board, *, terminal: bool, height: int = 24, width: int = 120, now_s: float = 110.0) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, height=height, no_color=True, highlight=False)
    console.print(LiveView(known, console).render(now_s))
    return out.getvalue()


def test_the_live_view_shows_state_progress_speed_and_time_left() -> None:
    known = board()
    known.apply(changed("text", Status.RUNNING, attempt=1), 105.0)
    known.apply(Progress(node="text", attempt=1, fraction=0.42, text="\x1b[31m", speed=2.5, left_s=31.0), 106.0)
    text = shown(known, terminal=False)
    assert RUN_ID in text
    assert "10 s" in text
    assert f"{'━' * 10}{'─' * 14}  42 %  2.5×      31 s left \\x1b[31m" in text
    assert "\x1b" not in text
    assert "1 completed · 2 pending · 1 running" in text


def test_the_live_view_says_what_waits_for_the_machine_and_for_a_person() -> None:
    known = board()
    known.apply(changed("text", Status.QUEUED), 105.0)
    known.apply(changed("upload", Status.APPROVAL_REQUIRED), 105.0)
    text = shown(known, terminal=False)
    assert "waits for the machine" in text
    assert "approval-required" in text


def test_the_live_view_fits_the_terminal_and_says_what_it_leaves_out() -> None:
    text = shown(board(), terminal=False, height=6)
    assert len(text.splitlines()) <= 6
    assert "(2 not shown)" in text


def test_markup_in_labels_is_text() -> None:
    known = board()
    known.lines["text"].runs = "[red]x[/red]"
    assert "[red]x[/red]" in shown(known, terminal=True)


BUSY = ("publish/talk.mp4", "publish/talk.srt", "video", "look")


def busy(*keys: str) -> Board:
    """A board on which there is something of everything."""
    plan = GraphPlan(workflow="podcast", version=1, inputs={}, nodes=tuple(planned(key) for key in keys))
    known = Board(run_id=RUN_ID, workflow="podcast", started_s=100.0, status=RunStatus.RUNNING)
    known.fill(plan, ())
    known.apply(changed(keys[0], Status.COMPLETED), 101.0)
    known.apply(changed(keys[2], Status.RUNNING, attempt=1), 102.0)
    known.apply(Progress(node=keys[2], attempt=1, fraction=0.42, text="encoding", speed=2.5, left_s=31.0), 103.0)
    known.apply(changed(keys[3], Status.APPROVAL_REQUIRED), 104.0)
    return known


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (
            120,
            f"video            running           {'8.0 s':>9} {'━' * 10}{'─' * 14}  42 %  2.5×      31 s left encoding",
        ),
        (80, f"video            running           {'8.0 s':>9} {'━' * 4}{'─' * 6}  42 %      31 s left"),
        (40, f"video            {'━' * 4}{'─' * 6}  42 % enc…"),
    ],
)
def test_in_a_narrow_terminal_all_is_left_out_before_a_key_is_shortened(width: int, row: str) -> None:
    lines = shown(busy(*BUSY), terminal=False, width=width).splitlines()
    assert all(len(line) <= width for line in lines)
    assert lines[0].startswith(RUN_ID)
    for key, mark in zip(BUSY, "✔· ?", strict=True):
        (line,) = [line for line in lines if line[2:].startswith(f"{key} ") and "hostler" not in line]
        assert mark in (line[0], " "), "what it stands for is told at any width"
    (moving,) = [line for line in lines if "━" in line]
    assert moving[2:].rstrip() == row
    assert all(said in "".join(lines) for said in ("approval-required", "completed"))
    assert ("command" in "".join(lines)) is (width == 120), "what a node runs is left out first"


def test_long_keys_are_shortened_in_the_middle_and_stay_apart() -> None:
    keys = [f"{'deep/' * 12}part-{index}/{'tail' * 6}" for index in range(4)]
    lines = shown(busy(*keys), terminal=False, width=40).splitlines()[1:5]
    assert len({line[2:] for line in lines}) == 4
    assert all("…" in line and len(line) <= 40 for line in lines)


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


def test_below_the_board_stands_what_to_type_for_what_waits() -> None:
    known = busy(*BUSY)
    command = f"hostler approve {RUN_ID} look"
    assert command in shown(known, terminal=False, width=120)
    narrow = shown(known, terminal=False, width=40, height=8)
    assert command in " ".join(narrow.split())
    assert len(narrow.splitlines()) <= 8
    known.apply(changed("video", Status.APPROVAL_REQUIRED), 105.0)
    assert f"2 nodes wait for you: hostler approve {RUN_ID}\n" in shown(known, terminal=False)


def test_the_title_counts_from_the_start_of_the_run_and_leaves_its_length_to_the_ending() -> None:
    known = board()
    known.ran_before_s = 60.0
    assert "running  1 m 10 s  podcast" in shown(known, terminal=False)
    known.apply(RunChanged(run_id=RUN_ID, status=RunStatus.COMPLETED), 110.0)
    assert f"{RUN_ID}  completed  podcast\n" in shown(known, terminal=False)
