"""Connections to the run store: how they are opened and closed, and what is one transaction."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError
from store.database_file import BUSY_SECONDS, Connection, approach, connect, look, nobody_can_write
from store.faults import found_damage, read_only, refuse_if_damaged, translated
from store.open_files import OpenFiles, as_if_in_use
from store.turns import Turns
from store.versions import refuse_misfit

WAL_BYTES: Final = 1 << 20
LOG_BYTES_KEPT: Final = 4 << 20
"""What the log keeps of its size when it starts over; somewhat less than it has when that is due."""

_PAGES_TO_CHECKPOINT: Final = 2000
"""SQLite's own checkpoint, after each commit from here on: for programs that only post a request. See `log_size`."""
_LOOK: Final = "SELECT 1 FROM sqlite_schema LIMIT 1"
_FIRST_PAUSE_S: Final = 0.00002
_LONGEST_PAUSE_S: Final = 0.001


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def open_writer(database: Path, known: int, *, create: bool) -> Connection:
    """Open the run store for writing; its schema is not yet looked at.

    Args:
        database: The file.
        known: The newest schema version this program knows.
        create: Make an empty file if there is none.

    Raises:
        HostlerError: not-found, newer-schema, unsafe-state or unavailable.

    """
    empty = not approach(database, known, create=create)
    if empty and not create:
        raise HostlerError(Code.NOT_FOUND, f"there is no run store at {database}", "run a workflow first")
    if not os.access(database, os.W_OK):  # SQLite would make do with reading, and say so only at the first write
        raise read_only(database)
    refuse_if_damaged(database)
    with translated(database):
        connection = connect(database, "mode=rw", timeout=0)
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
            _until_free(connection, _LOOK, time.monotonic() + BUSY_SECONDS)  # opens the log
            connection.files = OpenFiles(database)
        except BaseException:
            close_writer(connection, database)
            raise
    return connection


def close_writer(connection: sqlite3.Connection, database: Path) -> None:
    """Close a connection from `open_writer`.

    The last one moves the log into the file, unless that is damaged, or is not the file that the log belongs to.
    """
    files = connection.files if isinstance(connection, Connection) else None
    stays = found_damage(database) is not None or (files is not None and files.log_must_stay())
    with as_if_in_use(database) if stays else contextlib.nullcontext():
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
    return look(database, untouched=False)


def open_reader(database: Path, known: int) -> sqlite3.Connection | None:
    """Open the run store for looking, also on a read-only file system.

    Returns:
        The connection, or None if there is nothing to look at.

    Raises:
        HostlerError: newer-schema, unsafe-state or unavailable.

    """
    if not approach(database, known, create=False):
        return None
    with translated(database):
        connection = connect(database, "mode=ro", timeout=BUSY_SECONDS)
        try:
            try:
                connection.execute(_LOOK)
            except sqlite3.OperationalError:
                if not nobody_can_write(database):
                    raise
                connection.close()
                connection = connect(database, "immutable=1", timeout=0)
            with reading(connection, database):
                refuse_misfit(connection, database, known)
            _set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection


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
    return connection.turns if isinstance(connection, Connection) else None


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
            _until_free(connection, _LOOK, time.monotonic() + BUSY_SECONDS)
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
