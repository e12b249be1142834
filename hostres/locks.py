"""Kernel locks that prove life: subclasses of fasteners' interprocess lock, on open file descriptions.

`flock` belongs to the open file description: every process that inherits the descriptor keeps the lock,
and the kernel frees it when the last copy is closed, however the owners died. On a FIFO the same
descriptor is also a doorbell (a byte written into it wakes its owner) and a death notice (whoever has it
open for reading sees a hang-up when the last owner is gone).
"""

# Plain strings on the hot path.
# ruff: noqa: PTH101, PTH104, PTH108

import contextlib
import errno
import os
import warnings
from pathlib import Path
from typing import Final, Self

import fasteners

from hostres import descriptors
from hostres.errors import Code, HostlerError
from hostres.folders import check_private_status, file_mode
from hostres.platforms import require_supported

require_supported()

import fcntl  # noqa: E402  absent elsewhere
from termios import FIONREAD  # noqa: E402  likewise

NEW: Final = ".new."
"""Prefix of names that are not yet anyone's."""

_NOTHING: Final = bytes(4)
"""No byte to be read, as FIONREAD tells it."""

LOOK: Final = b"!"
"""Says to a waiter: see who may go."""
WATCH: Final = b"w"
"""Says to a waiter: see whom you must watch; who may go is settled."""
ALIVE: Final = b"?"
"""Asks a waiter for a sign of life: it is enough that it takes the byte."""


class FifoLock(fasteners.InterProcessLock):  # type: ignore[misc]
    """A lock on a FIFO; released by closing only, so that a child's copy keeps it.

    Attributes:
        place: Where the FIFO is now.
        fd: The descriptor, -1 once closed; readable when somebody poked it.
        identity: Device and inode.

    """

    fd = -1

    def __init__(self, place: str) -> None:  # what fasteners notes it needs for waiting alone: see `acquire`
        self.place = place
        self.identity = (0, 0)
        self.acquired = False

    @classmethod
    def born(cls, folder: Path | str, name: str) -> Self:
        """Make a FIFO called *name* in *folder*, locked from the first moment anyone can see it.

        Locked under another name and then renamed: a reader's probe could else make the owner's first
        lock fail.

        Raises:
            OSError: It cannot be made.

        """
        lock = cls(f"{folder}/{NEW}{name}")
        os.mkfifo(lock.place, 0o600)
        try:
            lock._do_open()
            lock.trylock()
            lock.acquired = True
            lock.rename(f"{folder}/{name}")
        except BaseException:
            lock.discard()
            raise
        return lock

    @classmethod
    def taken_again(cls, place: str, identity: tuple[int, int]) -> Self | None:
        """Lock a FIFO that its owners have left.

        Whoever watches it would see it hang up no more: nobody must, and nobody begins to who does not hold the gate.

        Args:
            place: Where it is.
            identity: Its device and inode.

        Returns:
            None if somebody has a copy of its descriptor still, or it is not that FIFO any more.

        Raises:
            OSError: It cannot be opened.

        """
        lock = cls(place)
        try:
            lock._do_open()
            if lock.identity == identity:
                lock.trylock()
                lock.acquired = True
                return lock
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            lock.close()
            raise
        lock.close()
        return None

    def acquire(self, blocking: bool = True, **patience: float | None) -> bool:  # noqa: FBT001, FBT002  fasteners' signature
        """Lock the FIFO at `place`; see fasteners."""
        self._do_open()
        try:
            self.trylock()
        except BlockingIOError:
            super().__init__(self.place)
            return blocking and bool(super().acquire(blocking, **patience))
        self.acquired = True
        return True

    def release(self) -> None:
        """Close this copy of the descriptor, as unlocking it would unlock every inherited one."""
        self.close()

    def rename(self, place: str) -> None:
        """Move the FIFO, replacing nothing that lives."""
        os.rename(self.place, place)
        self.place = place

    def close(self) -> None:
        """Close this copy of the descriptor; idempotent. The lock goes with the last copy."""
        if self.fd >= 0:
            with descriptors.guard:
                if self.identity == (0, 0) or self.is_open():
                    descriptors.close(self.fd)
                else:
                    descriptors.lost(self.fd)
                self.fd = -1  # at last: whoever is interrupted before may close it again, which it sees if it is done
        self.acquired = False

    def discard(self) -> None:
        """Remove the FIFO, then close this copy of the descriptor."""
        with contextlib.suppress(OSError):
            os.unlink(self.place)
        self.close()

    def drain(self) -> bytes:
        """Take and return the bytes of those who poked."""
        if not has_unread(self.fd):  # as mostly: an exception would take longer
            return b""
        try:
            return os.read(self.fd, 4096)
        except BlockingIOError:
            return b""

    def is_open(self) -> bool:
        """Return whether our descriptor is this FIFO still: somebody may have closed it by its number."""
        try:
            status = os.fstat(self.fd)
        except OSError:
            return False
        return self.identity == (status.st_dev, status.st_ino)

    def still_there(self) -> bool:
        """Return whether `place` still is this very FIFO."""
        return self.fd >= 0 and identity(self.place) == self.identity

    def trylock(self) -> None:
        """Lock the open file description, or raise `BlockingIOError`."""
        fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _do_open(self) -> None:
        if self.fd >= 0:
            return
        flags = os.O_RDWR | os.O_NONBLOCK
        try:
            self.fd = descriptors.open_kept(self.place, flags, self)
        except PermissionError:  # a umask took our own access
            os.chmod(self.place, file_mode(self.place), follow_symlinks=False)
            self.fd = descriptors.open_kept(self.place, flags, self)
        status = os.fstat(self.fd)
        wanted = file_mode(self.place)
        if status.st_mode & 0o7777 != wanted:
            os.fchmod(self.fd, wanted)
        self.identity = (status.st_dev, status.st_ino)

    def __del__(self) -> None:
        if self.fd >= 0:
            self.close()
            warnings.warn(f"the lock {self.place} was never released", ResourceWarning, source=self, stacklevel=2)

    def forget(self) -> None:
        """Start anew; called in a forked child."""
        self.fd, self.acquired = -1, False


def identity(place: str) -> tuple[int, int] | None:
    """Return device and inode of what is at *place*, None if nothing is."""
    try:
        status = os.lstat(place)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def probe(path: Path | str) -> int | None:
    """Open the FIFO or file at *path* for watching.

    Opened first, then probed: a hang-up that comes after the answer cannot be missed.

    Returns:
        A descriptor open for reading (give it to `descriptors.close`) if somebody holds its lock, else None.

    Raises:
        HostlerError: `unsafe-state`: it is not private.

    """
    try:
        fd = descriptors.open_kept(os.fspath(path), os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise HostlerError(Code.UNSAFE_STATE, f"{path} is a symbolic link", "remove it") from None
        if error.errno == errno.ENXIO:  # a socket
            raise HostlerError(Code.UNSAFE_STATE, f"{path} is neither a file nor a FIFO", "move it away") from None
        raise
    try:
        status = os.fstat(fd)
        if status.st_nlink:  # a name withdrawn in this moment is none of our concern
            check_private_status(path, status)
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return fd
    except BaseException:
        descriptors.close(fd)
        raise
    descriptors.close(fd)
    return None


def is_locked(fd: int) -> bool:
    """Return whether somebody alive holds the lock of the FIFO that is open for watching as *fd*."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def is_held(path: Path | str) -> bool:
    """Return whether somebody alive holds the lock of the FIFO or file at *path*."""
    fd = probe(path)
    if fd is None:
        return False
    descriptors.close(fd)
    return True


def has_unread(fd: int) -> bool:
    """Return whether there are bytes of those who poked in the FIFO that is open as *fd*."""
    return fcntl.ioctl(fd, FIONREAD, _NOTHING) != _NOTHING


def is_unread(path: Path | str) -> bool:
    """Return whether the owner of the FIFO at *path* has not taken all bytes of those who poked."""
    try:
        fd = descriptors.open_kept(os.fspath(path), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return has_unread(fd)
    finally:
        descriptors.close(fd)


def poke(path: Path | str, word: bytes = LOOK) -> bool:
    """Write one byte into the FIFO at *path*, which wakes its owner.

    Args:
        path: The FIFO.
        word: What its owner is to do: `LOOK`, only `WATCH`, or no more than be `ALIVE`.

    Returns:
        Whether there is an owner to wake.

    Raises:
        OSError: No descriptor is left, so that it could not be told.

    """
    with descriptors.guard:  # a forked copy of a writing end would hide the owner's death
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            return False
        try:
            os.write(fd, word)
        except BlockingIOError:
            return True  # full of pokes: it will wake
        except OSError:
            return False
        finally:
            os.close(fd)
    return True
