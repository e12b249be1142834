"""Files that somebody else names: opened only where they are files, so that nobody waits for the writer of a pipe.

Opening a pipe waits until somebody writes to it, and a device may do anything; no thread that waits there can be
ended. So the kind is looked at before and after, and nothing is ever waited for.
"""

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from hostres.errors import Code, HostlerError

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


class NotRegularError(OSError):
    """What was to be read is no file; its `strerror` says what it is."""


def open_regular(path: Path, *, follow: bool = True) -> BinaryIO:
    """Open a file for reading, without waiting for anything.

    Args:
        path: The file.
        follow: Whether it may be a link to one.

    Raises:
        NotRegularError: It is something else.
        OSError: It is not there, or cannot be opened.

    """
    return os.fdopen(_opened(path, {stat.S_IFREG}, follow=follow), "rb")


def open_source(path: Path) -> BinaryIO:
    """Open what a program is going to read: a file, or a device that gives as much as is read.

    A pipe is refused: if nobody has begun to write to it, whoever opens it either waits for ever or finds it empty.

    Raises:
        HostlerError: invalid-data: it is something else.
        OSError: It is not there, or cannot be opened.

    """
    try:
        fd = _opened(path, {stat.S_IFREG, stat.S_IFCHR}, follow=True)
    except NotRegularError as error:
        what = f"{path}, which is to be read as standard input, {error.strerror}"
        raise HostlerError(Code.INVALID_DATA, what, "give a file, or bytes") from error
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)  # whoever reads it may well wait
    return os.fdopen(fd, "rb", buffering=0)


def _opened(path: Path, kinds: set[int], *, follow: bool) -> int:
    try:
        _check(path.stat(follow_symlinks=follow), kinds, path)
        fd = os.open(path, _FLAGS if follow else _FLAGS | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotRegularError(errno.ELOOP, "is a link that leads round in a circle", str(path)) from None
        raise
    try:
        _check(os.fstat(fd), kinds, path)
    except OSError:
        os.close(fd)
        raise
    return fd


def _check(status: os.stat_result, kinds: set[int], path: Path) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind not in kinds:
        code = errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL
        raise NotRegularError(code, f"is {_KINDS.get(kind, 'something else')}, not a file", str(path))
