"""Bounded logs: the first and the last part, and how much was dropped."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostres.errors import HostlerError
from hostres.logs import BoundedLog, read_log


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
    assert log.dropped > 0
    assert whole(tmp_path / "log").startswith(b"first")


def test_a_log_in_place_of_a_link_does_not_follow_it(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "log").symlink_to("precious")
    BoundedLog(tmp_path / "log").close()
    assert (tmp_path / "precious").read_text() == "mine"
    with pytest.raises((OSError, HostlerError)):
        BoundedLog(tmp_path / "nowhere" / "log")
