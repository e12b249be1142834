"""The size and the modes of a terminal, and job control as whoever changes these has to follow it."""

import os
import shutil
import signal
import termios
import time
from collections.abc import Callable
from typing import Any

Modes = list[Any]
"""As `termios.tcgetattr` gives them."""


def size_of(fd: int) -> tuple[int, int]:
    """Return the columns and rows of a terminal; where it does not know them itself, what its user says.

    Raises:
        OSError: It is gone.

    """
    size = os.get_terminal_size(fd)
    if not size.columns or not size.lines:
        size = shutil.get_terminal_size()
    return size.columns, size.lines


def unseen(modes: Modes) -> Modes:
    """Return modes in which what is typed is not shown; Ctrl-C and Ctrl-Z are still signals."""
    changed = list(modes)
    changed[3] &= ~termios.ECHO
    return changed


def key_by_key(modes: Modes) -> Modes:
    """Return modes in which each key is read at once and not shown; Ctrl-C and Ctrl-Z are still signals."""
    changed = unseen(modes)
    changed[3] &= ~termios.ICANON
    changed[6] = list(changed[6])
    changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
    return changed


class Keyboard:
    """The person's side of standard input, if that is a terminal."""

    def __init__(self, change: Callable[[Modes], Modes]) -> None:
        """Prepare it.

        Args:
            change: Returns the modes that are wanted while it is taken.

        """
        try:
            self.fd: int | None = 0 if os.isatty(0) else None
        except OSError:
            self.fd = None
        self._change = change
        self._before: Modes | None = None

    @property
    def in_front(self) -> bool:
        """Whether the terminal is this process's to change; where there is none, nobody is in the way."""
        try:
            return self.fd is None or os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return False

    def take(self) -> None:
        """Change the modes; in the background that stops this process, as it should."""
        if self.fd is not None and self._before is None:
            before = termios.tcgetattr(self.fd)
            termios.tcsetattr(self.fd, termios.TCSADRAIN, self._change(before))
            self._before = before

    def forget(self) -> None:
        """Take note that a shell has put the modes back."""
        self._before = None

    def give_back(self) -> None:
        """Put the modes back, unless a shell has done so already and goes its own way."""
        before, self._before = self._before, None
        if self.fd is not None and before is not None and self.in_front:
            termios.tcsetattr(self.fd, termios.TCSADRAIN, before)


def stop_by(number: signal.Signals) -> float:
    """Be stopped as if nobody listened to that signal.

    Returns:
        For how long, seconds; next to nothing where no shell would ever continue this process.

    """
    began_s = time.monotonic()
    before = signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    signal.signal(number, before)
    return time.monotonic() - began_s
