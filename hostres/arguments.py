"""What callers hand in, checked where it comes in: who mixes up the types is told which argument it is."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import Any

from hostres.errors import Code, HostlerError


def of_type(value: Any, kind: type[Any], *, name: str, todo: str) -> None:
    """Check that an argument is of a type, or None.

    Args:
        value: What was given.
        kind: The type.
        name: Of the argument.
        todo: What to give.

    Raises:
        HostlerError: `invalid-data`.

    """
    if value is not None and not isinstance(value, kind):
        raise invalid(name, value, todo)


def listener(value: Any, *, name: str) -> None:
    """Check that an argument can be called, or is None.

    Args:
        value: What was given.
        name: Of the argument.

    Raises:
        HostlerError: `invalid-data`.

    """
    if value is not None and not callable(value):
        raise invalid(name, value, "give a function that takes bytes")


def folder(value: Any, *, name: str = "cwd") -> Path | None:
    """Return the folder that an argument names.

    Args:
        value: What was given; None for none.
        name: Of the argument.

    Raises:
        HostlerError: `invalid-data`.

    """
    if value is None:
        return None
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else value
    if not isinstance(path, str) or "\0" in path:
        raise invalid(name, value, "give the path of a folder, as text or Path")
    return Path(path)


def source(value: Any) -> bytes | Path | None:
    """Return what *stdin* names.

    Raises:
        HostlerError: `invalid-data`.

    """
    if value is None or isinstance(value, bytes | Path):
        return value
    raise invalid("stdin", value, "give bytes, or the Path of a file")


def words(value: Any, *, name: str = "argv") -> list[str]:
    """Return the words of a command.

    Args:
        value: A program and its arguments.
        name: Of the argument.

    Raises:
        HostlerError: `invalid-data`.

    """
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise invalid(name, value, 'give a list, as in ["echo", "hi"]')
    found = [os.fspath(word) if isinstance(word, str | os.PathLike) else word for word in value]
    for number, word in enumerate(found):
        if not _is_text(word):
            raise invalid(f"{name}[{number}]", word, "give text or a Path; os.fsdecode makes text of bytes")
    return found


def environment(value: Any) -> dict[str, str]:
    """Return what *env* adds to an environment.

    Raises:
        HostlerError: `invalid-data`.

    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise invalid("env", value, "give a mapping of texts, name to value")
    for name, text in value.items():
        for part in (name, text):
            if not _is_text(part):
                raise invalid(f"env[{name!r}]", part, "give text; os.fsdecode makes text of bytes")
    return dict(value)


def seconds(value: Any, *, name: str) -> float | None:
    """Return a number of seconds, None for no limit.

    Args:
        value: What was given.
        name: Of the argument.

    Raises:
        HostlerError: `invalid-data`.

    """
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and -TIMEOUT_MAX <= value <= TIMEOUT_MAX:
        return value
    raise invalid(name, value, "give a number of seconds, or None for no limit")


def count(value: Any, *, name: str) -> int:
    """Return a whole number of at least 1.

    Args:
        value: What was given.
        name: Of the argument.

    Raises:
        HostlerError: `invalid-data`.

    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise invalid(name, value, "give a whole number of at least 1")


def text(value: Any, *, name: str) -> str:
    """Return a text for people.

    Args:
        value: What was given.
        name: Of the argument.

    Raises:
        HostlerError: `invalid-data`.

    """
    if isinstance(value, str):
        return value
    raise invalid(name, value, "give text")


def stored_text(value: Any, *, name: str) -> str:
    """Return a text that is stored, or looked for in what is stored: of whole characters.

    Args:
        value: What was given.
        name: Of the argument.

    Raises:
        HostlerError: `invalid-data`.

    """
    given = text(value, name=name)
    try:
        given.encode()
    except UnicodeEncodeError:
        raise invalid(name, value, "give whole characters; this one has half of one, which UTF-8 cannot hold") from None
    return given


def shown(value: Any) -> str:
    """Return a value that is wrong, with its type, for the one who gave it."""
    return f"{_said(value):.60} ({type(value).__name__})"


def invalid(name: str, value: Any, todo: str, *, code: Code = Code.INVALID_DATA) -> HostlerError:
    """Return what is said of an argument of a wrong type."""
    return HostlerError(code, f"{name} is {_said(value):.200}", todo)


def _said(value: Any) -> str:
    """Return a value as Python writes it; its type where that fails, as for a number of too many digits."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  it may be anything of anybody's
        return f"of type {type(value).__name__}"


def _is_text(value: Any) -> bool:
    """Return whether the system can be given it: half a character of two it cannot."""
    if not isinstance(value, str):
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True
