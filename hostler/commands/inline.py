"""Lines at the end of what a terminal shows, rewritten in place; what was there before stays.

Nothing is written while the terminal is not this process's: what runs goes on in the background without a word. Who
has made the window another size gets the lines anew at the top of it: where the old ones went is the terminal's secret.
"""

import os
import signal
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from hostler.commands.modes import Keyboard, size_of, stop_by, unseen
from hostler.commands.painting import UNWRAPPED, WRAPPED, as_written
from hostler.views.terminal import harmless

HIDE_CURSOR: Final = "\x1b[?25l"
SHOW_CURSOR: Final = "\x1b[?25h"
LINE: Final = "\r\x1b[K"
REST: Final = "\x1b[J"
TOP: Final = "\x1b[H"


class Inline:
    """Lines that are kept up to date at the end of what a terminal shows."""

    def __init__(self, console: Console) -> None:
        """Prepare it.

        Args:
            console: Knows what of styles the terminal takes.

        """
        self._console = console
        self._out = console.file
        self._keyboard = Keyboard(unseen)
        self._shown: list[Text] = []
        self._size = (0, 0)
        self._open = False
        self._topmost = False

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal, as they are now."""
        return size_of(self._out.fileno())

    @property
    def in_front(self) -> bool:
        """Whether the terminal is this process's to write on; one that has no jobs always is."""
        try:
            return os.tcgetpgrp(self._out.fileno()) == os.getpgrp()
        except OSError:
            return True

    def draw(self, lines: Sequence[Text]) -> None:
        """Show lines in place of those before.

        Args:
            lines: None wider than the terminal, and fewer than it has rows.

        """
        if not self.in_front:
            self._left_behind()
            return
        before = self._begin()
        if lines == before:
            return
        self._write(UNWRAPPED + _up(len(before)) + self._changed(lines, before) + WRAPPED)
        self._shown = list(lines)

    def say(self, text: str) -> None:
        """Write a line above those that are kept up to date; it stays."""
        if not self.in_front:
            return
        before = self._begin()
        said = "".join(f"{LINE}{harmless(line)}\r\n" for line in text.split("\n"))
        written = self._changed(before, []) if before else ""
        self._write(_up(len(before)) + "\r" + REST + said + UNWRAPPED + written + WRAPPED)
        self._topmost = False

    def stop(self) -> None:
        """Leave the terminal to the shell, be stopped, and begin anew when somebody continues this process."""
        self.close()
        stop_by(signal.SIGTSTP)

    def close(self) -> None:
        """Leave the lines where they are, and the terminal as it was."""
        if not self._open:
            return
        self._open = False
        try:
            self._write(("\r\n" if self._shown else "") + SHOW_CURSOR)
        finally:
            self._shown = []
            self._keyboard.give_back()

    def _begin(self) -> list[Text]:
        """Take the terminal if need be, and return what is shown on it of ours."""
        size = self.size
        if not self._open:
            self._keyboard.take()
            self._open, self._topmost = True, False
            self._write(HIDE_CURSOR)
        elif size != self._size:
            self._write(self._anew(size[1]))
            self._topmost, self._shown = True, []
        self._size = size
        return self._shown

    def _anew(self, rows: int) -> str:
        """Return what wipes our lines away and has the top of the screen for us, with nothing above us lost."""
        if self._topmost:
            return TOP + REST
        return _up(len(self._shown)) + "\r" + REST + f"\x1b[{rows};1H" + "\n" * rows + TOP

    def _changed(self, lines: Sequence[Text], before: Sequence[Text]) -> str:
        """Return what makes *lines* of those that are shown, from the first row of these on."""
        rows = []
        for place, line in enumerate(lines):
            same = place < len(before) and before[place] == line
            rows.append("\r" if same else LINE + as_written(self._console, [line], self._size[0])[0])
        return "\r\n".join(rows) + (f"\r\n{REST}\x1b[A" if len(lines) < len(before) else "")

    def _left_behind(self) -> None:
        """Take note that the shell has the terminal, and has put it in order for itself."""
        self._keyboard.forget()
        self._open, self._shown = False, []

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _up(rows: int) -> str:
    """Return what leads from the last of so many rows to the first."""
    return f"\x1b[{rows - 1}A" if rows > 1 else ""
