"""The tables, and how a file of an older version becomes one of this version.

One record is one row: its canonical JSON and its digest, besides the columns that queries need. `content` is
NULL where the bytes lie in a file beside the database.
"""

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError
from hostres.locks import is_held
from store.database import APPLICATION_ID, newer_schema, reading, writing

Migration = tuple[str, ...]

_VERSION_1: Final[Migration] = (
    """
    CREATE TABLE bundles (
        sha256 TEXT PRIMARY KEY,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    """
    CREATE TABLE graph_plans (
        sha256 TEXT PRIMARY KEY,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    """
    CREATE TABLE hosts (
        host_id TEXT PRIMARY KEY,
        pid INTEGER NOT NULL,
        since TEXT NOT NULL
    ) STRICT
    """,
    # The number is never used again, so that what a process knows of a run cannot come to mean another.
    """
    CREATE TABLE runs (
        run INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL UNIQUE,
        workflow TEXT NOT NULL,
        plan_sha256 TEXT NOT NULL REFERENCES graph_plans,
        bundle_sha256 TEXT REFERENCES bundles,
        created_at TEXT NOT NULL,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        status TEXT NOT NULL,
        started_at TEXT,
        finished_at TEXT,
        generation INTEGER NOT NULL DEFAULT 0,
        host_id TEXT REFERENCES hosts,
        token TEXT,
        counts TEXT NOT NULL,
        event_seq INTEGER NOT NULL,
        event_sha256 TEXT NOT NULL,
        CHECK ((host_id IS NULL) = (token IS NULL))
    ) STRICT
    """,
    "CREATE INDEX runs_by_status ON runs (status, run_id)",
    "CREATE INDEX runs_by_host ON runs (host_id) WHERE host_id IS NOT NULL",
    """
    CREATE TABLE nodes (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        position INTEGER NOT NULL,
        key TEXT NOT NULL,
        status TEXT NOT NULL,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (run, position)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE UNIQUE INDEX nodes_by_key ON nodes (run, key)",
    """
    CREATE TABLE node_plans (
        sha256 TEXT PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        node TEXT NOT NULL,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    "CREATE INDEX node_plans_by_run ON node_plans (run)",
    """
    CREATE TABLE outputs (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        position INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        size INTEGER NOT NULL,
        content BLOB,
        PRIMARY KEY (run, position)
    ) STRICT
    """,
    """
    CREATE TABLE summaries (
        run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
        sha256 TEXT NOT NULL,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    """
    CREATE TABLE events (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        event BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE grants (
        grant_id TEXT PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX grants_by_run ON grants (run)",
    """
    CREATE TABLE requests (
        request_id TEXT PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        consumed_generation INTEGER
    ) STRICT
    """,
    "CREATE INDEX requests_by_run ON requests (run)",
    "CREATE INDEX requests_waiting ON requests (run) WHERE consumed_generation IS NULL",
)

MIGRATIONS: Final[Sequence[Migration]] = (_VERSION_1,)
"""The first makes version 1 of an empty file, each next one the next version."""

SCHEMA_VERSION: Final = len(MIGRATIONS)


def stored_version(connection: sqlite3.Connection) -> int:
    """Return the schema version of the open file; 0 for an empty one."""
    row = connection.execute("PRAGMA user_version").fetchone()
    version: int = row[0]
    return version


def check_version(connection: sqlite3.Connection, database: Path) -> None:
    """Refuse a file that is not exactly of this version.

    Raises:
        HostlerError: newer-schema, or unavailable for an older one.

    """
    version = stored_version(connection)
    if version > SCHEMA_VERSION:
        raise newer_schema(database, version, SCHEMA_VERSION)
    if version < SCHEMA_VERSION:
        what = f"{database} has schema version {version}, this program needs {SCHEMA_VERSION}"
        raise HostlerError(Code.UNAVAILABLE, what, "run any command that writes, which brings it up to date")


def migrate(
    connection: sqlite3.Connection,
    database: Path,
    hosts: Path,
    migrations: Sequence[Migration] = MIGRATIONS,
) -> None:
    """Bring the file to the newest version; a copy of an older one is kept beside it.

    Each step is one transaction, so that a kill leaves the file at one version or the next.

    Args:
        connection: From `database.open_writer`.
        database: The file.
        hosts: The folder of the living hosts; an older program that still works keeps its version.
        migrations: The steps.

    Raises:
        HostlerError: newer-schema; unavailable, if it cannot be done now.

    """
    with reading(connection, database):
        version = stored_version(connection)
    if version > len(migrations):
        raise newer_schema(database, version, len(migrations))
    if 0 < version < len(migrations):
        _refuse_while_used(database, hosts)
        _keep_copy(connection, database, version)
    for target in range(version + 1, len(migrations) + 1):
        with writing(connection, database):
            if stored_version(connection) >= target:
                continue  # another process did it while this one waited
            for statement in migrations[target - 1]:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {target}")


def _refuse_while_used(database: Path, hosts: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        for entry in hosts.iterdir():
            if not entry.name.startswith(".") and is_held(entry):
                what = f"{database} is of an older version and {entry.name} still works with it"
                raise HostlerError(Code.UNAVAILABLE, what, "end the programs that use it, then start again")


def kept_copy(database: Path, version: int) -> Path:
    """Return where the copy of a file of that version is kept."""
    return database.with_name(f"{database.name}.v{version}")


def _keep_copy(connection: sqlite3.Connection, database: Path, version: int) -> None:
    copy = kept_copy(database, version)
    if copy.exists():
        return  # the migration was cut short after this step
    new = copy.with_name(f".new.{copy.name}.{secrets.token_hex(4)}")
    try:
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        new.chmod(0o600)
        connection.execute("VACUUM INTO ?", (str(new),))
        _sync(new)
        new.rename(copy)
        _sync(copy.parent)
    except (OSError, sqlite3.Error) as error:
        new.unlink(missing_ok=True)
        what = f"no copy of {database} could be made before bringing it up to date: {error}"
        raise HostlerError(Code.UNAVAILABLE, what, "make room on its disk and start again") from error


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
