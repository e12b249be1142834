"""A screen of its own on the terminal, which is left as it was on every exit.

Signals are no exceptions here: each is a byte in a pipe that `wait` reads together with the keyboard, so that none of
them can strike while the terminal is being put back.
"""

import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Final, Self

from rich.console import Console
from rich.text import Text

from hostler.commands.modes import Keyboard, key_by_key, size_of, stop_by
from hostler.commands.painting import UNWRAPPED, WRAPPED, as_written
from hostler.views.keys import keys_of

OPEN: Final = "\x1b[?1049h\x1b[?25l"
"""Another screen than that of the shell, without a cursor."""
CLOSE: Final = "\x1b[0m\x1b[H\x1b[J\x1b[?25h\x1b[?1049l"
"""Cleared first: there are terminals that have but one screen."""
HOME: Final = "\x1b[H"
REST_OF_LINE: Final = "\x1b[K"
REST_OF_SCREEN: Final = "\x1b[J"

ENDS: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
AT_ONCE_S: Final = 0.05
HEARD: Final = (*sorted(ENDS), signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)


class Screen:
    """The whole terminal, while entered.

    Attributes:
        ended_by: The signal that somebody wants this process to end by, None as long as nobody does.

    """

    def __init__(self, console: Console) -> None:
        self.ended_by: signal.Signals | None = None
        self._console = console
        self._out = sys.stdout.fileno()
        self._keyboard = Keyboard(key_by_key)
        self._before: dict[int, Any] = {}
        self._bell = self._ring = self._rung = -1
        self._typing = self._keyboard.fd is not None
        self._opened = False

    def __enter__(self) -> Self:
        self._bell, self._ring = os.pipe()
        os.set_blocking(self._ring, False)
        self._rung = signal.set_wakeup_fd(self._ring, warn_on_full_buffer=False)
        for number in HEARD:
            if signal.getsignal(number) is not signal.SIG_IGN:  # what a caller (nohup) ignores stays ignored
                self._before[number] = signal.signal(number, _nothing)
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the terminal back."""
        with contextlib.suppress(OSError, termios.error):  # it may be gone
            self._close()
        signal.set_wakeup_fd(self._rung)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._bell)
        os.close(self._ring)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows, as they are now."""
        return size_of(self._out)

    def draw(self, lines: Sequence[Text]) -> None:
        """Show lines that fit, and nothing else.

        A row is wiped before it is written: after a line as wide as the screen the cursor is still on its last letter.
        """
        columns, rows = self.size
        written = [REST_OF_LINE + line for line in as_written(self._console, lines, columns)]
        rest = f"\r\n{REST_OF_SCREEN}" if len(written) < rows else ""
        self._write(UNWRAPPED + HOME + "\r\n".join(written) + rest + WRAPPED)

    def wait(self, seconds: float) -> list[str]:
        """Wait until somebody types, a signal comes, or the time is over.

        Args:
            seconds: For how long at most.

        Returns:
            The keys that were typed, by name.

        """
        keys = self._keyboard.fd if self._typing else None
        wanted = [self._bell] if keys is None else [self._bell, keys]
        ready = select.select(wanted, [], [], seconds)[0]
        for number in self._rung_by():
            self._heard(number)
        if keys is not None and keys in ready and self.ended_by is None:
            try:
                typed = os.read(keys, 4096)
            except OSError:  # the terminal is gone
                typed = b""
            self._typing = bool(typed)
            return keys_of(typed)
        return []

    def _heard(self, number: signal.Signals) -> None:
        if number in ENDS:
            self._end_by(number)
        elif number == signal.SIGTSTP:
            self._stop()

    def _end_by(self, number: signal.Signals) -> None:
        self.ended_by = self.ended_by or number

    def _stop(self) -> None:
        """Leave the terminal to the shell until it gives it back, or somebody ends us meanwhile."""
        self._close()
        self._stop_by(signal.SIGTSTP)
        while self.ended_by is None and not self._keyboard.in_front:  # continued in the background
            if self._stop_by(signal.SIGTTOU) < AT_ONCE_S:  # no shell is there that would ever give it back
                self._end_by(signal.SIGHUP)
        if self.ended_by is None:
            self._open()

    def _stop_by(self, number: signal.Signals) -> float:
        stopped_s = stop_by(number)
        for heard in self._rung_by():
            if heard in ENDS:
                self._end_by(heard)
        return stopped_s

    def _rung_by(self) -> list[signal.Signals]:
        """Return the signals that have come since the last look."""
        if not select.select([self._bell], [], [], 0)[0]:
            return []
        return [signal.Signals(number) for number in os.read(self._bell, 4096)]

    def _open(self) -> None:
        self._keyboard.take()
        self._opened = True
        self._write(OPEN)

    def _close(self) -> None:
        if not self._opened:
            return
        self._opened = False
        try:
            self._write(CLOSE)
        finally:
            self._keyboard.give_back()

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """The pipe says it all."""
