"""Colour and width follow the terminal; a pipe, NO_COLOR and a dumb terminal have none."""

import io

import pytest

from hostler.views.colours import COLOUR_OF, paint_for
from hostler.views.runs import runs_text
from hostler.views.show import show_text
from store.lifecycle import RunStatus, Status
from store.run_list import RunRow
from store.run_view import RunView
from tests.hostler.views.support import PLAN, node, record

ROW = RunRow(
    run_id="run_01jd0000000000000000000000",
    workflow="a-workflow-with-quite-a-long-name",
    status=RunStatus.COMPLETED,
    created_at="2030-01-01T00:00:00.000Z",
    started_at=None,
    finished_at=None,
    host=None,
    alive=False,
    imported=False,
)


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "coloured"),
    [
        (Screen(), {"TERM": "xterm"}, True),
        (Screen(), {"TERM": "dumb"}, False),
        (Screen(), {}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
        (Screen(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Screen(), {"TERM": "xterm", "NO_COLOR": ""}, True),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_that_have_it_unless_the_environment_says_otherwise(
    stream: io.StringIO, environ: dict[str, str], coloured: bool
) -> None:
    paint = paint_for(stream, environ)
    assert ("\x1b[" in paint("failed", "failed")) is coloured


def test_every_status_has_a_colour_or_is_none_of_ours() -> None:
    unpainted = {status.value for status in (*Status, *RunStatus)} - COLOUR_OF.keys()
    assert unpainted <= {"ready"}


def test_a_list_of_runs_fits_the_terminal_and_a_pipe_gets_all_of_it() -> None:
    assert ROW.workflow in runs_text([ROW])
    narrow = runs_text([ROW], width=80)
    assert all(len(line) <= 80 for line in narrow.splitlines())
    assert ROW.run_id in narrow
    assert "…" in narrow


def test_colour_does_not_count_as_width() -> None:
    painted = runs_text([ROW], paint=paint_for(Screen(), {"TERM": "xterm"}))
    stripped = painted.replace("\x1b[32m", "").replace("\x1b[0m", "")
    assert stripped == runs_text([ROW])
    assert painted != stripped


def test_what_nodes_run_is_cut_before_their_keys_are() -> None:
    run = RunView(
        record=record(),
        status=RunStatus.RUNNING,
        started_at=None,
        finished_at=None,
        owner=None,
        summary=None,
        cancel_waits=False,
    )
    nodes = [node(each.key, Status.PENDING) for each in PLAN.nodes]
    wide, narrow = (
        [line for line in show_text(run, PLAN, nodes, width=width).splitlines() if "pending  " in line]
        for width in (None, 45)
    )
    assert max(map(len, wide)) > 45 >= max(map(len, narrow))
    assert [line.split()[0] for line in narrow] == [each.key for each in PLAN.nodes]
