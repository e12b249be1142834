"""The final name appears at once and whole, or not at all."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from actors import publication
from actors.context import OperationFailed
from actors.control import Control, OperationAborted
from actors.publication import check_source, publish_file
from store.policy import FailureCode
from tests.support import until

ROOT = Path(__file__).resolve().parents[2]


def made(tmp_path, text="whole"):
    source = tmp_path / "work" / "x"
    source.parent.mkdir()
    source.write_text(text)
    return source, tmp_path / "out" / "final.mp4"


@pytest.mark.parametrize("keep", [True, False])
def test_a_file_gets_its_name_with_all_its_bytes_and_nothing_else_is_left(tmp_path, keep):
    source, target = made(tmp_path)
    publish_file(source, target, keep=keep)
    assert target.read_text() == "whole"
    assert os.listdir(target.parent) == ["final.mp4"]
    assert source.exists() is keep


def test_an_existing_file_is_replaced_in_one_step(tmp_path):
    source, target = made(tmp_path)
    target.parent.mkdir()
    target.write_text("old")
    publish_file(source, target, keep=True)
    assert target.read_text() == "whole"


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("keep", [True, False])
def test_a_file_that_must_not_be_replaced_stays_and_without_one_the_name_is_given(tmp_path, monkeypatch, keep, links):
    """Also where a file system gives a file no second name, as FAT."""
    source, target = made(tmp_path)
    if not links:
        real = os.link

        def link(start, end, **options):
            if os.fspath(start).startswith(str(tmp_path)):
                raise PermissionError(errno.EPERM, "Operation not permitted")
            real(start, end, **options)

        monkeypatch.setattr(publication.os, "link", link)
    target.parent.mkdir()
    target.write_text("mine")
    with pytest.raises(OperationFailed, match="exists") as told:
        publish_file(source, target, keep=keep, overwrite=False)
    assert told.value.code is FailureCode.CONFLICT
    assert (source.read_text(), target.read_text()) == ("whole", "mine")
    target.unlink()
    publish_file(source, target, keep=keep, overwrite=False)
    assert os.listdir(target.parent) == ["final.mp4"]
    assert (target.read_text(), source.exists()) == ("whole", keep)


@pytest.mark.parametrize("keep", [True, False])
def test_a_file_that_has_its_final_name_is_published_though_the_one_before_cannot_be_removed(
    tmp_path, monkeypatch, keep
):
    source, target = made(tmp_path)

    def unlink(path, **_options):
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "unlink", unlink)
    publish_file(source, target, keep=keep, overwrite=False)
    assert (target.read_text(), source.exists()) == ("whole", True)


@pytest.mark.parametrize("keep", [True, False])
def test_the_bytes_are_on_the_disk_before_the_name_is(tmp_path, monkeypatch, keep):
    source, target = made(tmp_path)
    order = []
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor):
        order.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real_sync(descriptor)

    def replace(start, end, **options):
        order.append("rename")
        real_replace(start, end, **options)

    monkeypatch.setattr(publication.os, "fsync", sync)
    monkeypatch.setattr(publication.os, "replace", replace)
    publish_file(source, target, keep=keep)
    assert order[1] == "rename"
    assert order[2] == str(target.parent)


def test_a_file_system_without_unnamed_files_is_copied_to_under_a_short_name(tmp_path, monkeypatch):
    source, target = made(tmp_path)
    monkeypatch.setattr(publication, "_open_unnamed", lambda _folder: None)
    publish_file(source, target, keep=True)
    assert target.read_text() == "whole"
    assert os.listdir(target.parent) == ["final.mp4"]


def test_a_kill_in_the_middle_of_a_copy_leaves_nothing_beside_the_target(tmp_path):
    source, target = made(tmp_path)
    os.truncate(source, 3_000_000_000)  # sparse: long enough to be killed in
    target.parent.mkdir()
    code = (
        "import sys; from pathlib import Path; from actors.publication import publish_file; "
        "publish_file(Path(sys.argv[1]), Path(sys.argv[2]), keep=True)"
    )
    copier = subprocess.Popen([sys.executable, "-c", code, str(source), str(target)], cwd=ROOT)

    def copying():
        files = Path(f"/proc/{copier.pid}/fd")
        return any("(deleted)" in os.readlink(link) and (link.stat().st_blocks or 0) > 0 for link in files.iterdir())

    until(lambda: copier.poll() is not None or seen(copying))
    copier.kill()
    assert copier.wait() == -signal.SIGKILL, "the copy was over before it could be killed"
    assert os.listdir(target.parent) == []


def seen(look) -> bool:
    try:
        return look()
    except OSError:
        return False


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_a_copy_may_be_read_by_whoever_may_read_its_source(tmp_path, mode):
    source, target = made(tmp_path)
    source.chmod(mode)
    publish_file(source, target, keep=True)
    assert target.stat().st_mode & 0o777 == mode


def test_another_file_system_is_copied_to(tmp_path, monkeypatch):
    source, target = made(tmp_path)
    real = os.replace

    def replace(start, end, **options):
        if os.fspath(start) == os.fspath(source):
            raise OSError(errno.EXDEV, "cross-device link")
        real(start, end, **options)

    monkeypatch.setattr(publication.os, "replace", replace)
    publish_file(source, target, keep=False)
    assert target.read_text() == "whole"


def test_a_full_disk_leaves_nothing_under_the_final_name(tmp_path, monkeypatch):
    """Field case 48: the disk of the outputs."""
    source, target = made(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(publication.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        publish_file(source, target, keep=True)
    assert os.listdir(target.parent) == []
    assert source.read_text() == "whole"


def test_a_name_of_the_longest_legal_length_can_be_published(tmp_path):
    """Field case 32."""
    source, _ = made(tmp_path)
    target = tmp_path / ("é" * 125 + ".mp4x")
    assert len(target.name.encode()) == 255
    publish_file(source, target, keep=True)
    assert target.read_text() == "whole"


def test_a_copy_ends_with_the_next_piece_after_a_stop_and_leaves_nothing(tmp_path):
    source, target = made(tmp_path)
    os.truncate(source, 64 << 20)
    control, pieces = Control(), 0

    def between() -> None:
        nonlocal pieces
        control.check()
        pieces += 1
        if pieces == 3:
            control.note("timeout")

    with pytest.raises(OperationAborted):
        publish_file(source, target, keep=True, between=between)
    assert pieces == 3
    assert os.listdir(target.parent) == []


@pytest.mark.parametrize(("make", "todo"), [(os.mkdir, "its files one by one"), (os.mkfifo, "a file that is finished")])
def test_what_is_no_file_is_refused_by_name_with_what_to_do(tmp_path, make, todo):
    make(tmp_path / "x")
    with pytest.raises(OperationFailed, match=f"{tmp_path}/x is a .*, not a file") as told:
        check_source(tmp_path / "x")
    assert told.value.code is FailureCode.INVALID_DATA
    assert todo in told.value.todo
