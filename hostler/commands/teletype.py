"""The controlling terminal: where a person is asked, whatever the standard streams are connected to."""

import os
import sys
from types import TracebackType
from typing import Final, Self

from hostler.views.terminal import harmless
from hostres.errors import Code, HostlerError

DEVICE: Final = "/dev/tty"
LONGEST: Final = 4096


class Teletype:
    """The terminal of the session of this process; a context manager.

    What stands on it was not piped in: a program that feeds the standard input is not asked here. A process in the
    background has none, since the system would stop it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def open(cls) -> "Teletype | None":
        """Open it; None where there is none."""
        try:
            descriptor = os.open(DEVICE, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            in_front = os.tcgetpgrp(descriptor) == os.getpgrp()
        except OSError:
            in_front = False
        if in_front:
            return cls(descriptor)
        os.close(descriptor)
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def show(self, text: str) -> None:
        """Write lines; what is in them can do nothing to the terminal."""
        sys.stdout.flush()  # what was said before stands above it
        lines = "\n".join(harmless(line) for line in text.split("\n"))
        self._write(f"{lines}\n")

    def ask(self, question: str) -> str:
        """Ask, and return the line that was typed, in small letters; nothing at the end of the input."""
        self._write(question)
        typed = b""
        while not typed.endswith(b"\n") and len(typed) < LONGEST:
            try:
                more = os.read(self._descriptor, LONGEST)
            except OSError:  # the terminal is gone
                return ""
            if not more:
                return ""
            typed += more
        return typed.decode("utf-8", "replace").strip().lower()

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._descriptor, data) :]


def needed_terminal(otherwise: str) -> Teletype:
    """Open the terminal on which an approval is to be confirmed.

    Args:
        otherwise: What can be done without one.

    Raises:
        HostlerError: conflict: there is none.

    """
    terminal = Teletype.open()
    if terminal is None:
        raise HostlerError(
            Code.CONFLICT,
            "this is confirmed on the terminal, and this process has none in front of it",
            f"type it in a terminal, or {otherwise}",
        )
    return terminal
