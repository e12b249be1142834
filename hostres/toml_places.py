"""In which line of a TOML text a key stands. Pure but for `where`.

The text up to some line is TOML of its own if the line ends a statement; and what it then holds only grows with the
line. So the statement that brings a key is found by halving. Within a statement of several lines a key stands where
another name in its place changes exactly that key.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hostres.keys import Step

_OTHER: Final = "another-name-in-its-place"
_TRIES: Final = 400
"""So often a text is read at most: a line number is not worth more."""


def where(path: Path, place: Sequence[Step]) -> str:
    """Return where a key stands, `<path> line <number>`; the path alone if that cannot be told.

    Args:
        path: A configuration.
        place: The key, after the tables that it is in.

    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return str(path)
    line = line_of(text, place)
    return str(path) if line is None else f"{path} line {line}"


def line_of(text: str, place: Sequence[Step]) -> int | None:
    """Return the line of a key, from 1; None if that cannot be told.

    Args:
        text: TOML that can be read.
        place: The key, after the tables and arrays that it is in.

    """
    beginnings = _Beginnings(text.split("\n"))
    low, high = 0, len(beginnings.lines)
    if not place or not _has(beginnings.settings(high), place):
        return None
    while beginnings.left > 0:
        middle = (low + high) // 2
        ends = (end for end in (*range(middle, high), *range(middle - 1, low, -1)) if end > low)
        end = next((end for end in ends if beginnings.settings(end) is not None), None)
        if end is None:
            return _within(beginnings.lines, place, low, high) or low + 1
        low, high = (low, end) if _has(beginnings.settings(end), place) else (end, high)
    return None


class _Beginnings:
    """What the first lines of a text hold.

    Attributes:
        lines: Of the text.
        left: How often more may be read.

    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.left = _TRIES
        self._read: dict[int, Any] = {}

    def settings(self, end: int) -> Any:
        """Return what the first *end* lines hold, None if they do not end a statement."""
        if end not in self._read:
            self.left -= 1
            self._read[end] = _parsed("\n".join(self.lines[:end]) + "\n") if self.left >= 0 else None
        return self._read[end]


def _within(lines: Sequence[str], place: Sequence[Step], first: int, last: int) -> int | None:
    """Return the line of a key whose statement has the lines after *first* up to *last*, if there are several."""
    name = place[-1]
    if last - first == 1 or not isinstance(name, str):
        return None
    before, statement = "\n".join((*lines[:first], "")), "\n".join((*lines[first:last], ""))
    for found in re.finditer(rf"(?<![\w-]){re.escape(name)}(?![\w-])", statement):
        changed = _parsed(before + statement[: found.start()] + _OTHER + statement[found.end() :])
        if _has(changed, (*place[:-1], _OTHER)):
            return first + 1 + statement.count("\n", 0, found.start())
    return None


def _parsed(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _has(settings: Any, place: Sequence[Step]) -> bool:
    for step in place:
        match settings:
            case dict() if step in settings:
                settings = settings[step]
            case list() if isinstance(step, int) and step < len(settings):
                settings = settings[step]
            case _:
                return False
    return settings is not None
