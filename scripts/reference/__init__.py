"""The pages that are written from the code that they are about: those of docs/reference/, and parts of others."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from scripts.reference.commands import commands_page
from scripts.reference.configuration import keys_part
from scripts.reference.errors import errors_page
from scripts.reference.events import events_page
from scripts.reference.examples import examples_part
from scripts.reference.lifecycle import lifecycle_part
from scripts.reference.modules import modules_page
from scripts.reference.parts import with_part
from scripts.reference.policy import policy_page

ROOT: Final = Path(__file__).parents[2]

WHOLE: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "docs/reference/commands.md": commands_page,
        "docs/reference/errors.md": errors_page,
        "docs/reference/events.md": events_page,
        "docs/reference/modules.md": modules_page,
        "docs/reference/policy.md": policy_page,
    }
)
"""Page → what it must say now."""

PARTS: Final[Mapping[str, tuple[str, Callable[[], str]]]] = MappingProxyType(
    {
        "docs/configuration.md": ("keys", keys_part),
        "docs/examples.md": ("examples", examples_part),
        "docs/explanation/life-of-a-node.md": ("lifecycle", lifecycle_part),
    }
)
"""Page → the part of it that is written, and what that must say now."""

PAGES: Final = (*WHOLE, *PARTS)


def now(page: str) -> str:
    """Return what a page is."""
    path = ROOT / page
    return path.read_text(encoding="utf-8") if path.exists() else ""


def current(page: str) -> str:
    """Return what a page must be.

    Args:
        page: One of `PAGES`.

    Raises:
        ValueError: The code has something of which nobody has said what it means, or the page has lost the marks of
            its part; the message says what to do.

    """
    if page in WHOLE:
        return WHOLE[page]()
    name, part = PARTS[page]
    return with_part(now(page), name, part())
