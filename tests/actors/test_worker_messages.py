"""What a host takes from its worker: every field of every message, and nothing else."""

import contextlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.failures import MAX_MESSAGE, MAX_TRACEBACK_BYTES
from actors.frames import Frame, FrameError
from actors.worker_messages import (
    Advanced,
    Answer,
    Asked,
    Broke,
    Bundle,
    Calling,
    Gave,
    LeaseAt,
    Shown,
    Start,
    Stop,
    frame_of,
    from_host,
    from_worker,
)
from store.policy import FailureCode
from store.terms import EvidenceType

LEASE = LeaseAt(fd=5, place="/m/t", ticket=1, nonce="n", claims={"cpu": 1}, admitted_boot_ns=7)
START = Start(
    run_id="r", node="a", attempt=1, folder="/", code={"name": "f"}, bundled=True, max_output_bytes=9, lease=LEASE
)
OF_HOST = (
    START,
    Bundle(),
    Answer(id=1, paths=("/a", "/b")),
    Answer(id=2, refusal=(FailureCode.CONFLICT, "what", "todo")),
    Answer(id=3, aborted=True),
    Stop(reason="cancel"),
)
OF_WORKER = (
    Calling(),
    Advanced(fraction=0.5, text="half", speed=None, left_s=2.0),
    Asked(id=0, what="publication"),
    Gave(),
    Shown(id="suite", type=EvidenceType.TEST),
    Shown(id="x" * 1024, type=EvidenceType.TEST),
    Broke(code=FailureCode.INTERNAL, message="m", todo="t", retryable=False),
)
BROKE = {"kind": "broke", "code": "internal", "message": "m", "todo": "t", "retryable": False}
ADVANCED = {"kind": "advanced", "fraction": 0.5, "text": "", "speed": None, "left_s": None}


@pytest.mark.parametrize("message", OF_HOST, ids=lambda each: type(each).__name__)
def test_what_the_host_says_comes_back_whole(message):
    """A field that is lost on the way would be found by nothing else."""
    assert from_host(frame_of(message)) == message


@pytest.mark.parametrize("message", OF_WORKER, ids=lambda each: type(each).__name__)
def test_what_a_worker_says_comes_back_whole(message):
    """Likewise the other way."""
    assert from_worker(frame_of(message)) == message


@pytest.mark.parametrize(
    "words",
    [
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b'"calling"',
        {"kind": "start"},
        {"kind": "stop", "reason": "cancel"},
        {"kind": {}},
        {"kind": "calling", "more": 1},
        {},
        {**ADVANCED, "fraction": 2},
        {**ADVANCED, "fraction": "half"},
        {**ADVANCED, "text": "x" * 1001},
        {**ADVANCED, "speed": -1},
        {**ADVANCED, "left_s": "long"},
        {"kind": "asked", "id": 1, "what": "everything"},
        {"kind": "asked", "id": -1, "what": "logs"},
        {"kind": "asked", "id": 1.5, "what": "logs"},
        {"kind": "asked", "id": True, "what": "logs"},
        {**BROKE, "code": "new"},
        {**BROKE, "message": "x" * (MAX_MESSAGE + 1)},
        {**BROKE, "retryable": "no"},
        {key: value for key, value in BROKE.items() if key != "todo"},
    ],
    ids=repr,
)
def test_anything_else_is_refused_with_one_kind_of_error(words):
    """A worker that lies must not make the host do anything but fail the node."""
    with pytest.raises(FrameError):
        from_worker(Frame(words=words if isinstance(words, bytes) else orjson.dumps(words)))


@pytest.mark.parametrize("message", [each for each in OF_WORKER if not isinstance(each, Gave)], ids=repr)
def test_a_message_that_has_no_use_for_bytes_must_not_bring_any(message):
    """Bounds of the stream alone would let 32 MiB ride on each progress report."""
    with pytest.raises(FrameError):
        from_worker(frame_of(message, b"x" * (MAX_TRACEBACK_BYTES + 1)))


@given(words=st.binary(max_size=60))
def test_no_bytes_make_another_error(words):
    """Whatever comes."""
    with contextlib.suppress(FrameError):
        from_worker(Frame(words=words))
