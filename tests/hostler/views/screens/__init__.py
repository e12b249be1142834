"""Screens as people see them, kept as text: a change of one is seen in the change that makes it.

`HOSTLER_WRITE_SCREENS=1 pytest tests/hostler/views` writes them anew; look at them before they are committed.
"""

import os
from pathlib import Path

from rich.cells import cell_len

WRITE = os.environ.get("HOSTLER_WRITE_SCREENS") == "1"
"""Read when the tests are collected: each test runs without the caller's settings."""


def check(name: str, lines: list[str], *, width: int, height: int) -> None:
    """Compare a screen with the one that is kept, and see that it fits."""
    assert len(lines) <= height
    assert max(map(cell_len, lines), default=0) <= width
    shown = "".join(f"{line.rstrip()}\n" for line in lines)
    path = Path(__file__).parent / f"{name}.txt"
    if WRITE:
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8"), f"{path.name} would be:\n{shown}"
