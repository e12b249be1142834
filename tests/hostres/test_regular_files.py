"""What somebody else names is opened only where it is a file, and nothing is waited for."""

import fcntl
import os
import socket
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from hostres.regular_files import NotRegularError, open_regular, open_source


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listener(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(path))


def loop(path: Path) -> None:
    path.symlink_to(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/null")


KINDS = [
    (folder, "is a folder, not a file"),
    (pipe, "is a pipe, not a file"),
    (listener, "is a socket, not a file"),
    (device, "is a device, not a file"),
    (loop, "is a link that leads round in a circle"),
]


@pytest.mark.parametrize(("make", "says"), KINDS)
def test_what_is_no_file_is_refused_with_what_it_is_and_not_waited_for(tmp_path, monkeypatch, make, says):
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    make(Path("x"))
    with pytest.raises(NotRegularError) as told:
        open_regular(Path("x"))
    assert told.value.strerror == says


def test_what_becomes_a_pipe_meanwhile_is_refused_and_not_waited_for(tmp_path, monkeypatch):
    """Its kind is looked at again once it is open."""
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    was = (tmp_path / "file").stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: was)
    with pytest.raises(NotRegularError, match="is a pipe"):
        open_regular(tmp_path / "pipe")


def test_a_link_is_followed_only_where_it_may_be(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"x"
    with pytest.raises(NotRegularError, match="is a link"):
        open_regular(tmp_path / "link", follow=False)


def test_a_program_may_read_a_device_and_may_wait_for_it():
    with open_source(Path("/dev/zero")) as file:
        assert not fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & os.O_NONBLOCK


@pytest.mark.parametrize(("make", "says"), [KINDS[0], KINDS[1], KINDS[4]])
def test_a_program_is_given_no_pipe_or_folder_to_read(tmp_path, make, says):
    make(tmp_path / "x")
    with pytest.raises(HostlerError, match=says, check=lambda error: error.code is Code.INVALID_DATA):
        open_source(tmp_path / "x")
