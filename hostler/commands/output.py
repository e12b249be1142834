"""Writing results to standard output."""

import sys
from typing import Any

import orjson


def print_line(text: str) -> None:
    """Write one line, or several, at once, so that a reader at the other end of a pipe has it now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def print_json(value: Any, *, compact: bool = False) -> None:
    """Write one JSON value.

    Args:
        value: JSON.
        compact: In one line, for streams of them.

    """
    print_line(orjson.dumps(value, option=0 if compact else orjson.OPT_INDENT_2).decode())
