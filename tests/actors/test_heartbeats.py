"""Signs of life: lines of a process, calls of its code, and what a host has seen of them."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.actions import TakePulse
from actors.assignment import Assignment
from actors.context import Context
from actors.control import Control, OperationAborted
from actors.executor import Port
from actors.frames import Channel, Frame
from actors.heartbeats import MAX_LINE_BYTES, Advance, BeatPipe, Lines, advance_of
from actors.messages import PulseTaken
from actors.pace import Pace
from actors.pulse import Pulse
from actors.remote_host import RemoteHost
from hostres.heartbeat import HEARTBEAT_FD, only_if_inherited
from hostres.process import Supervised
from tests.support import until


@given(st.lists(st.binary(max_size=30), max_size=8), st.integers(1, 7))
def test_lines_are_the_same_in_whatever_pieces_they_come(texts: list[bytes], size: int) -> None:
    """A pipe gives bytes, not lines."""
    whole = b"\n".join(texts)
    *expected, _ = whole.split(b"\n")
    lines = Lines()
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert [line for piece in pieces for line in lines.feed(piece)] == expected


def test_a_line_that_never_ends_is_left_out_and_the_next_one_heard() -> None:
    """Memory stays flat, whatever comes."""
    lines = Lines()
    assert list(lines.feed(b"x" * (MAX_LINE_BYTES + 1))) == []
    assert list(lines.feed(b"y" * MAX_LINE_BYTES)) == []
    assert list(lines.feed(b"\n{}\n")) == [b"{}"]
    assert list(lines.feed(b"z" * MAX_LINE_BYTES + b"\n")) == [b"z" * MAX_LINE_BYTES]
    assert list(lines.feed(b"z" * (MAX_LINE_BYTES + 1) + b"\na\n")) == [b"a"]


@pytest.mark.parametrize(
    ("value", "advance"),
    [
        ({}, None),
        (None, None),
        ([], None),
        (True, None),
        (0.5, Advance(fraction=0.5)),
        ({"fraction": 1}, Advance(fraction=1)),
        ({"text": "reading"}, Advance(text="reading")),
        ({"progress": {"fraction": 0.25, "text": "reading"}}, Advance(fraction=0.25, text="reading")),
        ({"progress": 0.75}, Advance(fraction=0.75)),
        ({"progress": None, "fraction": 0.5}, None),
        ({"fraction": "half", "text": 3}, None),
        ({"fraction": True}, None),
    ],
)
def test_a_beat_may_carry_progress_and_what_cannot_be_read_carries_none(value: Any, advance: Advance | None) -> None:
    """Whatever JSON it is, it is a beat all the same."""
    assert advance_of(value) == advance


BEATS = """
import os
fd = int(os.environ["HOSTLER_HEARTBEAT_FD"])
os.write(fd, b'{"fraction": 0.5, "text": "half"}\\nno json\\n{}\\n')
"""


def test_a_process_beats_on_the_descriptor_that_it_inherits() -> None:
    """Each line of JSON is a beat; what is none is none; the end of the process is the end of the hearing."""
    heard: list[Advance | None] = []
    with BeatPipe() as pipe:
        process = subprocess.Popen(
            [sys.executable, "-c", BEATS], pass_fds=[pipe.fd], env={**os.environ, HEARTBEAT_FD: str(pipe.fd)}
        )
        pipe.listen(heard.append)
        assert process.wait() == 0
        until(lambda: len(heard) == 2)
    assert heard == [Advance(fraction=0.5, text="half"), None]


def test_a_pipe_is_closed_though_somebody_still_holds_its_other_end() -> None:
    """What a program leaves behind cannot hold up its node."""
    with BeatPipe() as pipe:
        kept = os.dup(pipe.fd)
        pipe.listen(lambda _: None)
    with pytest.raises(BrokenPipeError):
        os.write(kept, b"{}\\n")
    os.close(kept)
    assert not [thread for thread in threading.enumerate() if thread.name == "hostler-beats"]


class Clock:
    """Seconds that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_pulse_tells_how_long_the_silence_is_and_how_late_it_was_looked_at() -> None:
    """From the start until there is a beat, and then from the last one; monotonic seconds."""
    clock = Clock()
    pulse = Pulse(clock)

    def taken(at: float, after_s: float) -> PulseTaken:
        clock.now = 100.0 + at
        return pulse.taken(TakePulse(node="a", attempt=3, after_s=after_s), running=True)

    assert taken(2.0, 2.0) == PulseTaken(node="a", attempt=3, beats=0, silent_s=2.0, late_s=0.0)
    clock.now = 103.5
    pulse.beat()
    seen = taken(4.0, 1.0)
    assert (seen.beats, seen.silent_s, seen.late_s) == (1, 0.5, 1.0)
    assert taken(4.25, 1.0).late_s == 0.0, "one that was looked at too early is not late"


class Heard:
    """An address that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, message: Any) -> None:
        self.told.append(message)


def port(scheduler: Heard, pulse: Pulse | None, control: Control | None = None) -> Port:
    return Port(
        node="a", attempt=2, scheduler=scheduler, control=control or Control(), logs=lambda _: Path("/"),
        workspace=lambda: Path("/"), reconciling=False, pulse=pulse,
    )  # fmt: skip


def test_progress_is_a_sign_of_life_and_a_beat_alone_is_told_to_nobody() -> None:
    """Beats stay in the memory of the host; only progress goes on to the view."""
    heard, pulse = Heard(), Pulse(Clock())
    host = port(heard, pulse)
    host.beat()
    assert heard.told == []
    host.progress(0.5, "half", None, None)
    host.progress(0.6, "more", None, None)
    assert [(each.fraction, each.attempt) for each in heard.told] == [(0.5, 2)], "at most a few a second"
    assert pulse.taken(TakePulse(node="a", attempt=2, after_s=0.0), running=True).beats == 3
    port(heard, None).beat()


def test_progress_of_an_attempt_that_has_ended_is_told_to_nobody() -> None:
    """A thread that it left may go on with it, and its node may run again by then."""
    heard, control = Heard(), Control()
    host = port(heard, None, control)
    control.finish(grace_s=0)
    host.progress(0.5, "late", None, None)
    assert heard.told == []


class Sent:
    """A channel that keeps what goes out."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def send(self, frame: Frame) -> None:
        self.kinds.append(orjson.loads(frame.words)["kind"])


def test_nothing_comes_from_a_worker_after_its_answer_though_a_thread_of_it_goes_on_beating() -> None:
    """A frame after the answer would break the attempt."""
    sent = Sent()
    host = RemoteHost(cast("Channel", sent), Control())
    host.beat()
    host.progress(0.5, "half", None, None)
    host.fall_silent()
    host._beats = Pace(0.0)  # it is not for their number that they do not come
    host.beat()
    host.progress(1.0, "done", None, None)
    assert sent.kinds == ["beaten", "advanced"]


def test_a_beat_of_an_attempt_that_was_asked_to_stop_is_refused() -> None:
    """G14: what the old attempt sends counts no more."""
    heard, control = Heard(), Control()
    assignment = Assignment(run_id="r", node="a", attempt=1, folder=Path("/"))
    context = Context(assignment, control=control, host=port(heard, Pulse(Clock())), lease=None)
    context.beat(0.25)
    context.beat({"progress": {"text": "reading"}})
    control.note("stall")
    with pytest.raises(OperationAborted):
        context.beat(0.5)
    assert [each.fraction for each in heard.told] == [0.25]


def test_the_descriptor_of_a_parent_is_not_named_to_those_that_do_not_inherit_it() -> None:
    """Its number would be that of something else there."""
    environ = {HEARTBEAT_FD: "7", "A": "b"}
    assert only_if_inherited(environ, [7, 8]) == environ
    assert only_if_inherited(environ, [8]) == {"A": "b"}
    assert only_if_inherited({"A": "b"}, []) == {"A": "b"}


def test_a_process_that_is_started_without_it_does_not_find_its_name(tmp_path: Path) -> None:
    """Neither what a program under a heartbeat leases for itself, nor a host inside a node, passes it on."""
    said: list[bytes] = []
    tree = Supervised.start(["env"], env={HEARTBEAT_FD: "7", "A": "b"}, on_stdout=said.append)
    tree.wait()
    tree.end(grace_s=0.0, reason="end")
    assert b"A=b" in b"".join(said)
    assert HEARTBEAT_FD.encode() not in b"".join(said)
