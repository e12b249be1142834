"""What errors of SQLite mean to a person, and which files are damaged: those are left as they are."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError

_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_OTHER_FILE: Final = ("no such", "unsupported file format")
"""How SQLite begins when the tables are not those of the file's version, or its header is not one that it writes."""

_LONGEST_TEXT: Final = 1000
_UNTRUSTED: Final = "restore the store from a copy; what it names can no longer be trusted"

_NOT_TEXT: Final = "it holds text that is not UTF-8"

_damaged: Final[dict[tuple[int, int, int], HostlerError]] = {}
"""Files that were found damaged, by device, inode and last change: a copy that is put in their place is another."""


def store_error(error: sqlite3.Error | UnicodeDecodeError, database: Path) -> HostlerError:
    """Say what an error of SQLite, or text of it that is none, means to a person; remember a damaged file."""
    if isinstance(error, UnicodeDecodeError):  # SQLite's message quotes the damage
        return note_damage(database, _NOT_TEXT)
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    if primary == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_SHMSIZE:
        # the second is what no room for the log's index is called (https://www.sqlite.org/rescode.html#ioerr_shmsize)
        return no_room(f"the disk is full; nothing more can be written to {database}")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        from store.lock_holders import writers  # noqa: PLC0415  looks at every process

        who = writers(database)
        what = f"{database} is kept busy by {who or 'another program'}"
        todo = "continue or end it, then try again" if who else "try again; see `hostler doctor` for who uses it"
        return HostlerError(Code.UNAVAILABLE, what, todo)
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return read_only(database)
    if primary == sqlite3.SQLITE_CANTOPEN:
        what = f"{database} cannot be opened"
        return HostlerError(Code.UNAVAILABLE, what, "check that its folder is yours and on a working disk")
    if primary == sqlite3.SQLITE_IOERR:
        return _not_read(error, database)
    if primary in _DAMAGE or (primary == sqlite3.SQLITE_ERROR and str(error).startswith(_OTHER_FILE)):
        return note_damage(database, str(error))
    if _is_undecodable(error):
        return note_damage(database, _NOT_TEXT)
    return HostlerError(Code.INTERNAL, f"{database}: {error}", "report it with the output of `hostler doctor`")


def _not_read(error: sqlite3.Error, database: Path) -> HostlerError:
    if error.sqlite_errorcode == sqlite3.SQLITE_IOERR_SHORT_READ:
        what = f"{database} or its log ends before what was written into it: it was removed or cut short while in use"
        return HostlerError(Code.UNAVAILABLE, what, "end the programs that use it, then go on")
    what = f"{database} cannot be read or written: {getattr(error, 'sqlite_errorname', error)}"
    return HostlerError(Code.UNAVAILABLE, what, "check the disk, then go on; nothing acknowledged is lost")


def no_room(what: str) -> HostlerError:
    """Return the refusal of what a full disk does not take."""
    return HostlerError(Code.UNAVAILABLE, what, "make room and go on; nothing acknowledged is lost")


def _is_undecodable(error: sqlite3.Error) -> bool:
    """Say whether a text in the file is not UTF-8, which Python finds out, not SQLite."""
    return getattr(error, "sqlite_errorcode", None) is None and str(error).startswith("Could not decode to UTF-8")


def read_only(database: Path) -> HostlerError:
    """Return the refusal of a file that cannot be written."""
    what = f"{database} cannot be written: it, or its disk, is read-only"
    return HostlerError(Code.UNAVAILABLE, what, "make it writable; commands that only look still work")


def damaged_file(database: Path, why: str) -> HostlerError:
    """Return the refusal of a file that is not what a run store must be."""
    shown = "".join(character if character.isprintable() else "?" for character in why)  # SQLite quotes the damage
    return HostlerError(
        Code.UNSAFE_STATE,
        f"{database} is damaged: {shown}",
        "Hostler leaves it as it is; move it away with its -wal and -shm files and put a copy in its place",
    )


def note_damage(database: Path, why: str) -> HostlerError:
    """Remember that the file is damaged: this process writes nothing more into it."""
    error = damaged_file(database, why)
    file = _file(database)
    return _damaged.setdefault(file, error) if file is not None else error


def found_damage(database: Path) -> HostlerError | None:
    """Return what is wrong with the file, if this process has found it damaged."""
    file = _file(database) if _damaged else None
    return _damaged.get(file) if file is not None else None


def refuse_if_damaged(database: Path) -> None:
    """Refuse to write into a file that was found damaged.

    Raises:
        HostlerError: unsafe-state.

    """
    error = found_damage(database)
    if error is not None:
        raise error


def _file(database: Path) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(database)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def damaged(what: str, why: str = "its digest does not match") -> HostlerError:
    """Return the error for stored bytes that are not what was stored; what they say of themselves is not trusted."""
    text = f"stored {what} is damaged: {why}"
    shown = "".join(character if character.isprintable() else "?" for character in text[:_LONGEST_TEXT])
    return HostlerError(Code.INVALID_DATA, shown, _UNTRUSTED)


@contextlib.contextmanager
def translated(database: Path) -> Iterator[None]:
    """Turn errors of SQLite into ours.

    Raises:
        HostlerError: What `store_error` says.

    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise store_error(error, database) from error
