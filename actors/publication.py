"""A file gets its final name at once and whole, or not at all."""

import errno
import os
import secrets
import shutil
from pathlib import Path
from typing import Final

COPY_BYTES: Final = 1 << 20


def publish_file(source: Path, target: Path, *, keep: bool) -> None:
    """Publish *source* as *target*: its bytes are on the disk before the name is.

    The temporary name is short and unrelated to the final one, so a final name of the longest legal length works.

    Args:
        source: A finished file.
        target: Absolute; missing folders are made; an existing file is replaced.
        keep: Whether *source* stays, as it must where another node made it; otherwise it is moved where it can be.

    Raises:
        OSError: The disk is full, the folder is not writable, the name is too long…; nothing has the final name then.

    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if not keep and _moved(source, target):
        _sync(target.parent)
        return
    beside = target.parent / f".hostler-{secrets.token_hex(6)}"
    try:
        with source.open("rb") as reading, beside.open("xb") as writing:
            shutil.copyfileobj(reading, writing, COPY_BYTES)
            writing.flush()
            os.fsync(writing.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync(target.parent)


def _moved(source: Path, target: Path) -> bool:
    _sync(source)
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
