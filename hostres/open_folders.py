"""What helps where the mode of a folder or file is not right: the command that puts it right, if that can harm nobody.

To close a folder is right only if it is there for Hostler alone. A name in the environment may lead to one that is
there for everybody, as `/tmp`, which the whole machine needs to be open.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from hostres.locks import NEW
from hostres.sharing import MODE

ANOTHER: Final = "it is not there for Hostler alone; name a folder of its own"
_OURS: Final = frozenset(
    {
        *("gate", "state.json", "decisions.json", "pulse", "t", "revoked"),
        *("staging", "logs", "hosts", "bundles", "content", "reserve", "service.json", "writers.lock", "admission"),
    }
)
"""Names of what lies in a machine folder, and in a folder of durable state."""
_STORE: Final = "runs.db"
"""So begin the names of the run store, of what SQLite puts beside it, and of its copies."""


def closing(path: Path) -> str:
    """Return what to do about a folder of ours that is open to others.

    Args:
        path: The folder.

    """
    return f"chmod 700 {path}" if _is_closed(path.parent) or _holds_ours_alone(path) else ANOTHER


def reopening(error: OSError) -> str:
    """Return the command that opens to its owner, who is us, what its mode closes even to him; "" if that is not it.

    Args:
        error: A refusal of the system.

    """
    if error.errno != errno.EACCES or not isinstance(error.filename, str):
        return ""
    path = Path(os.path.abspath(error.filename))  # noqa: PTH100  resolving would follow links
    for place in (*reversed(path.parents), path):
        try:
            status = os.lstat(place)
        except OSError:
            return ""
        wanted = stat.S_IRWXU if stat.S_ISDIR(status.st_mode) else stat.S_IRUSR | stat.S_IWUSR
        if status.st_uid == os.geteuid() and status.st_mode & wanted != wanted:
            return f"chmod u+rwX {place}"
    return ""


def _is_closed(path: Path) -> bool:
    """Return whether others cannot get at what is in a folder, so that it is all the same to them how open that is."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return ours and (not status.st_mode & 0o077 or stat.S_IMODE(status.st_mode) == MODE)


def _holds_ours_alone(path: Path) -> bool:
    try:
        names = os.listdir(path)  # noqa: PTH208  names alone
    except OSError:
        return False
    return all(name in _OURS or name.startswith((NEW, _STORE)) for name in names)
