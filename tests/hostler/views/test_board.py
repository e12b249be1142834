"""What a live view knows, and the plain lines it writes where there is no terminal."""

import io

from rich.console import Console

from actors.messages import NodeChanged, Progress, RunChanged
from hostler.views.board import Board
from hostler.views.lines import PlainView
from hostler.views.live import LiveView
from store.lifecycle import RunStatus, Status
from tests.hostler.views.support import FAILURE, PLAN, RUN_ID, node


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


def shown(known: Board, *, terminal: bool, height: int = 24) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=110, height=height, no_color=True, highlight=False)
    console.print(LiveView(known, console).render(110.0))
    return out.getvalue()


def test_the_live_view_shows_state_progress_speed_and_time_left() -> None:
    known = board()
    known.apply(changed("text", Status.RUNNING, attempt=1), 105.0)
    known.apply(Progress(node="text", attempt=1, fraction=0.42, text="\x1b[31m", speed=2.5, left_s=31.0), 106.0)
    text = shown(known, terminal=False)
    assert RUN_ID in text
    assert "10 s" in text
    assert "42 %  2.5×  31 s left  \\x1b[31m" in text
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


def test_markup_in_names_is_text() -> None:
    known = board()
    known.lines["text"].name = "[red]x[/red]"
    assert "[red]x[/red]" in shown(known, terminal=True)
