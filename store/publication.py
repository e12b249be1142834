"""Names of the files that a node publishes: no two nodes on the machine publish to one file at a time. Pure."""

from collections.abc import Iterator, Sequence
from posixpath import join, normpath
from typing import Final

from pydantic import JsonValue

from store.values import Domain, digest

LONGEST_KEY: Final = 512
MOST_KEYS: Final = 64
FILE: Final = "file:"
"""What the key of a file begins with; its absolute path follows."""
LONGEST_NAME: Final = 255
LONGEST_PATH: Final = 4095
"""Bytes; NAME_MAX and PATH_MAX of Linux, without its NUL (pathconf(3))."""
SHORTER: Final = "publish it under a shorter name"
"""What to do about a name that cannot be."""


def publication_keys(folder: str, fields: Sequence[str], value: JsonValue) -> tuple[str, ...]:
    """Name the files that an input publishes, one key a file however it is written.

    Args:
        folder: What relative paths are below.
        fields: The fields of the input that name files, those of inner objects with dots.
        value: The input.

    Returns:
        The keys, sorted.

    """
    named = (f"{FILE}{path}" for path in _paths(folder, fields, value))
    keys = {key if len(key) <= LONGEST_KEY else f"file-sha256:{digest(Domain.INPUT, key)}" for key in named}
    return tuple(sorted(keys))


def impossible_name(folder: str, fields: Sequence[str], value: JsonValue) -> str | None:
    """Say why a file that an input publishes can never have its name; None if all can.

    Args:
        folder: What relative paths are below.
        fields: The fields of the input that name files.
        value: The input.

    """
    for path in _paths(folder, fields, value):
        length = len(path.encode())
        longest = max(len(name.encode()) for name in path.split("/"))
        if "\0" in path:
            return f"no file can be called {path!r:.100}"
        if longest > LONGEST_NAME:
            return f"a file name of {longest} bytes; {LONGEST_NAME} are possible"
        if length > LONGEST_PATH:
            return f"a path of {length} bytes; {LONGEST_PATH} are possible"
    return None


def _paths(folder: str, fields: Sequence[str], value: JsonValue) -> Iterator[str]:
    for dotted in fields:
        found: JsonValue = value
        for name in dotted.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        for path in found if isinstance(found, list) else [found]:
            if isinstance(path, str):
                yield normpath(join(folder, path))
