"""The bounded log of one output stream: its first and its last part, and how much was dropped between.

While the stream goes on, `LOG` holds the first part and `LOG.at-OFFSET` at most two segments of the last; so a crash
leaves both parts on disk. At the end the segments are joined to the log. Bytes are kept as they are.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hostres.folders import open_private

KEEP_BYTES: Final = 4 << 20
_COPY: Final = 1 << 16


class BoundedLog:
    """Keeps at most *keep_bytes* of a stream, half of them its beginning.

    Attributes:
        dropped: Bytes that were not kept, final after `close`.

    """

    def __init__(self, path: Path, keep_bytes: int = KEEP_BYTES) -> None:
        """Start the log, replacing an older one.

        Args:
            path: The file.
            keep_bytes: How much to keep.

        Raises:
            HostlerError: `unsafe-state`.
            OSError: It cannot be made.

        """
        for old in (path, *_segments(path)):
            old.unlink(missing_ok=True)
        self.path = path
        self.dropped = 0
        self._head_bytes = keep_bytes - keep_bytes // 2
        self._tail_bytes = max(1, keep_bytes // 2)
        self._offset = 0
        self._room = self._head_bytes
        self._fd: int | None = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def write(self, piece: bytes) -> None:
        """Take the next bytes. Where the disk takes them no more they are dropped: the stream must go on."""
        view = memoryview(piece)
        while view:
            if self._room == 0:
                self._next_segment()
            taken = min(len(view), self._room)
            if self._fd is not None:
                try:
                    taken = os.write(self._fd, view[:taken])
                except OSError:
                    self._stop()
            if self._fd is None:
                self.dropped += taken
            self._offset += taken
            self._room -= taken
            view = view[taken:]

    def close(self) -> None:
        """Join the parts; idempotent."""
        self._stop()
        with contextlib.suppress(OSError):
            _join(self.path, self._offset, self._tail_bytes)

    def _next_segment(self) -> None:
        if self._fd is None:
            self._room = self._tail_bytes
            return
        self._stop()
        for old in _segments(self.path)[:-1]:
            old.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            place = self.path.with_name(f"{self.path.name}.at-{self._offset}")
            self._fd = open_private(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self._room = self._tail_bytes

    def _stop(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def read_log(path: Path) -> Iterator[bytes]:
    """Return a log piece by piece, also one whose stream goes on or whose writer was killed.

    Raises:
        FileNotFoundError: There is none.

    """
    end = path.stat().st_size
    yield from _pieces(path, 0)
    for segment in _segments(path):
        start = _start(segment)
        if start > end:
            yield _mark(start - end)
        with contextlib.suppress(FileNotFoundError):
            end = start + segment.stat().st_size
            yield from _pieces(segment, 0)


def _join(path: Path, total: int, tail_bytes: int) -> None:
    segments = _segments(path)
    if not segments:
        return
    end = path.stat().st_size
    start = max(end, total - tail_bytes)
    fd = open_private(path, os.O_WRONLY | os.O_APPEND)
    try:
        if start > end:
            os.write(fd, _mark(start - end))
        for segment in segments:
            for piece in _pieces(segment, max(0, start - _start(segment))):
                os.write(fd, piece)
    finally:
        os.close(fd)
    for segment in segments:
        segment.unlink(missing_ok=True)


def _segments(path: Path) -> list[Path]:
    prefix = f"{path.name}.at-"
    with contextlib.suppress(FileNotFoundError):
        return sorted((one for one in path.parent.iterdir() if one.name.startswith(prefix)), key=_start)
    return []


def _start(segment: Path) -> int:
    return int(segment.name.rpartition("-")[2])


def _pieces(path: Path, offset: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(offset)
        while piece := file.read(_COPY):
            yield piece


def _mark(count: int) -> bytes:
    return f"\n[hostler: {count} bytes dropped here]\n".encode()
