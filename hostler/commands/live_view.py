"""The live view of a run on a terminal: draws what is known of it a few times a second, and gives the terminal back."""

import contextlib
import math
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

from rich.console import Console

from actors.host_messages import Report
from hostler.commands.gauge import Gauge
from hostler.commands.inline import Inline
from hostler.commands.prints import Prints
from hostler.views.board import Board
from hostler.views.live import screen

EVERY_S: Final = 0.2


class LiveView:
    """Keeps a run on the terminal while it is entered, and leaves its last state there."""

    def __init__(self, board: Board, console: Console, gauge: Gauge, prints: Prints | None) -> None:
        """Prepare it.

        Args:
            board: What is known of the run.
            console: The terminal.
            gauge: Looks at the machine.
            prints: What code of the workflow prints, if it runs in this process.

        """
        self._board = board
        self._gauge = gauge
        self._inline = Inline(console)
        self._due_s = -math.inf
        self._prints = prints

    def __enter__(self) -> Self:
        self._gauge.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Draw the last state and give the terminal back."""
        self._gauge.__exit__()
        with _terminal_may_go():
            try:
                self._show(time.monotonic(), rest=True)
            finally:
                self._inline.close()

    def apply(self, change: Report, now_s: float) -> None:
        """Take in a change.

        Args:
            change: What the host told.
            now_s: Monotonic seconds.

        """
        self._board.apply(change, now_s)

    def say(self, text: str) -> None:
        """Tell the reader something above the view."""
        with _terminal_may_go():
            self._inline.say(text)

    def ends(self, at_s: float) -> None:
        """Count down to when what runs is stopped.

        Args:
            at_s: Monotonic seconds.

        """
        self._board.ends_s = at_s

    def draw(self, now_s: float) -> float:
        """Draw what has changed, if it is time to.

        Args:
            now_s: Monotonic seconds.

        Returns:
            Seconds until it is time again.

        """
        if now_s >= self._due_s:
            with _terminal_may_go():
                self._show(now_s)
            self._due_s = now_s + EVERY_S
        return self._due_s - now_s

    def stop(self) -> None:
        """Leave the terminal to the shell until somebody continues this process."""
        with _terminal_may_go():
            self._inline.stop()
        self._due_s = -math.inf

    def _show(self, now_s: float, *, rest: bool = False) -> None:
        self._board.looked = self._gauge.looked
        self._gauge.queued = self._board.queued
        printed = self._prints.take(rest=rest) if self._prints is not None else []
        if printed:
            self._inline.say("\n".join(printed))
        width, height = self._inline.size
        self._inline.draw(screen(self._board, width=width, height=max(height - 1, 1), now_s=now_s))


@contextlib.contextmanager
def _terminal_may_go() -> Iterator[None]:
    """Go on without the terminal if it is gone; the run is what matters."""
    with contextlib.suppress(OSError):
        yield
