"""The version of what `--json` prints. Light: every command that prints JSON names it.

A new field does not make a new version, so readers pass over fields that they do not know; a field that goes, or means
something else, does.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in the package

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FIELD = "format_version"
FORMAT_VERSION = 1


def versioned(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the version of its format in front."""
    return {FIELD: FORMAT_VERSION, **shape}
