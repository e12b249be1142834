"""Where a picture goes: a file, whole or not at all, or standard output."""

import contextlib
import os
import secrets
import shutil
from pathlib import Path
from typing import Final

from hostler.commands.output import print_xml
from hostler.commands.unwritable import unwritable
from hostres.replacement import sync

STDOUT: Final = "-"


def write_picture(where: str, text: str) -> None:
    """Write a picture to a file, or to standard output for `-`.

    Args:
        where: Path, or `-`. What was there is replaced; one that is no regular file, as a pipe, is written into.
        text: The picture.

    Raises:
        HostlerError: unavailable, naming the file.

    """
    if where == STDOUT:
        print_xml(text)
        return
    path = Path(os.path.realpath(where))
    draft = path.with_name(f".{secrets.token_hex(8)}.new")
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path, draft, text)
    except OSError as error:
        raise unwritable(Path(where), error, draft=draft) from error


def _replace(path: Path, draft: Path, text: str) -> None:
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, draft)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    with contextlib.suppress(OSError):  # it stands; whether also after a power failure is all that is left open
        sync(path.parent)
