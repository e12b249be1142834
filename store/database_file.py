"""The file of the run store: what lies there is looked at before SQLite touches it, and how one connects to it."""

import contextlib
import os
import sqlite3
import stat
import struct
import threading
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes

from hostres.errors import Code, HostlerError
from hostres.folders import check_private_file
from store.faults import damaged_file, translated
from store.open_files import OpenFiles
from store.turns import Turns
from store.versions import newer_schema

APPLICATION_ID: Final = 0x486F7374  # "Host"
BUSY_SECONDS: Final = 30.0
"""How long a write waits for other writers before it is refused."""

_CACHED_STATEMENTS: Final = 256

_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = struct.Struct(">60xi4xI")  # user_version at byte 60, application_id at byte 68
_HEADER_BYTES: Final = 100

BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite adds to the name of a file for those that it makes beside it."""

_KINDS: Final = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_opened: Final[set[str]] = set()
_opening: Final = threading.Lock()


class Connection(sqlite3.Connection):
    """A connection that, if it writes, takes turns with those of other processes, and knows its files."""

    turns: Turns | None = None
    files: OpenFiles | None = None

    def close(self) -> None:
        """Close it, and leave the queue of those who write."""
        super().close()
        if self.turns is not None:
            self.turns.close()


def connect(database: Path, query: str, *, timeout: float) -> Connection:
    """Connect to the file.

    Args:
        database: The file.
        query: How, in the words of SQLite's URIs.
        timeout: How long SQLite itself waits for a lock, seconds.

    """
    uri = f"file:{quote_from_bytes(os.fsencode(database))}?{query}"
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
        factory=Connection,
    )


def _peek(database: Path, known: int) -> bool:
    """Look at the file's header without SQLite, which would touch it.

    Only before this process first opens the file: closing a plain descriptor drops SQLite's own locks on it.

    Returns:
        Whether there is anything in the file.

    Raises:
        HostlerError: newer-schema; unsafe-state, if it is not a run store.

    """
    with database.open("rb", buffering=0) as file:
        header = file.read(_HEADER_BYTES)
    log = log_bytes(database)
    if not header:
        return False
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise damaged_file(database, "it is not a run store")
    version, application = _HEADER.unpack_from(header)
    if not version and not application and _has_journal(database):
        return False  # its making was cut short; whoever writes next begins anew, and who only looks could not
    if log or version > known:
        # The newest header may be in the log. Where there is none, nothing is made beside the file.
        with translated(database), contextlib.closing(look(database, untouched=not log)) as looking:
            version = looking.execute("PRAGMA user_version").fetchone()[0]
            application = looking.execute("PRAGMA application_id").fetchone()[0]
            if version > known and application == APPLICATION_ID:
                raise newer_schema(looking, database, version, known)
    if version <= 0 and application == APPLICATION_ID:  # both are written in one page with the tables
        raise damaged_file(database, f"it says that its schema version is {version}")
    if version and application != APPLICATION_ID:
        what = f"{database} belongs to another program"
        raise HostlerError(Code.UNSAFE_STATE, what, "move it away, or use another HOSTLER_HOME")
    return True


def look(database: Path, *, untouched: bool) -> sqlite3.Connection:
    """Connect for reading: moves nothing, and with *untouched* makes nothing and takes no lock either."""
    return connect(database, "immutable=1" if untouched else "mode=ro", timeout=BUSY_SECONDS)


def log_bytes(database: Path) -> int:
    """Return the size of the write-ahead log, which keeps it when it starts over."""
    return file_bytes(f"{database}-wal")


def file_bytes(path: str) -> int:
    """Return the size of a file, 0 if there is none."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - before every write
    except FileNotFoundError:
        return 0


def _has_journal(database: Path) -> bool:
    """Say whether there is a rollback journal, which only the making of the file has: afterwards there is the log."""
    return file_bytes(f"{database}-journal") > 0


def _refuse_log_alone(database: Path) -> None:
    """Refuse a log whose file is gone: who makes the file makes it before the log, and nobody removes it."""
    if log_bytes(database) and not database.exists():
        raise HostlerError(
            Code.UNSAFE_STATE,
            f"{database} is gone, but its log {database.name}-wal is there",
            "put the file back beside its log; or, to start anew, move the log away too",
        )


def _create(database: Path) -> None:
    _refuse_log_alone(database)
    try:
        fd = os.open(database, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        what = f"{database} cannot be made: {error.strerror}"
        raise HostlerError(Code.UNAVAILABLE, what, "check the disk and its permissions") from error
    try:
        os.fchmod(fd, 0o600)  # SQLite gives its side files the same mode
    finally:
        os.close(fd)


def _refuse_what_is_no_file(database: Path) -> None:
    """Refuse a FIFO, a device, a socket or a folder under one of the names: SQLite would wait for it, or write into it.

    Raises:
        HostlerError: unsafe-state, naming it.

    """
    for end in ("", *BESIDE):
        name = f"{database}{end}"
        with contextlib.suppress(OSError):  # what cannot be looked at, whoever opens it will say
            mode = os.lstat(name).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                what = f"{name} is {_KINDS.get(stat.S_IFMT(mode), 'no file')}, not the file of a run store"
                raise HostlerError(Code.UNSAFE_STATE, what, "move it away")


def _refuse_log_beside_nothing(database: Path, size: int) -> None:
    """Refuse an empty file that has a log: SQLite writes into a file before it makes its log, and would drop that one.

    Raises:
        HostlerError: unsafe-state.

    """
    if not size and log_bytes(database) and not database.stat().st_size:
        raise damaged_file(database, "it is empty, but its log is not")


def approach(database: Path, known: int, *, create: bool) -> bool:
    """Check the file before SQLite touches it; say whether there is anything in it."""
    place = os.path.realpath(database)
    with _opening:
        _refuse_what_is_no_file(database)
        if create:
            _create(database)
        try:
            size = check_private_file(database).st_size
        except FileNotFoundError:
            _refuse_log_alone(database)
            return False
        _refuse_log_beside_nothing(database, size)
        if place in _opened:
            return size > 0
        try:
            found = _peek(database, known)
        except OSError as error:
            what = f"{database} cannot be read: {error.strerror}"
            raise HostlerError(Code.UNAVAILABLE, what, "check that it is yours and on a working disk") from error
        if found or create:
            _opened.add(place)
        return found


def nobody_can_write(database: Path) -> bool:
    """Say whether the file is all there is and cannot change."""
    if log_bytes(database):
        return False
    if os.statvfs(database).f_flag & os.ST_RDONLY:
        return True
    # whoever writes would have to make side files beside it
    return not os.path.lexists(f"{database}-shm") and not os.access(database.parent, os.W_OK)
