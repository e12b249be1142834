"""The view of a run where no terminal is: one line for each change of a node."""

from collections.abc import Callable
from typing import Self

from actors.host_messages import Report
from hostler.views.board import Board, Line
from hostler.views.terminal import duration, harmless
from store.lifecycle import Status

_UNSAID = frozenset({Status.PENDING, Status.READY})


class PlainView:
    """Writes one line a change; progress is not told."""

    def __init__(self, board: Board, write: Callable[[str], object]) -> None:
        self._board = board
        self._write = write

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""

    def apply(self, change: Report, now_s: float) -> None:
        """Take in a change and tell it, if it is one of a node's status.

        Args:
            change: What the host told.
            now_s: Monotonic seconds.

        """
        line = self._board.apply(change, now_s)
        if line is not None and line.status not in _UNSAID:
            self._write(plain_line(line, now_s - self._board.started_s))

    def say(self, text: str) -> None:
        """Tell the reader something in a line of its own."""
        self._write(text)

    def ends(self, at_s: float) -> None:
        """Count nothing down."""

    def draw(self, now_s: float) -> None:
        """Redraw nothing: what is written stays."""

    def stop(self) -> None:
        """Never needed: without a screen the signal stops the process by itself."""


def plain_line(line: Line, elapsed_s: float) -> str:
    """Return the line that tells where a node stands now.

    Args:
        line: The node.
        elapsed_s: Since the view began, seconds.

    """
    parts = [f"{elapsed_s:8.1f} s", line.key, line.status.value]
    if line.status is Status.RUNNING and line.record.attempt > 1:
        parts.append(f"(attempt {line.record.attempt})")
    if line.status is Status.COMPLETED and line.took_s is not None:
        parts.append(f"({duration(line.took_s)})")
    if line.record.failure is not None and line.status is not Status.COMPLETED:
        parts.append(f"{line.record.failure.code}: {line.record.failure.message}")
    return harmless("  ".join(parts))
