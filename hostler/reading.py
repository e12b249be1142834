"""Reading a file that a person names: a regular one, and not an endless one."""

from pathlib import Path
from typing import Final

from pydantic import JsonValue

from hostler.refusals import about, invalid
from hostres.errors import HostlerError
from hostres.regular_files import NotRegularError, open_regular
from store.policy import MIB
from store.values import parse_json

MAX_BYTES: Final = 16 * MIB


def read_bounded(path: Path, *, what: str = "") -> bytes:
    """Return the bytes of a file of a person, which must be one and not endless.

    Args:
        path: The file.
        what: What it is, for the error, with a space behind it.

    Raises:
        HostlerError: It cannot be read, is no regular file, or is larger than 16 MiB (invalid-data).

    """
    try:
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
    except NotRegularError as error:
        raise invalid(f"{what}{path} is not a regular file", "give a file") from error
    except OSError as error:
        raise invalid(f"{what}{path} cannot be read: {error.strerror}", "check the path and its permissions") from error
    if len(data) > MAX_BYTES:
        raise invalid(f"{what}{path} has more than {MAX_BYTES:,} bytes", "give data as files, by their paths")
    return data


def read_json(path: Path, *, what: str = "") -> JsonValue:
    """Return the JSON value that a file of a person holds.

    Args:
        path: The file.
        what: As of `read_bounded`.

    Raises:
        HostlerError: invalid-data naming the file: as `read_bounded`, or it does not hold just one JSON value.

    """
    data = read_bounded(path, what=what)
    try:
        return parse_json(data)
    except HostlerError as error:
        raise about(f"{what}{path}", error) from None
