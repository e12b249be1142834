"""What an examination finds, one line each, and how to mend it."""

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler.troubles import of_the_system
from hostres.errors import EXIT_CODES, Code, HostlerError, describe, unavailable
from hostres.open_folders import reopening


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: Of what, a word or two.
        said: What is the case, one line.
        todo: What to do about it, if it is not right.
        exit_code: 0 unless it keeps Hostler from working.
        facts: Numbers behind it, for programs.

    """

    name: str
    said: str
    todo: str = ""
    exit_code: int = 0
    facts: Mapping[str, Any] | None = None

    @property
    def mark(self) -> str:
        """How it stands, in a word."""
        if self.exit_code:
            return "WRONG"
        return "note" if self.todo else "ok"

    def to_json(self) -> dict[str, Any]:
        """Return it for `doctor --json`."""
        shape: dict[str, Any] = {"name": self.name, "state": self.mark.lower(), "said": self.said}
        if self.todo:
            shape["todo"] = self.todo
        return shape if self.facts is None else {**shape, "facts": dict(self.facts)}


def wrong(name: str, error: HostlerError) -> Finding:
    """Return the finding that an error is."""
    return Finding(name=name, said=f"{error.code}: {error.what}", todo=error.todo, exit_code=EXIT_CODES[error.code])


def guarded(name: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Return what a look finds; whatever keeps it from being finished is a finding too, and no other look suffers.

    Args:
        name: Of what it looks at.
        look: Yields findings.

    """
    found: list[Finding] = []
    try:
        found.extend(look())
    except Exception as error:  # noqa: BLE001  whatever is wrong here, the report is what tells of it
        found.append(wrong(name, refusal(error)))
    return found


def refusal(error: Exception) -> HostlerError:
    """Return what a look met as an error with what mends it."""
    match error:
        case HostlerError():
            mend = reopening(error.__cause__) if isinstance(error.__cause__, OSError) else ""
            return HostlerError(error.code, error.what, mend or error.todo)
        case FileNotFoundError(filename=None):
            return of_the_system(error)
        case OSError():
            refused = unavailable("it cannot be looked at", error)
            return HostlerError(refused.code, refused.what, reopening(error) or refused.todo)
    where = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{describe(error)} ({Path(where.filename).name} line {where.lineno})"
    return HostlerError(Code.INTERNAL, what, "a bug in Hostler; report it with this line")


def origin(environ: Mapping[str, str], name: str) -> str:
    """Return whether a place is named by a variable."""
    return f"from {name}" if environ.get(name) else "the default"
