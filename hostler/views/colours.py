"""Colour where it is wanted: on a terminal that has it, unless NO_COLOR says no; FORCE_COLOR has it in a pipe, too."""

import os
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import IO, Final

RED, GREEN, YELLOW, BLUE, CYAN, DIM = 31, 32, 33, 34, 36, 2

COLOUR_OF: Final[Mapping[str, int]] = MappingProxyType(
    {
        "completed": GREEN,
        "running": BLUE,
        "verifying": BLUE,
        "preparing": BLUE,
        "queued": CYAN,
        "corrective": YELLOW,
        "approval-required": YELLOW,
        "blocked": YELLOW,
        "ambiguous": YELLOW,
        "ambiguous-code": YELLOW,
        "budget-exhausted": YELLOW,
        "failed": RED,
        "partial": RED,
        "incompatible": RED,
        "cancelled": DIM,
        "skipped": DIM,
        "pending": DIM,
        "planned": DIM,
    }
)
"""Status of a node or a run → the number that a terminal knows its colour by."""

Paint = Callable[[str, str], str]
"""Text and the status that gives it its colour → the text as it is printed."""


def plain(text: str, _status: str) -> str:
    """Return the text as it is."""
    return text


def painted(text: str, status: str) -> str:
    """Return *text* in the colour of that status."""
    colour = COLOUR_OF.get(status)
    return text if colour is None else f"\x1b[{colour}m{text}\x1b[0m"


def paint_for(stream: IO[str] | None = None, environ: Mapping[str, str] | None = None) -> Paint:
    """Return how statuses are printed on a stream.

    Args:
        stream: Standard output by default.
        environ: NO_COLOR, FORCE_COLOR (https://no-color.org, https://force-color.org) and TERM; that of this process by
            default.

    """
    environ = os.environ if environ is None else environ
    if environ.get("NO_COLOR"):
        return plain
    if environ.get("FORCE_COLOR"):
        return painted
    seen = (stream or sys.stdout).isatty() and environ.get("TERM", "") not in {"", "dumb"}
    return painted if seen else plain
