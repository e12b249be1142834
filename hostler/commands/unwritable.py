"""What is said of a file that a person named and that could not be written."""

import errno
import os
from pathlib import Path

from hostres.errors import Code, HostlerError, unavailable


def unwritable(named: Path, error: OSError, *, draft: Path) -> HostlerError:
    """Return the error of a file that was going to get its name once its draft was whole.

    Args:
        named: The file that the person named.
        error: The system's answer.
        draft: What was written in its place, of which nobody has heard; its name is not told.

    """
    what, folder = f"{named} cannot be written", named.parent
    if error.errno == errno.ENOENT and not folder.exists():
        return HostlerError(Code.UNAVAILABLE, f"{what}: there is no folder {folder}", "make it, or name another")
    if error.filename is not None and os.fsdecode(error.filename) == str(draft):
        error = OSError(error.errno, error.strerror)
    return unavailable(what, error)
