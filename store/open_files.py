"""The files that a writing connection has open, held against those that lie under their names.

SQLite opens the log and its index by name, once. Whoever comes after one of them was removed makes a new one, sees
neither what is in the old one nor who works with it, and both write into one file. So a connection whose files are not
those under their names must write nothing more, and must not move its log into the file when it is closed.
"""

import contextlib
import fcntl
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_SHARED_FIRST: Final = 0x40000002
_SHARED_BYTES: Final = 510
"""Where SQLite locks a file that it reads (https://www.sqlite.org/src/file/src/os.h, SHARED_FIRST and SHARED_SIZE)."""

_FLOCK: Final = "hhqqi0q"
"""`struct flock` of `fcntl(2)`: type, whence, start, length, process; the process must be 0 here."""

_held: Final[dict[tuple[int, int], int]] = {}
"""Descriptors by device and inode; to close one would drop the locks that SQLite holds on the file in this process."""
_holding: Final = threading.Lock()

Identity = tuple[int, int]


class OpenFiles:
    """What one connection has open: the file, its log, and the log's index.

    Args:
        database: The file; all three are open.

    """

    def __init__(self, database: Path) -> None:
        self._database = os.fspath(database)
        self._log = f"{database}-wal"
        names = (self._database, self._log, f"{database}-shm")
        # never by opening them: closing a second descriptor would drop the locks that SQLite holds in this process
        found = [_status(name) for name in names]
        file = found[0]
        self._file = None if file is None else (file.st_dev, file.st_ino)
        self._beside = [
            (name, status.st_ino) for name, status in zip(names[1:], found[1:], strict=True) if status is not None
        ]
        self._seen = None if file is None else (file.st_size, file.st_mtime_ns)

    def still_there(self) -> bool:
        """Say whether those files are still the ones that everybody else finds; two calls of the kernel beside one."""
        lstat = os.lstat
        try:
            file = lstat(self._database)
            for name, inode in self._beside:
                if lstat(name).st_ino != inode:
                    return False
        except FileNotFoundError:
            return False
        if (file.st_dev, file.st_ino) != self._file or not file.st_size:
            return False
        self._seen = file.st_size, file.st_mtime_ns
        return True

    def log_must_stay(self) -> bool:
        """Say whether the log must stay as it is when the connection is closed.

        What is in it would be written over what somebody else has written since, or into a file that was emptied. If
        it was only removed, and nobody else has come, closing saves what is in it.
        """
        file = _status(self._database)
        if file is None or (file.st_dev, file.st_ino) != self._file:
            return False  # SQLite sees that, and leaves the log
        if not file.st_size:
            return True
        beside = [_status(name) for name, _ in self._beside]
        if [None if status is None else status.st_ino for status in beside] == [inode for _, inode in self._beside]:
            return False
        log = _status(self._log)
        return (file.st_size, file.st_mtime_ns) != self._seen or (log is not None and log.st_size > 0)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def as_if_in_use(database: Path) -> Iterator[None]:
    """Let SQLite find that somebody else reads the file while the block closes a connection: then it leaves the log.

    There is a setting for that, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, which Python has from 3.12 on. The lock belongs to
    the descriptor (F_OFD_SETLK in `fcntl(2)`), so that it also keeps out this process itself.

    Args:
        database: The file that the connection has open.

    """
    with _holding:
        fd = _descriptor(database)
        if fd is None:
            yield
            return
        try:
            yield
        finally:
            _lock(fd, fcntl.F_UNLCK)


def _descriptor(database: Path) -> int | None:
    """Return a locked descriptor of the file; None where the file cannot be opened, or takes no such lock."""
    with contextlib.suppress(OSError):
        status = os.lstat(database)
        place = status.st_dev, status.st_ino
        if place not in _held:
            _held[place] = os.open(database, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        _lock(_held[place], fcntl.F_RDLCK)
        return _held[place]
    return None


def _lock(fd: int, kind: int) -> None:
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, _SHARED_FIRST, _SHARED_BYTES, 0))
