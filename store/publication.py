"""Names of the files that a node publishes: no two nodes on the machine publish to one file at a time. Pure."""

from collections.abc import Sequence
from posixpath import join, normpath
from typing import Final

from pydantic import JsonValue

from store.values import Domain, digest

LONGEST_KEY: Final = 512
FILE: Final = "file:"
"""How the key of a file begins."""


def publication_keys(folder: str, fields: Sequence[str], value: JsonValue) -> tuple[str, ...]:
    """Name the files that an input publishes, one key a file however it is written.

    Args:
        folder: What relative paths are below.
        fields: The fields of the input that name files, those of inner objects with dots.
        value: The input.

    Returns:
        The keys, sorted.

    """
    keys: set[str] = set()
    for dotted in fields:
        found: JsonValue = value
        for name in dotted.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        for path in found if isinstance(found, list) else [found]:
            if isinstance(path, str):
                key = f"{FILE}{normpath(join(folder, path))}"
                keys.add(key if len(key) <= LONGEST_KEY else f"file-sha256:{digest(Domain.INPUT, key)}")
    return tuple(sorted(keys))
