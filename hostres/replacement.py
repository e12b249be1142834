"""The next content of a file: whole on disk beside it, then put in its place by one rename.

Whoever is killed in between leaves what it wrote; the next one finds it by its name and removes it. A lock says that
somebody is still at work on it.
"""

# Path.resolve is not what follows a link to nowhere.
# ruff: noqa: PTH104, PTH108, PTH116, PTH118

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_BYTES: Final = 6
"""Of chance in the name of what is not in its place yet."""


@contextlib.contextmanager
def replacement(path: Path, data: bytes) -> "Iterator[Replacement]":
    """Write the next content of *path* beside it; without `commit` nothing has happened.

    Args:
        path: The file, or a link to it, which stays a link. A missing one is made with mode 0600, its missing folders
            with 0700.
        data: The content.

    Raises:
        OSError: It cannot be written.

    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    before = None
    with contextlib.suppress(FileNotFoundError), open(target, "rb") as file:  # noqa: PTH123
        before = file.read()
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    _sweep(folder, name)
    draft, fd = _begun(folder, name)
    try:
        _write(fd, data, target)
        one = Replacement(draft, target, before)
        yield one
        if one.committed:
            with contextlib.suppress(OSError):  # it stands; whether also after a power failure is all that is left open
                sync(folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        os.close(fd)


class Replacement:
    """What `replacement` wrote.

    Attributes:
        committed: Whether it is in its place.

    """

    def __init__(self, draft: str, target: str, before: bytes | None) -> None:
        self._draft = draft
        self._target = target
        self._before = before
        self.committed = False

    def commit(self) -> None:
        """Put it in its place.

        Raises:
            OSError: It cannot be renamed; the old content stands.

        """
        os.rename(self._draft, self._target)
        self.committed = True

    def undo(self) -> None:
        """Give the file back what was in it, if `commit` has replaced that; nothing, if there was none.

        Raises:
            OSError: It cannot be written.

        """
        if not self.committed:
            return
        if self._before is None:
            os.unlink(self._target)
        else:
            with replacement(Path(self._target), self._before) as one:
                one.commit()
        self.committed = False


def _begun(folder: str, name: str) -> tuple[str, int]:
    """Return the path of a new file beside another one, and its descriptor, which has the lock of it."""
    while True:
        draft = os.path.join(folder, f".{name}.{os.urandom(_BYTES).hex()}")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if _is_ours(fd):
            return draft, fd
        os.close(fd)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)


def _is_ours(fd: int) -> bool:
    """Take the lock of a new file; return whether nobody who swept was faster."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # where there are no locks nobody sweeps either
    return os.fstat(fd).st_nlink > 0


def _sweep(folder: str, name: str) -> None:
    """Remove what killed programs have left beside a file."""
    form = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{{2 * _BYTES}}}")
    names: list[str] = []
    with contextlib.suppress(OSError):  # one may be allowed to write into it and not to list it
        names = os.listdir(folder)  # noqa: PTH208  names alone
    for left in filter(form.fullmatch, names):
        path = os.path.join(folder, left)
        with contextlib.suppress(OSError):  # of somebody else, or of one who is at work; it is in nobody's way
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
            finally:
                os.close(fd)


def _write(fd: int, data: bytes, target: str) -> None:
    while data:
        data = data[os.write(fd, data) :]
    mode = 0o600
    with contextlib.suppress(FileNotFoundError):
        old = os.stat(target)
        mode = stat.S_IMODE(old.st_mode)
        with contextlib.suppress(PermissionError):
            os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, mode)
    os.fsync(fd)


def sync(path: Path | str) -> None:
    """Make a file, or the names in a folder, durable."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
