"""A file gets its final name at once and whole, or not at all."""

import errno
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import Final

from hostres.replacement import sync

COPY_BYTES: Final = 1 << 20
NO_UNNAMED_FILES: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL})
"""What file systems answer that cannot make a file without a name."""


def publish_file(source: Path, target: Path, *, keep: bool) -> None:
    """Publish *source* as *target*: its bytes are on the disk before the name is.

    A copy is made in a file without a name, which vanishes with its maker; so a kill in mid copy leaves nothing. The
    name under which it then stands for a moment is short and unrelated to the final one, so a final name of the
    longest legal length works.

    Args:
        source: A finished file.
        target: Absolute; missing folders are made; an existing file is replaced.
        keep: Whether *source* stays, as it must where another node made it; otherwise it is moved where it can be.

    Raises:
        OSError: The disk is full, the folder is not writable, the name is too long…; nothing has the final name then.

    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if not keep and _moved(source, target):
        sync(target.parent)
        return
    beside = target.parent / f".hostler-{secrets.token_hex(6)}"
    try:
        _copy(source, beside)
        beside.replace(target)
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


def _moved(source: Path, target: Path) -> bool:
    sync(source)
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _copy(source: Path, beside: Path) -> None:
    unnamed = _open_unnamed(beside.parent)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC) if unnamed is None else unnamed
    with source.open("rb") as reading, os.fdopen(descriptor, "wb") as writing:
        shutil.copyfileobj(reading, writing, COPY_BYTES)
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
