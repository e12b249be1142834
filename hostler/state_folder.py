"""Where the durable state is. Light: listing runs needs no more of the configuration."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hostler.refusals import OTHER_FOLDER, invalid, require_utf8
from hostres.folders import user_home

HOME: Final = "HOSTLER_HOME"


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the state folder, absolute, whether or not it exists.

    Args:
        environ: `HOSTLER_HOME` in it names the folder.

    Raises:
        HostlerError: invalid-data: it names a user who does not exist, or its name is not UTF-8; unavailable: nothing
            names one, and this user has no home.

    """
    named = environ.get(HOME)
    folder = _named(named) if named else _usual()
    require_utf8(str(folder), "the state folder", OTHER_FOLDER)
    return folder


def _usual() -> Path:
    if not sys.platform.startswith("linux"):
        import platformdirs  # noqa: PLC0415  takes as long as listing the runs

        return platformdirs.user_state_path("hostler").absolute()
    # as https://specifications.freedesktop.org/basedir-spec has it; what is relative counts for nothing
    base = os.environ.get("XDG_STATE_HOME", "")
    home = Path(base) if base.startswith("/") else Path(os.environ.get("HOME") or user_home(), ".local", "state")
    return (home / "hostler").absolute()


def _named(home: str) -> Path:
    try:
        return Path(home).expanduser().absolute()
    except RuntimeError:
        raise invalid(f"{HOME} is {home!r}: there is no such user", "give the folder as an absolute path") from None
