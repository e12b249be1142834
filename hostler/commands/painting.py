"""Styled lines as a terminal takes them."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group
from rich.text import Text

UNWRAPPED: Final = "\x1b[?7l"
"""A letter that is wider than we think must not make a row of its own."""
WRAPPED: Final = "\x1b[?7h"


def as_written(console: Console, lines: Sequence[Text], width: int) -> list[str]:
    """Return lines with the escapes of their styles, as far as the console has any.

    Args:
        console: Where they go; it keeps to NO_COLOR.
        lines: None wider than the terminal.
        width: Columns that the terminal has now.

    """
    console.width = width
    with console.capture() as captured:
        console.print(Group(*lines), end="")
    return captured.get().removesuffix("\n").split("\n") if lines else []
