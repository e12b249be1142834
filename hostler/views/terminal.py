"""Text that is safe and readable on a terminal, whatever a workflow or a process put into it."""

import os
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, format (bidirectional overrides), surrogates, separators
_KEPT = "\n\t"


def harmless(text: str, *, lines: bool = False) -> str:
    """Return *text* with everything that could command a terminal made visible.

    Args:
        text: Any text.
        lines: Keep line ends and tabs; a carriage return counts as a line end.

    """
    if text.isascii() and text.isprintable():
        return text
    if lines:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        char if unicodedata.category(char) not in _HIDDEN or (lines and char in _KEPT) else _escape(char)
        for char in text
    )


def _escape(char: str) -> str:
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def cut(text: str, width: int) -> str:
    """Return *text* in at most *width* characters, with an ellipsis where something is left out."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def shown_path(text: str) -> str:
    """Return an absolute path without its detours, for reading only; any other text as it is."""
    return os.path.normpath(text) if text.startswith("/") and "\n" not in text else text


def duration(seconds: float) -> str:
    """Return a length of time for people: `0.4 s`, `12 s`, `3 m 05 s`, `2 h 03 m`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} m"


def amount(number: int) -> str:
    """Return bytes for people: `612 kB`, `120 MB`, `1.2 GB`."""
    if number < 1 << 20:
        return f"{number >> 10} kB"
    if number < 1000 << 20:
        return f"{number >> 20} MB"
    return f"{number / (1 << 30):.1f} GB"


def is_terminal(stream: IO[str] | None = None) -> bool:
    """Say whether *stream* (standard output) is a terminal that understands escapes."""
    return (stream or sys.stdout).isatty() and os.environ.get("TERM", "") not in {"", "dumb"}


def console(stream: IO[str] | None = None) -> "Console":
    """Return a rich console on *stream*; it keeps to NO_COLOR and writes no escapes into a pipe."""
    from rich.console import Console  # noqa: PLC0415 (slow to import, needed on terminals only)

    return Console(file=stream or sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)


LEAST: Final = 8
"""A column is not made narrower than that."""


def table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    *,
    width: int | None = None,
    elastic: Sequence[int] = (),
    paint: Mapping[int, Callable[[str, str], str]] = MappingProxyType({}),
) -> str:
    """Return rows under a head in aligned columns, every cell harmless; the last column is not padded.

    Args:
        head: The names of the columns.
        rows: The cells.
        width: Columns of the terminal; None for as many as it takes.
        elastic: The columns that may be cut, in that order, where all would not fit.
        paint: How the cells of a column are printed, given the padded cell and the cell.

    """
    cells = [head, *(tuple(harmless(cell) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    excess = 0 if width is None else sum(widths) + 2 * (len(head) - 1) - width
    for column in elastic:
        taken = max(min(excess, widths[column] - LEAST), 0)
        widths[column] -= taken
        excess -= taken
    lines = []
    for number, row in enumerate(cells):
        printed = []
        for column, cell in enumerate(row):
            fitting = cut(cell, widths[column])
            padded = fitting if column == len(head) - 1 else fitting.ljust(widths[column])
            printed.append(paint[column](padded, cell) if number and column in paint else padded)
        lines.append("  ".join(printed).rstrip())
    return "\n".join(lines)
