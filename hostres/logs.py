"""The bounded log of one output stream: its first and its last part, and how much was dropped between.

While the stream goes on, `LOG` holds the first part and `LOG.at-OFFSET` at most two segments of the last; so a crash
leaves both parts on disk. At the end the segments are joined to the log. Bytes are kept as they are. What the disk does
not take is counted and said, in the log itself where there is room again.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from hostres.folders import open_private

KEEP_BYTES: Final = 4 << 20
_COPY: Final = 1 << 16


class Cut(NamedTuple):
    """What a log lacks because the disk did not take it.

    Attributes:
        stream: Name of the log's file.
        missing: Bytes that would have been kept otherwise, at most.
        why: What the system said first.

    """

    stream: str
    missing: int
    why: str


class BoundedLog:
    """Keeps at most *keep_bytes* of a stream, half of them its beginning."""

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
        self._missing = 0
        self._why = ""
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
                except OSError as error:
                    self._stop()
                    self._why = self._why or error.strerror or str(error)
            if self._fd is None:
                self._missing += taken
            self._offset += taken
            self._room -= taken
            view = view[taken:]

    @property
    def cut(self) -> Cut | None:
        """What it lacks because the disk did not take it, None if nothing."""
        return Cut(self.path.name, self._missing, self._why) if self._missing else None

    def close(self) -> None:
        """Join the parts; idempotent. Where the disk has no room for that, they stay as they are, and are read so."""
        self._stop()
        with contextlib.suppress(OSError):
            _join(self.path, self._offset, self._tail_bytes)

    def _next_segment(self) -> None:
        self._stop()
        for old in _segments(self.path)[:-1]:
            old.unlink(missing_ok=True)
        place = self.path.with_name(f"{self.path.name}.at-{self._offset}")
        try:
            self._fd = open_private(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except OSError as error:
            self._why = self._why or error.strerror or str(error)
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
    end = path.stat().st_size
    if not segments and end >= total:
        return
    fd = open_private(path, os.O_WRONLY | os.O_APPEND)
    try:
        _append(fd, segments, end=end, total=total, tail_bytes=tail_bytes)
    except OSError:
        os.ftruncate(fd, end)  # half of a segment would be read twice
        raise
    finally:
        os.close(fd)
    for segment in segments:
        segment.unlink(missing_ok=True)


def _append(fd: int, segments: list[Path], *, end: int, total: int, tail_bytes: int) -> None:
    """Write what follows the first part: the last *tail_bytes* of the stream, with a mark for each gap."""
    for segment in segments:
        start = max(end, total - tail_bytes, _start(segment))
        last = _start(segment) + segment.stat().st_size
        if start >= last:
            continue
        if start > end:
            _write_all(fd, _mark(start - end))
        for piece in _pieces(segment, start - _start(segment)):
            _write_all(fd, piece)
        end = last
    if total > end:
        _write_all(fd, _mark(total - end))


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


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
