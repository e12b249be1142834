"""Bounds of what may be authored."""

from typing import Final

MAX_NODES: Final = 4096
"""Nodes of an authored workflow, unless the configuration raises it."""
