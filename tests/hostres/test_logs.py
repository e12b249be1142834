"""Bounded logs: the first and the last part, and how much was dropped."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostres.errors import HostlerError
from hostres.logs import BoundedLog, Cut, read_log


def whole(path: Path) -> bytes:
    return b"".join(read_log(path))


def test_a_short_stream_is_kept_as_it_is(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "log", 100)
    log.write(b"caf\xe9\0\x1b[31m")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"caf\xe9\0\x1b[31m"
    assert (tmp_path / "log").lstat().st_mode & 0o777 == 0o600


@given(pieces=st.lists(st.binary(max_size=70), max_size=30), keep=st.integers(2, 60))
def test_a_long_stream_keeps_its_first_and_last_part_and_says_what_is_missing(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], keep: int
) -> None:
    path = tmp_path_factory.mktemp("logs") / "log"
    log = BoundedLog(path, keep)
    for piece in pieces:
        log.write(piece)
    log.close()
    stream = b"".join(pieces)
    kept = whole(path)
    assert kept == path.read_bytes()
    if len(stream) <= keep:
        assert kept == stream
    else:
        head, tail = keep - keep // 2, keep // 2
        mark = f"\n[hostler: {len(stream) - keep} bytes dropped here]\n".encode()
        assert kept == stream[:head] + mark + stream[-tail:]
    assert [one.name for one in path.parent.iterdir()] == ["log"]


def test_while_the_stream_goes_on_both_parts_are_on_disk_and_bounded(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "log", 1000)
    for number in range(1000):
        log.write(b"%06d\n" % number)
        assert sum(one.stat().st_size for one in tmp_path.iterdir()) <= 1500
    kept = whole(tmp_path / "log")
    assert kept.startswith(b"000000\n000001\n")
    assert kept.endswith(b"000998\n000999\n")
    assert b"bytes dropped here" in kept
    log.close()
    assert whole(tmp_path / "log").endswith(b"000998\n000999\n")


def test_a_new_log_replaces_an_old_one(tmp_path: Path) -> None:
    for text in (b"a" * 50, b"b"):
        log = BoundedLog(tmp_path / "log", 10)
        log.write(text)
        if text == b"b":
            log.close()
    assert whole(tmp_path / "log") == b"b"


def test_a_full_disk_stops_the_log_and_not_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = BoundedLog(tmp_path / "log", 100)
    log.write(b"first")

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        log.write(b"x" * 500)
    log.close()
    assert log.cut == Cut("log", 500, "No space left on device")
    assert whole(tmp_path / "log") == b"first\n[hostler: 500 bytes dropped here]\n", "there is room again"


def test_once_there_is_room_again_the_rest_is_kept_and_the_gap_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the next segment on; a stream that is merely long lacks nothing for want of room."""
    log = BoundedLog(tmp_path / "log", 100)

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    log.write(b"a" * 20)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        log.write(b"b" * 30)
    log.write(b"c" * 40)
    log.close()
    assert whole(tmp_path / "log") == b"a" * 20 + b"\n[hostler: 30 bytes dropped here]\n" + b"c" * 40
    assert log.cut is not None
    long = BoundedLog(tmp_path / "long", 10)
    long.write(b"x" * 1000)
    long.close()
    assert long.cut is None


def test_a_disk_without_room_for_joining_leaves_the_parts_which_are_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where half of a part was written before it was full: nothing is lost, and nothing read twice."""
    log = BoundedLog(tmp_path / "log", 100)
    log.write(b"a" * 50 + b"b" * 40)
    write, calls = os.write, []

    def nearly_full(fd: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[:7])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", nearly_full)
        log.close()
    assert len(calls) == 2
    assert whole(tmp_path / "log") == b"a" * 50 + b"b" * 40
    log.close()
    assert whole(tmp_path / "log") == (tmp_path / "log").read_bytes() == b"a" * 50 + b"b" * 40


def test_a_log_in_place_of_a_link_does_not_follow_it(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "log").symlink_to("precious")
    BoundedLog(tmp_path / "log").close()
    assert (tmp_path / "precious").read_text() == "mine"
    with pytest.raises((OSError, HostlerError)):
        BoundedLog(tmp_path / "nowhere" / "log")
