"""The words of the command line as completion knows them. Light: no parser is imported."""

from __future__ import annotations

import json
from pathlib import Path

TYPE_CHECKING = False  # as in the package

if TYPE_CHECKING:
    from typing import Any

PLACE = Path(__file__).with_name("words.json")
"""Written by `scripts/write-tables`; see `scripts/command_words.py` for its form."""


def read_vocabulary() -> dict[str, Any]:
    """Return the table."""
    found: dict[str, Any] = json.loads(PLACE.read_text(encoding="utf-8"))
    return found
