"""Finding the program that a command names, before anything is spent on it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError

LONGEST: Final = 300
"""So many characters of PATH are told."""


def find_program(name: str, *, environ: Mapping[str, str], cwd: Path | None = None) -> str:
    """Return the path of a program as the system would find it.

    Args:
        name: A path, or a name to look for in PATH.
        environ: Whose PATH counts.
        cwd: The folder where it will be started; a relative path starts there.

    Raises:
        HostlerError: `not-found`, or `unavailable` if it is there but cannot be executed.

    """
    base = Path(cwd or ".")
    if "/" in name:
        places = [name]
    else:
        path = environ.get("PATH", os.defpath)
        places = [f"{folder or '.'}/{name}" for folder in path.split(os.pathsep)] if name else []
    refused = None
    for place in places:
        full = base / place
        if os.path.isfile(full) and os.access(full, os.X_OK):  # noqa: PTH113  no name is too long for it
            return place if "/" in name or place.startswith("/") else str(full.absolute())
        if refused is None and os.path.exists(full):  # noqa: PTH110
            refused = full
    if refused is None:
        from shlex import quote  # noqa: PLC0415 - only where something is wrong

        searched = "" if "/" in name else f" in PATH={_shown(environ.get('PATH', os.defpath))}"
        todo = "install it, or correct its name or PATH" if searched else "install it, or correct its path"
        raise HostlerError(Code.NOT_FOUND, f"there is no program {quote(name)}{searched}", todo)
    what = "is a folder" if refused.is_dir() else "is not executable"
    raise HostlerError(Code.UNAVAILABLE, f"{refused} {what}", "name a program, or make it executable (chmod +x)")


def _shown(path: str) -> str:
    return path if len(path) <= LONGEST else f"{path[: LONGEST - 1]}…"
