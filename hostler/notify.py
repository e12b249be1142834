"""What a supervisor is told of a service: ready, alive, reloading, stopping, and a line of status.

The protocol of sd_notify(3): a datagram of `KEY=VALUE` lines to the socket that NOTIFY_SOCKET names. The packages for
it bring a C library or have had no release for years; it is one system call.
"""

import contextlib
import os
import socket
import time
from collections.abc import Mapping, MutableMapping
from typing import Final

SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG_USEC: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"
MICROSECONDS: Final = 1_000_000
MOST_STATUS: Final = 400


class Notifier:
    """Tells whoever supervises this process; where nobody does, it tells nobody.

    Attributes:
        watchdog_s: How often a sign of life is wanted at least, seconds; None if none is.

    """

    def __init__(self, address: str | None, watchdog_s: float | None) -> None:
        self.watchdog_s = watchdog_s
        self._address = address
        self._status = ""

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> "Notifier":
        """Take the supervisor's address out of the environment, so that no child speaks for the service."""
        watchdog_s = _watchdog_s(environ)
        address = environ.pop(SOCKET, None)
        for name in (WATCHDOG_USEC, WATCHDOG_PID):
            environ.pop(name, None)
        return cls(address, watchdog_s if address else None)

    def ready(self) -> None:
        """The service takes up runs."""
        self._tell("READY=1")

    def reloading(self) -> None:
        """It reads its configuration anew; `ready` ends that."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """It takes up nothing more."""
        self._tell("STOPPING=1")

    def alive(self) -> None:
        """It lives, and its actors answer."""
        self._tell("WATCHDOG=1")

    def status(self, text: str) -> None:
        """Say in a line what it does; the same again is not said."""
        if text != self._status:
            self._status = text
            self._tell(f"STATUS={' '.join(text.split())[:MOST_STATUS]}")

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one,
        ):
            one.sendto("\n".join(lines).encode(), address)


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    wanted = environ.get(WATCHDOG_USEC, "")
    if not wanted.isascii() or not wanted.isdigit() or int(wanted) == 0:
        return None
    if environ.get(WATCHDOG_PID, str(os.getpid())) != str(os.getpid()):
        return None  # meant for another process
    return int(wanted) / MICROSECONDS
