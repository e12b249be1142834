"""Draining the output of a process: any volume, any bytes, flat memory."""

import fcntl
import os
import sys
import termios
from collections.abc import Callable
from typing import IO, Final

from hostres.logger import LOG
from hostres.masking import Sink

_PIECE: Final = 1 << 18


class OutputStream:
    """One output of a process: its pipe, its log, and who is told.

    Attributes:
        fd: The reading end, -1 at its end.

    """

    def __init__(self, file: IO[bytes] | None, log: Sink | None, callback: Callable[[bytes], None] | None) -> None:
        assert file is not None
        self._file = file
        self.fd = file.fileno()
        os.set_blocking(self.fd, False)
        self._log = log
        self._callback = callback

    def read(self, limit: int = _PIECE) -> int:
        """Take what is there; -1 at the end of the stream, 0 if there is nothing now."""
        try:
            piece = os.read(self.fd, limit)
        except BlockingIOError:
            return 0
        if not piece:
            self.close()
            return -1
        if self._log is not None:
            self._log.write(piece)
        if self._callback is not None:
            try:
                self._callback(piece)
            except BaseException:  # noqa: BLE001  the callback is a stranger's; the stream must go on
                LOG.exception("the callback of an output stream failed; it is not called again")
                self._callback = None
        return len(piece)

    def read_all(self) -> None:
        """Take all that has been written so far."""
        if self.fd < 0:
            return
        there = int.from_bytes(fcntl.ioctl(self.fd, termios.FIONREAD, b"\0" * 4), sys.byteorder)
        while there > 0 and (taken := self.read(min(there, _PIECE))) > 0:
            there -= taken
        if self.fd >= 0:
            self.read(1)  # nobody has it open any more: its end

    def close(self) -> None:
        """Close the pipe and the log; idempotent."""
        if self.fd >= 0:
            self._file.close()
            self.fd = -1
            if self._log is not None:
                self._log.close()
