"""Publishing under a final name."""

import hashlib
import os
from pathlib import Path

import pytest

from actors.context import OperationFailed
from hostler.operations.files import PublishInput, publish
from store.policy import FailureCode
from tests.hostler.operations.support import Bench, bench


@pytest.fixture
def here(tmp_path: Path) -> Bench:
    made = bench(tmp_path)
    (made.folder / "made.mp4").write_text("whole")
    return made


def test_a_file_gets_its_name_in_folders_that_are_made_and_the_source_stays(here: Bench) -> None:
    """Another node made the source and may be read again."""
    done = publish(here.ctx, PublishInput(source="made.mp4", target="out/one/talk.mp4"))
    assert done.path == str(here.folder / "out/one/talk.mp4")
    assert Path(done.path).read_text() == (here.folder / "made.mp4").read_text() == "whole"
    assert (done.bytes, done.sha256) == (5, hashlib.sha256(b"whole").hexdigest())


def test_a_file_with_other_content_is_not_overwritten_unasked(here: Bench) -> None:
    """Field case 19: a person may have made it."""
    (here.folder / "talk.mp4").write_text("mine")
    with pytest.raises(OperationFailed) as caught:
        publish(here.ctx, PublishInput(source="made.mp4", target="talk.mp4"))
    assert caught.value.code is FailureCode.CONFLICT
    assert (here.folder / "talk.mp4").read_text() == "mine"
    assert here.published == []


def test_a_file_that_is_made_while_it_is_copied_is_not_overwritten_either(here: Bench) -> None:
    """Between the look and the name lies the time that a long film takes to be copied."""
    here.meanwhile = lambda target: target.write_text("mine")
    with pytest.raises(OperationFailed, match=r"talk\.mp4 exists") as caught:
        publish(here.ctx, PublishInput(source="made.mp4", target="talk.mp4"))
    assert caught.value.code is FailureCode.CONFLICT
    assert (here.folder / "talk.mp4").read_text() == "mine"
    assert sorted(os.listdir(here.folder)) == ["made.mp4", "talk.mp4"]
    publish(here.ctx, PublishInput(source="made.mp4", target="talk.mp4", overwrite=True))
    assert (here.folder / "talk.mp4").read_text() == "whole"


def test_a_file_with_other_content_is_replaced_when_told_to(here: Bench) -> None:
    """`overwrite`."""
    (here.folder / "talk.mp4").write_text("older")
    publish(here.ctx, PublishInput(source="made.mp4", target="talk.mp4", overwrite=True))
    assert (here.folder / "talk.mp4").read_text() == "whole"


def test_a_file_with_the_same_content_is_left_as_it_is(here: Bench) -> None:
    """A resumed run publishes once more what it had published already."""
    (here.folder / "talk.mp4").write_text("whole")
    before = (here.folder / "talk.mp4").stat()
    done = publish(here.ctx, PublishInput(source="made.mp4", target="talk.mp4"))
    assert done.bytes == 5
    assert (here.folder / "talk.mp4").stat().st_ino == before.st_ino
    assert here.published == []


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_link_or_a_device_is_never_replaced(here: Bench, tmp_path: Path, kind: str) -> None:
    """Also one that leads nowhere, and also when told to overwrite."""
    target = here.folder / "talk.mp4"
    if kind == "link":
        target.symlink_to(tmp_path / "nowhere")
    else:
        os.mkfifo(target)
    with pytest.raises(OperationFailed, match="link or a device"):
        publish(here.ctx, PublishInput(source="made.mp4", target="talk.mp4", overwrite=True))
    assert not target.is_file()


def test_a_folder_is_no_target_and_a_missing_source_is_named(here: Bench) -> None:
    """Wrong use, told before anything is written."""
    with pytest.raises(OperationFailed, match="is a folder"):
        publish(here.ctx, PublishInput(source="made.mp4", target="."))
    with pytest.raises(OperationFailed, match=r"gone\.mp4 does not exist"):
        publish(here.ctx, PublishInput(source="gone.mp4", target="talk.mp4"))


def test_a_target_that_cannot_be_written_is_named_with_the_reason(here: Bench) -> None:
    """A file stands where a folder is needed."""
    with pytest.raises(OperationFailed) as caught:
        publish(here.ctx, PublishInput(source="made.mp4", target="made.mp4/talk.mp4"))
    assert caught.value.code is FailureCode.UNAVAILABLE
    assert caught.value.message.startswith(f"{here.folder}/made.mp4/talk.mp4 could not be written: ")


def test_its_target_is_reserved_on_the_machine() -> None:
    """No two nodes publish to one file at a time."""
    assert publish.policy.publishes == ("target",)
