"""The archive that a command is given: which word names one, and opening it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hostres.errors import Code, HostlerError
from hostres.regular_files import NotRegularError, open_regular
from store.patterns import NEWEST, PREFIX


def archive_named(text: str) -> Path | None:
    """Return the file that *text* names, where a run or an archive may be named; None if it names a run.

    What can only be a run is one, whatever lies in the current folder; a slash makes it a file.
    """
    if "/" in text:
        return Path(text)
    return None if text == NEWEST or text.startswith(PREFIX) or not os.path.lexists(text) else Path(text)


@contextmanager
def open_archive(path: Path) -> Iterator[BinaryIO]:
    """Open an archive for reading; a pipe or a device is none, and is not waited for.

    Raises:
        HostlerError: not-found; invalid-data, if it is no regular file or cannot be read.

    """
    try:
        file = open_regular(path)
    except FileNotFoundError:
        raise HostlerError(Code.NOT_FOUND, f"there is no file {path}", "check the path") from None
    except NotRegularError:
        what = f"{path} is not a regular file"
        raise HostlerError(Code.INVALID_DATA, what, "give what `hostler export` wrote") from None
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}"
        raise HostlerError(Code.INVALID_DATA, what, "check the path and its permissions") from error
    with file:
        yield file
