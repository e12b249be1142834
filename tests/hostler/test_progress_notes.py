"""How far nodes are, told from one process to another."""

import stat

import pytest

from actors.messages import Progress
from hostler.progress_notes import ProgressNotes
from store.contracts import NodeRecord
from store.home import Home
from store.lifecycle import Status

RUN = "run_01jd0000000000000000000000"


@pytest.fixture
def home(tmp_path) -> Home:
    return Home.open(tmp_path / "home", create=True)


def progress(node: str, fraction: float | None, text: str = "") -> Progress:
    return Progress(node=node, attempt=2, fraction=fraction, text=text, speed=1.5, left_s=None)


def test_what_is_noted_is_read_and_only_what_is_new(home: Home) -> None:
    writes, reads = ProgressNotes(home, RUN), ProgressNotes(home, RUN)
    assert reads.read() == []
    writes.note(progress("a", 0.25, "größe\x1b"))
    writes.note(progress("b/c", None))
    assert reads.read() == [progress("a", 0.25, "größe\x1b"), progress("b/c", None)]
    assert reads.read() == []
    writes.note(progress("a", 0.5))
    assert reads.read() == [progress("a", 0.5), progress("b/c", None)]


def test_a_node_that_runs_no_more_is_forgotten(home: Home) -> None:
    writes = ProgressNotes(home, RUN)
    writes.note(progress("a", 0.25, "x" * 300))
    writes.note(progress("b", 0.5))
    writes.node_changed(NodeRecord(key="a", status=Status.VERIFYING))
    assert len(ProgressNotes(home, RUN).read()) == 2
    writes.node_changed(NodeRecord(key="a", status=Status.COMPLETED))
    assert ProgressNotes(home, RUN).read() == [progress("b", 0.5)]
    writes.close()
    writes.note(progress("b", 0.75))
    assert ProgressNotes(home, RUN).read() == [progress("b", 0.5)], "one that is closed writes no more"


def test_nothing_is_made_before_there_is_anything_to_note_and_that_is_private(home: Home) -> None:
    writes = ProgressNotes(home, RUN)
    writes.node_changed(NodeRecord(key="a", status=Status.COMPLETED))
    writes.close()
    assert not home.logs_of_run(RUN).exists()
    ProgressNotes(home, RUN).note(progress("a", 0.25))
    assert stat.S_IMODE(home.progress_path(RUN).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"[{", b"{}", b"7", b'[{"node": "a"}]', b'[["a"]]', b"\xff"])
def test_what_is_no_note_is_not_read(content: bytes, home: Home) -> None:
    ProgressNotes(home, RUN).note(progress("a", 0.25))
    home.progress_path(RUN).write_bytes(content)
    assert ProgressNotes(home, RUN).read() == []


def test_a_number_that_is_not_finite_is_unknown_to_who_reads_it(home: Home) -> None:
    """Whoever wrote it."""
    ProgressNotes(home, RUN).note(progress("a", 0.25))
    path = home.progress_path(RUN)
    path.write_text(path.read_text().replace('"speed": null', '"speed": Infinity').replace("0.25", "NaN"))
    assert ProgressNotes(home, RUN).read() == [progress("a", None)]


def test_a_place_that_leads_elsewhere_is_not_written_and_not_read(home: Home, tmp_path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("[]")
    home.progress_path(RUN, create=True).symlink_to(elsewhere)
    writes = ProgressNotes(home, RUN)
    writes.note(progress("a", 0.25))
    writes.close()
    assert elsewhere.read_text() == "[]"
    assert ProgressNotes(home, RUN).read() == []
