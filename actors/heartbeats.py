"""The heartbeat descriptor of a process: each line of JSON that comes on it is a beat, and may carry progress."""

import contextlib
import os
import select
import threading
from collections.abc import Callable, Iterator
from typing import Final, Self

import orjson
from pydantic import JsonValue

from store.lazy_dataclass import dataclass

MAX_LINE_BYTES: Final = 64 * 1024
"""A longer line is no beat."""
_PIECE: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """How far the work is.

    Attributes:
        fraction: From 0 to 1; None is unknown.
        text: A few words.

    """

    fraction: float | None = None
    text: str = ""


def advance_of(value: JsonValue) -> Advance | None:
    """Return the progress that a beat carries, None if it carries none that can be read.

    Args:
        value: `{"fraction": 0.5, "text": "…"}`, either of them, also under the name `progress`; or a bare fraction.

    """
    if isinstance(value, dict) and "progress" in value:
        value = value["progress"]
    given = value if isinstance(value, dict) else {"fraction": value}
    fraction, text = given.get("fraction"), given.get("text")
    if isinstance(fraction, bool) or not isinstance(fraction, int | float):
        fraction = None
    words = text if isinstance(text, str) else ""
    return Advance(fraction=fraction, text=words) if fraction is not None or words else None


class Lines:
    """Takes what comes apart into lines; one that is too long is left out."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._skips = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next bytes and yield the lines that they complete."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._held += end
            if not self._skips and len(self._held) <= MAX_LINE_BYTES:
                yield bytes(self._held)
            self._held.clear()
            self._skips = False
        self._held += rest
        if len(self._held) > MAX_LINE_BYTES:
            self._held.clear()
            self._skips = True


class BeatPipe:
    """A pipe whose writing end a process inherits.

    Attributes:
        fd: That end, until the process has been started and `listen` is called.

    """

    def __init__(self) -> None:
        self._read_fd, self.fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read_fd, False)
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Hear no more, whoever still holds the other end."""
        self._close_ours()
        if self._thread is not None:
            os.eventfd_write(self._bell, 1)
            self._thread.join()
        os.close(self._read_fd)
        os.close(self._bell)

    def listen(self, on_beat: Callable[[Advance | None], None]) -> None:
        """Hear the process, which has been started, on a thread of its own.

        Args:
            on_beat: Called for each beat.

        """
        self._close_ours()
        self._thread = threading.Thread(target=self._hear, args=(on_beat,), name="hostler-beats", daemon=True)
        self._thread.start()

    def _close_ours(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def _hear(self, on_beat: Callable[[Advance | None], None]) -> None:
        poll, lines = select.poll(), Lines()
        poll.register(self._read_fd, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        while self._bell not in (ready := dict(poll.poll())):
            piece = os.read(self._read_fd, _PIECE) if self._read_fd in ready else b""
            if not piece:
                return
            for line in lines.feed(piece):
                with contextlib.suppress(orjson.JSONDecodeError):  # what is no JSON is no beat
                    on_beat(advance_of(orjson.loads(line)))
