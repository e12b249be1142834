"""What a view of a run knows, and the plain lines it writes where there is no terminal."""

from actors.actions import NodeChanged, RunChanged
from actors.messages import Progress
from hostler.views.board import Board, Looked, Usage
from hostler.views.lines import PlainView
from store.lifecycle import RunStatus, Status
from tests.hostler.views.support import AT, FAILURE, PLAN, RUN_ID, node


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


def test_progress_that_is_told_before_it_is_known_that_the_node_runs_is_kept_until_then() -> None:
    known = board()
    known.apply(Progress(node="text", attempt=1, fraction=0.4), 101.0)
    assert fraction(known) is None
    known.apply(changed("text", Status.RUNNING, attempt=1), 101.5)
    assert fraction(known) == 0.4
    known.apply(changed("text", Status.FAILED, attempt=1), 102.0)
    known.apply(changed("text", Status.RUNNING, attempt=2), 103.0)
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


def test_how_long_a_node_has_run_or_ran_is_known_also_of_what_was_before_the_view() -> None:
    known = Board(run_id=RUN_ID, workflow="podcast", started_s=100.0, status=RunStatus.RUNNING)
    ran = {"started_at": AT, "finished_at": AT.replace("00:00.000", "00:07.500")}
    nodes = [node("audio", Status.COMPLETED, **ran), node("text", Status.RUNNING, started_at=AT)]
    known.fill(PLAN, nodes, age_s=lambda _: 42.0)
    assert known.lines["audio"].took_s == 7.5
    assert known.lines["text"].since_s == 58.0


def test_what_the_run_uses_is_what_its_running_nodes_use() -> None:
    known = board()
    assert known.usage() is None
    known.looked = Looked(usage={"text": Usage(cpus=0.5, memory_bytes=3), "audio": Usage(cpus=9.0, memory_bytes=9)})
    assert known.usage() is None, "of a node that has just ended"
    known.apply(changed("text", Status.RUNNING, attempt=1), 101.0)
    assert known.usage() == Usage(cpus=0.5, memory_bytes=3)
