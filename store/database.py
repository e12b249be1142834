"""Connections to the run store: how they are opened and closed, how a write begins."""

import contextlib
import os
import sqlite3
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes

from hostres.errors import Code, HostlerError
from hostres.folders import check_private_file
from store.faults import damaged_file, found_damage, read_only, refuse_if_damaged, translated
from store.turns import Turns
from store.versions import newer_schema, refuse_misfit

APPLICATION_ID: Final = 0x486F7374  # "Host"
BUSY_SECONDS: Final = 30.0
"""How long a write waits for other writers before it is refused."""

WAL_BYTES: Final = 1 << 20
LOG_BYTES_KEPT: Final = 4 << 20
"""What the log keeps of its size when it starts over; somewhat less than it has when that is due."""

_PAGES_TO_CHECKPOINT: Final = 2000
"""SQLite's own checkpoint, after each commit from here on: for programs that only post a request. See `log_size`."""
_CACHED_STATEMENTS: Final = 256
_FIRST_PAUSE_S: Final = 0.00002
_LONGEST_PAUSE_S: Final = 0.001

_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = struct.Struct(">60xi4xI")  # user_version at byte 60, application_id at byte 68
_HEADER_BYTES: Final = 100

_opened: Final[set[str]] = set()
_opening: Final = threading.Lock()


class _Connection(sqlite3.Connection):
    """A connection that, if it writes, takes turns with those of other processes."""

    turns: Turns | None = None

    def close(self) -> None:
        super().close()
        if self.turns is not None:
            self.turns.close()


def _connect(database: Path, query: str, *, timeout: float) -> _Connection:
    uri = f"file:{quote_from_bytes(os.fsencode(database))}?{query}"
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
        factory=_Connection,
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
        # SQLite writes into the file before it makes a log, and would throw away a log that it finds beside nothing
        if log and not database.stat().st_size:
            raise damaged_file(database, "it is empty, but its log is not")
        return False
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise damaged_file(database, "it is not a run store")
    version, application = _HEADER.unpack_from(header)
    if not version and not application and _has_journal(database):
        return False  # its making was cut short; whoever writes next begins anew, and who only looks could not
    if log or version > known:
        # The newest header may be in the log. Where there is none, nothing is made beside the file.
        with translated(database), contextlib.closing(_look(database, untouched=not log)) as looking:
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


def _look(database: Path, *, untouched: bool) -> sqlite3.Connection:
    """Connect for reading: moves nothing, and with *untouched* makes nothing and takes no lock either."""
    return _connect(database, "immutable=1" if untouched else "mode=ro", timeout=BUSY_SECONDS)


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


def _approach(database: Path, known: int, *, create: bool) -> bool:
    """Check the file before SQLite touches it; say whether there is anything in it."""
    place = os.path.realpath(database)
    with _opening:
        if create:
            _create(database)
        try:
            size = check_private_file(database).st_size
        except FileNotFoundError:
            _refuse_log_alone(database)
            return False
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


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def open_writer(database: Path, known: int, *, create: bool) -> sqlite3.Connection:
    """Open the run store for writing; its schema is not yet looked at.

    Args:
        database: The file.
        known: The newest schema version this program knows.
        create: Make an empty file if there is none.

    Raises:
        HostlerError: not-found, newer-schema, unsafe-state or unavailable.

    """
    empty = not _approach(database, known, create=create)
    if empty and not create:
        raise HostlerError(Code.NOT_FOUND, f"there is no run store at {database}", "run a workflow first")
    if not os.access(database, os.W_OK):  # SQLite would make do with reading, and say so only at the first write
        raise read_only(database)
    refuse_if_damaged(database)
    with translated(database):
        connection = _connect(database, "mode=rw", timeout=0)
        try:
            connection.turns = Turns(database)
            if empty:  # later it counts no more, and would begin a write
                _until_free(connection, "PRAGMA auto_vacuum = INCREMENTAL", time.monotonic() + BUSY_SECONDS)
            else:
                with reading(connection, database):
                    refuse_misfit(connection, database, known)
            _until_free(connection, "PRAGMA journal_mode = WAL", time.monotonic() + BUSY_SECONDS)
            _set_up(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_TO_CHECKPOINT}")
            connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")
        except BaseException:
            close_writer(connection, database)
            raise
    return connection


def close_writer(connection: sqlite3.Connection, database: Path) -> None:
    """Close a connection from `open_writer`; the last one moves the log into the file, unless that is damaged."""
    if found_damage(database) is None:
        connection.close()
        return
    # As long as somebody looks, SQLite leaves the log where it is; and who only looks cannot move it.
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_look(database, untouched=False)) as looking:
        looking.execute("BEGIN")
        with contextlib.suppress(sqlite3.Error):
            looking.execute("SELECT count(*) FROM sqlite_schema")
        connection.close()
    connection.close()


@contextlib.contextmanager
def opened_writer(database: Path, known: int, *, create: bool) -> Iterator[sqlite3.Connection]:
    """Give what `open_writer` opens, and close it as `close_writer` does; the arguments are those of the first.

    Raises:
        HostlerError: What `open_writer` says.

    """
    connection = open_writer(database, known, create=create)
    try:
        yield connection
    finally:
        close_writer(connection, database)


def open_copy_source(database: Path) -> sqlite3.Connection:
    """Connect for reading all of a file that this process has open for writing."""
    return _look(database, untouched=False)


def open_reader(database: Path, known: int) -> sqlite3.Connection | None:
    """Open the run store for looking, also on a read-only file system.

    Returns:
        The connection, or None if there is nothing to look at.

    Raises:
        HostlerError: newer-schema, unsafe-state or unavailable.

    """
    if not _approach(database, known, create=False):
        return None
    with translated(database):
        connection = _connect(database, "mode=ro", timeout=BUSY_SECONDS)
        try:
            try:
                connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1")
            except sqlite3.OperationalError:
                if not _nobody_can_write(database):
                    raise
                connection.close()
                connection = _connect(database, "immutable=1", timeout=0)
            with reading(connection, database):
                refuse_misfit(connection, database, known)
            _set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _nobody_can_write(database: Path) -> bool:
    """Say whether the file is all there is and cannot change."""
    if log_bytes(database):
        return False
    if os.statvfs(database).f_flag & os.ST_RDONLY:
        return True
    # whoever writes would have to make side files beside it
    return not os.path.lexists(f"{database}-shm") and not os.access(database.parent, os.W_OK)


def _until_free(connection: sqlite3.Connection, statement: str, deadline: float) -> None:
    """Execute *statement*, which takes a lock; if it is taken, wait without SQLite's own pauses, which starve."""
    pause = _FIRST_PAUSE_S
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        else:
            return
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def begin_write(connection: sqlite3.Connection, *, busy_seconds: float = BUSY_SECONDS) -> None:
    """Begin a write transaction as such: one that reads first cannot wait for another writer.

    Args:
        connection: From `open_writer`.
        busy_seconds: How long to wait for other writers.

    """
    turns = _turns_of(connection)
    deadline = time.monotonic() + busy_seconds
    taken = turns is not None and turns.take(busy_seconds)
    try:
        _until_free(connection, "BEGIN IMMEDIATE", deadline)
    finally:
        if taken and turns is not None:
            turns.give_up()


def _turns_of(connection: sqlite3.Connection) -> Turns | None:
    return connection.turns if isinstance(connection, _Connection) else None


def next_turn(connection: sqlite3.Connection, busy_seconds: float) -> contextlib.AbstractContextManager[None]:
    """Be the next one to write while the block waits for the write lock.

    Args:
        connection: From `open_writer`.
        busy_seconds: How long to wait for that at most.

    """
    turns = _turns_of(connection)
    return contextlib.nullcontext() if turns is None else turns.next(busy_seconds)


def roll_back(connection: sqlite3.Connection) -> None:
    """End the transaction, if SQLite has not done so itself, with nothing written."""
    if connection.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


@contextlib.contextmanager
def writing(connection: sqlite3.Connection, database: Path) -> Iterator[None]:
    """Make the block one durable transaction, or nothing.

    Raises:
        HostlerError: What `store_error` says of an error of SQLite.

    """
    refuse_if_damaged(database)
    with translated(database):
        begin_write(connection)
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            roll_back(connection)
            raise


@contextlib.contextmanager
def reading(connection: sqlite3.Connection, database: Path) -> Iterator[None]:
    """Let the block see one snapshot.

    Raises:
        HostlerError: What `store_error` says of an error of SQLite.

    """
    with translated(database):
        connection.execute("BEGIN")
        try:
            # The snapshot begins with the first look, which waits where another program recovers the log.
            _until_free(connection, "SELECT 1 FROM sqlite_schema LIMIT 1", time.monotonic() + BUSY_SECONDS)
            yield
        finally:
            roll_back(connection)


def grow_wal(connection: sqlite3.Connection, database: Path) -> None:
    """Fill the write-ahead log up to 1 MiB with zeros, over which commits are faster than at a growing end.

    Done under the write lock, so that nobody else is writing there; recovery stops at the first zeros. Without
    room the log is left as it is.
    """
    with writing(connection, database), contextlib.suppress(OSError):
        fd = os.open(f"{database}-wal", os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            if size < WAL_BYTES:
                _fill(fd, size)
        finally:
            os.close(fd)


def _fill(fd: int, size: int) -> None:
    try:
        written = os.pwrite(fd, bytes(WAL_BYTES - size), size)
        os.fsync(fd)
    except OSError:
        written = 0
    if size + written < WAL_BYTES:
        os.ftruncate(fd, size)
