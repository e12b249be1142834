"""Room on the disk of the store: how running steps end can be recorded when nothing else can be written any more.

A file of the state folder takes up the room and holds nothing. A write that finds the disk full removes it and is made
again; whoever is to begin something new asks first whether there is room besides.
"""

import contextlib
import errno
import os
import sqlite3
from typing import Final

from hostres.errors import HostlerError
from store.faults import no_room
from store.home import Home
from store.limits import KIB, MIB

RESERVE_BYTES: Final = 1 * MIB
LEAST_BYTES: Final = 256 * KIB
"""What must be free besides the reserve before something new begins."""


def shortage(home: Home) -> HostlerError | None:
    """Say why nothing new may begin on the disk of *home*, None if there is room; before every step, so it is quick."""
    free = _free_bytes(home)
    if free >= RESERVE_BYTES + LEAST_BYTES or (free >= LEAST_BYTES and _is_whole(home)):
        return None
    return no_room(f"the disk is full: what is left for {home.database} is kept for the end of what runs already")


def refuse_if_full(home: Home) -> None:
    """Refuse to begin something new.

    Raises:
        HostlerError: unavailable, as `shortage` says.

    """
    full = shortage(home)
    if full is not None:
        raise full


def keep_reserve(home: Home) -> bool:
    """Take up the reserve, unless that is done already or would leave no room to work; say whether it is there."""
    if _is_whole(home):
        return True
    if _free_bytes(home) < RESERVE_BYTES + LEAST_BYTES:
        return False
    with contextlib.suppress(OSError):  # where it cannot be had the disk says so when it is full
        fd = os.open(home.reserve, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _take_up(fd)
        except OSError:
            home.reserve.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)
    return _is_whole(home)


def give_up_reserve(home: Home) -> bool:
    """Leave the room of the reserve to what must be written; say whether there was any."""
    try:
        home.reserve.unlink()
    except OSError:
        return False
    return True


def is_full(refusal: HostlerError) -> bool:
    """Say whether it was for want of room that a write was refused."""
    cause = refusal.__cause__
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _free_bytes(home: Home) -> int:
    disk = os.statvfs(home.root)
    return disk.f_bavail * disk.f_frsize


def _is_whole(home: Home) -> bool:
    try:
        return os.stat(home.reserve, follow_symlinks=False).st_size >= RESERVE_BYTES  # noqa: PTH116 - before each step
    except OSError:
        return False


def _take_up(fd: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, RESERVE_BYTES)
    else:  # macOS has no such call
        os.pwrite(fd, bytes(RESERVE_BYTES), 0)
