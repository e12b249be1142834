"""How this package says no: the one-line errors that authoring, planning and loading share."""

import re
from typing import TYPE_CHECKING, Final

from hostres.errors import Code, HostlerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

LINE_CHARACTERS: Final = 400
OTHER_FOLDER: Final = "rename it, or use another folder"


def invalid(what: str, todo: str) -> HostlerError:
    """Return an invalid-data error.

    Args:
        what: The thing at fault and what is wrong with it.
        todo: What the author can do about it.

    """
    return HostlerError(Code.INVALID_DATA, one_line(what), one_line(todo))


def require_utf8(text: str, subject: str, todo: str = "rename the file, or write the text in UTF-8") -> str:
    """Return *text*, which is going to be stored and shown.

    Args:
        text: Names of files may hold any bytes.
        subject: What it is, for the error.
        todo: What to do about it.

    Raises:
        HostlerError: invalid-data: it is not UTF-8.

    """
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = text.encode("utf-8", "replace").decode()
        raise invalid(f"{subject} {shown!r} is not UTF-8", todo) from None
    return text


def about(subject: str, error: HostlerError) -> HostlerError:
    """Return *error* with the subject it belongs to in front."""
    return HostlerError(error.code, f"{subject}: {error.what}", error.todo)


def one_line(text: str) -> str:
    """Return *text* in one line of bounded length without a full stop at its end."""
    line = " ".join(text.split())
    if len(line) > LINE_CHARACTERS:
        line = line[: LINE_CHARACTERS - 1] + "…"
    return line.rstrip(".")


def listed(names: "list[str] | tuple[str, ...]", *, limit: int = 12) -> str:
    """Return names for a person, `none` for no name."""
    if not names:
        return "none"
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def place(steps: "tuple[str | int, ...] | list[str | int]") -> str:
    """Return a path in a document as people write it: `nodes[3].input.path`."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[A-Za-z_$][\w$-]*", step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text


def first_problem(
    error: "ValidationError",
    *,
    inside: "tuple[str | int, ...]" = (),
    counts: "Callable[[ErrorDetails], bool]" = lambda _: True,
) -> str:
    """Return the first problem that a validation found, with its place, and how many more there are.

    Args:
        error: What pydantic raised.
        inside: Where the validated value stands.
        counts: Whether a problem counts; nothing is returned if none does.

    """
    from store.misfits import misfit  # noqa: PLC0415 - only where something is wrong

    problems = [each for each in error.errors(include_url=False) if counts(each)]
    if not problems:
        return ""
    said = one_line(misfit(place((*inside, *problems[0]["loc"])), problems[0]))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{said}{more}"
