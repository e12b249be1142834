"""A file gets its final name at once and whole, or not at all."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from actors.failures import OperationFailed
from hostres.regular_files import NotRegularError, open_regular
from hostres.replacement import sync
from store.policy import FailureCode

COPY_BYTES: Final = 1 << 20
NO_UNNAMED_FILES: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL})
"""What file systems answer that cannot make a file without a name."""
NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK})
"""What file systems answer that give a file no second name; there only a look before protects what is there."""


def check_source(source: Path) -> None:
    """Refuse to publish what is no file.

    A folder cannot take the place of another one in one step, so its name would not stand for all of it or nothing.

    Raises:
        OperationFailed: invalid-data, with what it is.
        OSError: It is not there, or cannot be read.

    """
    try:
        open_regular(source).close()
    except NotRegularError as error:
        todo = "publish its files one by one" if error.errno == errno.EISDIR else "publish a file that is finished"
        raise OperationFailed(FailureCode.INVALID_DATA, f"{source} {error.strerror}", todo) from error


def publish_file(
    source: Path, target: Path, *, keep: bool, overwrite: bool = True, between: Callable[[], object] = lambda: None
) -> None:
    """Publish *source* as *target*: its bytes are on the disk before the name is.

    A copy is made in a file without a name, which vanishes with its maker; so a kill in mid copy leaves nothing. The
    name under which it then stands for a moment is short and unrelated to the final one, so a final name of the
    longest legal length works.

    Args:
        source: A finished file; what is no file is refused, see `check_source`.
        target: Absolute; missing folders are made.
        keep: Whether *source* stays, as it must where another node made it; otherwise it is moved where it can be.
        overwrite: Whether a file of that name is replaced, also one that was made meanwhile.
            Otherwise a name before the final one that cannot be removed stays, too.
        between: Called before each piece that is copied; what it raises ends this, and nothing has the final name.

    Raises:
        OperationFailed: conflict: there is a file of that name, which stays.
        OSError: The disk is full, the folder is not writable, the name is too long…; nothing has the final name then.
            Only where the names in the folder could not be made durable is the file there.

    """
    with open_regular(source) as reading:
        target.parent.mkdir(parents=True, exist_ok=True)
        rename = _replace if overwrite else _take
        if not keep and _moved(reading, source, target, rename):
            sync(target.parent)
            return
        beside = target.parent / f".hostler-{secrets.token_hex(6)}"
        try:
            _copy(reading, beside, between)
            rename(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    sync(target.parent)


def is_special(target: Path) -> bool:
    """Say whether *target* stands for something else than a file: a link, a device, a pipe; none is replaced."""
    try:
        return not stat.S_ISREG(target.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _replace(start: Path, target: Path) -> None:
    start.replace(target)


def _take(start: Path, target: Path) -> None:
    """Give a file a name that none has, at once with looking: a second link is refused where there is a file."""
    try:
        os.link(start, target, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.EEXIST or (error.errno in NO_LINKS and os.path.lexists(target)):
            todo = "move it away, choose another target, or set overwrite"
            raise OperationFailed(FailureCode.CONFLICT, f"{target} exists", todo) from error
        if error.errno not in NO_LINKS:
            raise
        start.replace(target)
    else:
        with contextlib.suppress(OSError):  # it is published; a second name that cannot be removed does no harm
            start.unlink()


def _moved(reading: BinaryIO, source: Path, target: Path, rename: Callable[[Path, Path], None]) -> bool:
    os.fsync(reading.fileno())
    try:
        rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _copy(reading: BinaryIO, beside: Path, between: Callable[[], object]) -> None:
    unnamed = _open_unnamed(beside.parent)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC) if unnamed is None else unnamed
    with os.fdopen(descriptor, "wb") as writing:
        while piece := reading.read(COPY_BYTES):
            between()
            writing.write(piece)
        writing.flush()
        os.fchmod(descriptor, os.fstat(reading.fileno()).st_mode & 0o777)
        os.fsync(descriptor)
        if unnamed is not None:
            _name(descriptor, beside)


def _name(descriptor: int, path: Path) -> None:
    """Give an unnamed file a name: by its link in /proc, which only `linkat` follows, and that needs a folder."""
    folder = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(str(descriptor), path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _open_unnamed(folder: Path) -> int | None:
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in NO_UNNAMED_FILES:
            raise
        return None
