"""Frames: the same bytes give the same frames in whatever pieces they come, and nothing over its bounds is kept."""

import contextlib
import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.frames import HEADER, Channel, Frame, FrameError, FrameReader

FRAMES = st.lists(st.tuples(st.binary(min_size=1, max_size=50), st.binary(max_size=50)), max_size=6)


def packed(frames: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(HEADER.pack(len(words), len(blob)) + words + blob for words, blob in frames)


@given(frames=FRAMES, cuts=st.lists(st.integers(min_value=1, max_value=40), max_size=60))
def test_the_pieces_in_which_a_stream_comes_change_nothing(frames: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    """A reader that looks at one piece at a time loses a frame that is split."""
    stream, reader = packed(frames), FrameReader(max_words=50, max_blob=50)
    found: list[Frame] = []
    for cut in cuts:
        found += reader.feed(stream[:cut])
        stream = stream[cut:]
    found += reader.feed(stream)
    assert [(each.words, each.blob) for each in found] == frames


@given(noise=st.binary(max_size=200))
def test_noise_is_frames_within_bounds_or_an_error_and_nothing_else(noise: bytes) -> None:
    """Whatever a broken worker writes, the host sees one kind of error."""
    reader = FrameReader(max_words=20, max_blob=20)
    try:
        found = list(reader.feed(noise))
    except FrameError:
        return
    assert all(len(each.words) <= 20 and len(each.blob) <= 20 for each in found)


@pytest.mark.parametrize(("words", "blob"), [(0, 0), (21, 0), (1, 21), (2**32 - 1, 2**32 - 1)])
def test_a_frame_over_its_bounds_is_refused_by_its_header_alone(words: int, blob: int) -> None:
    """Nothing waits for 4 GiB that never come."""
    with pytest.raises(FrameError):
        list(FrameReader(max_words=20, max_blob=20).feed(HEADER.pack(words, blob)))


def test_what_cannot_be_sent_at_once_is_dropped_where_nobody_waits() -> None:
    """Whoever stops a worker that reads nothing must not wait for it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                ours.send(b"x" * 65536)
        ours.setblocking(True)
        channel = Channel(ours, max_words=9, max_blob=9)
        with pytest.raises(BlockingIOError):
            channel.send(Frame(words=b"stop"), patient=False)


def test_a_forked_child_has_no_part_in_the_channel() -> None:
    """Two processes that write to one stream would cut each other's frames."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(ours, max_words=9, max_blob=9)
        child = os.fork()
        if child == 0:
            try:
                channel.send(Frame(words=b"x"))
            except BrokenPipeError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
