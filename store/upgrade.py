"""Bringing a file to the schema of this program: forward only, all of it or nothing, with a copy of what it was.

Everything is one transaction, the copy is made under its lock. So the copy is exactly what was brought up to date,
a kill at any moment leaves the old version, and of programs that start at once one does it while the others wait.
"""

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError, unavailable
from hostres.locks import NEW, is_held
from hostres.replacement import sync
from store.database import open_copy_source, opened_writer, reading, writing
from store.database_file import APPLICATION_ID
from store.home import Home
from store.schema import MIGRATIONS, RELEASES, SCHEMA_VERSION, Migration
from store.versions import newer_schema, stored_version

_VERSIONS: Final = (
    "CREATE TABLE IF NOT EXISTS schema_versions (version INTEGER PRIMARY KEY, release TEXT NOT NULL) STRICT"
)


def upgrade(
    connection: sqlite3.Connection,
    database: Path,
    hosts: Path,
    migrations: Sequence[Migration] = MIGRATIONS,
    releases: Sequence[str] = RELEASES,
) -> None:
    """Bring the file to the newest version; a copy of an older one is kept beside it.

    Args:
        connection: From `database.open_writer`.
        database: The file.
        hosts: The folder of the living hosts; an older program that still works keeps its version.
        migrations: The steps.
        releases: The first Hostler that knows each version.

    Raises:
        HostlerError: newer-schema; unavailable, if it cannot be done now.

    """
    newest = len(migrations)
    with reading(connection, database):
        if _is_up_to_date(connection, database, newest):
            return
    with writing(connection, database):
        if _is_up_to_date(connection, database, newest):
            return  # another process did it while this one waited
        version = stored_version(connection)
        if version > 0:
            _refuse_while_used(database, hosts)
            _keep_copy(database, version)
        connection.execute(_VERSIONS)
        for target in range(version + 1, newest + 1):
            for statement in migrations[target - 1]:
                connection.execute(statement)
            connection.execute("INSERT INTO schema_versions VALUES (?, ?)", (target, releases[target - 1]))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {newest}")


def bring_up_to_date(home: Home) -> None:
    """Bring the run store of *home* to the version of this program.

    Raises:
        HostlerError: As `upgrade`; not-found, if there is none.

    """
    with opened_writer(home.database, SCHEMA_VERSION, create=False) as connection:
        upgrade(connection, home.database, home.hosts)


def _is_up_to_date(connection: sqlite3.Connection, database: Path, newest: int) -> bool:
    version = stored_version(connection)
    if version > newest:
        raise newer_schema(connection, database, version, newest)
    return version == newest


def _refuse_while_used(database: Path, hosts: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        for entry in hosts.iterdir():
            if not entry.name.startswith(NEW) and is_held(entry):
                what = f"{database} is of an older version and {entry.name} still works with it"
                raise HostlerError(Code.UNAVAILABLE, what, "end the programs that use it, then start again")


def kept_copy(database: Path, version: int) -> Path:
    """Return where the copy of a file of that version is kept."""
    return database.with_name(f"{database.name}.v{version}")


def _keep_copy(database: Path, version: int) -> None:
    """Copy the file as it is; the caller has the write lock.

    One of the same version is replaced: it is from an upgrade that was cut short, or of a file that came back since.
    """
    copy = kept_copy(database, version)
    new = copy.with_name(f"{NEW}{copy.name}.{secrets.token_hex(4)}")
    try:
        for cut_short in copy.parent.glob(f"{NEW}{database.name}.v*"):
            cut_short.unlink()
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        new.chmod(0o600)
        _copy(database, new)
        sync(new)
        new.rename(copy)
        sync(copy.parent)
    except (OSError, sqlite3.Error) as error:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        what = f"no copy of {database} could be made before bringing it up to date"
        if isinstance(error, OSError):
            raise unavailable(what, error) from error
        raise HostlerError(Code.UNAVAILABLE, f"{what}: {error}", "make room on its disk and start again") from error


def _copy(database: Path, new: Path) -> None:
    with (
        contextlib.closing(open_copy_source(database)) as source,
        contextlib.closing(sqlite3.connect(new, isolation_level=None)) as target,
    ):
        # Nobody has it open and nothing stands in it: no journal is needed, and whole is what was synced.
        target.execute("PRAGMA journal_mode = OFF")
        target.execute("PRAGMA synchronous = OFF")
        source.backup(target)
