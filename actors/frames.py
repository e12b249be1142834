"""Frames on a stream: so many bytes of words (a JSON object), then so many raw bytes; both bounded before they come.

Taking apart what arrives is pure: the same bytes give the same frames, in whatever pieces they come.
"""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Final

from store.lazy_dataclass import dataclass

HEADER: Final = struct.Struct("!II")
PIECE: Final = 1 << 18


class FrameError(Exception):
    """What arrived is no frame, or one over its bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message as bytes.

    Attributes:
        words: A JSON object.
        blob: What is better not written as JSON.

    """

    words: bytes
    blob: bytes = b""


class FrameReader:
    """Takes a stream apart.

    Attributes:
        max_words: Bound of the words of a frame, bytes.
        max_blob: Bound of its blob, bytes.

    """

    def __init__(self, *, max_words: int, max_blob: int) -> None:
        self.max_words = max_words
        self.max_blob = max_blob
        self._held = bytearray()

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Take the next bytes and yield the frames that they complete.

        Raises:
            FrameError: A frame is over its bounds; whatever follows means nothing.

        """
        self._held += piece
        while len(self._held) >= HEADER.size:
            words, blob = HEADER.unpack_from(self._held)
            if not 0 < words <= self.max_words or blob > self.max_blob:
                raise FrameError(
                    f"a frame of {words} + {blob} bytes, where at most {self.max_words} + {self.max_blob} may come"
                )
            middle, end = HEADER.size + words, HEADER.size + words + blob
            if len(self._held) < end:
                return
            frame = Frame(words=bytes(self._held[HEADER.size : middle]), blob=bytes(self._held[middle:end]))
            del self._held[:end]
            yield frame


class Channel:
    """One end of a stream of frames, for any number of sending threads and one that receives.

    A forked child has no part in it: there, everything says that it is closed.
    """

    def __init__(self, end: socket.socket, *, max_words: int, max_blob: int) -> None:
        self._end = end
        self._reader = FrameReader(max_words=max_words, max_blob=max_blob)
        self._sending = threading.Lock()
        self._pid = os.getpid()

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._end.fileno()

    def send(self, frame: Frame, *, patient: bool = True) -> None:
        """Send a frame.

        Args:
            frame: What to send.
            patient: Whether to wait until there is room for it; otherwise it is dropped where there is none.

        Raises:
            OSError: The other end is gone, or this is a forked child.

        """
        if os.getpid() != self._pid:
            raise BrokenPipeError("the channel belongs to the process that this one was forked from")
        head = HEADER.pack(len(frame.words), len(frame.blob)) + frame.words
        if not self._sending.acquire(blocking=patient):
            return
        try:
            if patient:
                self._end.sendall(head)
                self._end.sendall(frame.blob)
            else:
                self._end.send(head + frame.blob, socket.MSG_DONTWAIT)
        finally:
            self._sending.release()

    def receive(self) -> list[Frame] | None:
        """Wait for what comes next.

        Returns:
            The frames that are complete by now, perhaps none; None at the end of the stream.

        Raises:
            FrameError: It is no frame, or one over its bounds.

        """
        try:
            piece = self._end.recv(PIECE)
        except ConnectionResetError:  # it left without reading all that it was sent
            return None
        return list(self._reader.feed(piece)) if piece else None

    def close(self) -> None:
        """Close this end; idempotent."""
        self._end.close()
