"""The pages that are written from the code that they are about: those of docs/reference/, and parts of others."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from hostler.views.lifecycle import with_current_section
from scripts.reference.commands import commands_page
from scripts.reference.errors import errors_page
from scripts.reference.events import events_page
from scripts.reference.examples import with_current_examples
from scripts.reference.policy import policy_page

ROOT: Final = Path(__file__).parents[2]

WHOLE: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "docs/reference/commands.md": commands_page,
        "docs/reference/errors.md": errors_page,
        "docs/reference/events.md": events_page,
        "docs/reference/policy.md": policy_page,
    }
)
"""Page → what it must say now."""

PARTS: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "docs/examples.md": with_current_examples,
        "docs/explanation/life-of-a-node.md": with_current_section,
    }
)
"""Page → its text, made current, of its text."""

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
        ValueError: The code has something of which nobody has said what it means; the message says where to.

    """
    return WHOLE[page]() if page in WHOLE else PARTS[page](now(page))
