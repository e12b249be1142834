"""An attempt begins in an empty workspace; emptying it ends when the attempt does."""

import os

import pytest

from actors.control import Control, OperationAborted
from actors.workspaces import opened


def test_all_that_an_earlier_attempt_left_is_gone_and_nothing_that_it_linked_to(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    work = tmp_path / "work"
    (work / "a" / "b").mkdir(parents=True)
    (work / "a" / "b" / "f").touch()
    (work / "f").touch()
    os.mkfifo(work / "pipe")
    (work / "link").symlink_to(outside)
    (work / "a" / "circle").symlink_to("circle")
    assert opened(work, reconciling=False, between=lambda: None) == work
    assert os.listdir(work) == []
    assert (outside / "kept").exists()


def test_a_reconciliation_finds_what_was_left(tmp_path):
    (tmp_path / "f").touch()
    opened(tmp_path, reconciling=True, between=lambda: None)
    assert (tmp_path / "f").exists()


def test_emptying_a_large_workspace_ends_with_the_next_thing_after_a_stop(tmp_path):
    control, removed = Control(), 0
    for number in range(10):
        (tmp_path / str(number)).touch()

    def between() -> None:
        nonlocal removed
        control.check()
        removed += 1
        if removed == 4:
            control.note("cancel")

    with pytest.raises(OperationAborted):
        opened(tmp_path, reconciling=False, between=between)
    assert len(os.listdir(tmp_path)) == 6
