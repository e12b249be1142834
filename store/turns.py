"""Who writes next, among the processes of one home.

SQLite's own waiting is a race that whoever has just written wins. So a writer first becomes the one that is next, by a
kernel lock that dies with its process, and gives that up only when it has SQLite's lock: nobody can write twice while
another waits. It is a courtesy, which decides nothing but the order: who cannot have a turn goes on without one.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hostres.folders import open_private

FILE: Final = "writers.lock"
_PAUSE_S: Final = 0.0002
_LONGEST_PAUSE_S: Final = 0.001
_PATIENT_AFTER_S: Final = 0.05


class Turns:
    """The line of one home, as one connection stands in it.

    Args:
        database: The store that is written.

    """

    def __init__(self, database: Path) -> None:
        self._fd: int | None = None
        with contextlib.suppress(OSError):  # a full or read-only disk, about which SQLite has its own say
            self._fd = open_private(database.with_name(FILE), os.O_RDWR | os.O_CREAT)

    def close(self) -> None:
        """Leave for good; idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @contextlib.contextmanager
    def next(self, seconds: float) -> Iterator[None]:
        """Be the next writer while the block waits for SQLite's lock.

        Args:
            seconds: How long to wait for that at most.

        """
        taken = self.take(seconds)
        try:
            yield
        finally:
            if taken:
                self.give_up()

    def give_up(self) -> None:
        """Let the one after this be the next."""
        if self._fd is not None:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def take(self, seconds: float) -> bool:
        """Be the next writer until `give_up`.

        Args:
            seconds: How long to wait for that at most.

        Returns:
            Whether it is; if not, go on without.

        """
        fd = self._fd
        if fd is None:
            return False
        began = None
        while True:
            try:  # a POSIX lock: unlike those of `flock` it does not live on in a forked child
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            except OSError:
                return False
            else:
                return True
            now = time.monotonic()
            began = began or now
            if now - began >= seconds:
                return False
            time.sleep(_PAUSE_S if now - began < _PATIENT_AFTER_S else _LONGEST_PAUSE_S)
