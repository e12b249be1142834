"""The version that a file says it has: whether this program knows it, and whether its tables are of it."""

import sqlite3
from pathlib import Path

from hostres.errors import Code, HostlerError
from store.faults import note_damage


def stored_version(connection: sqlite3.Connection) -> int:
    """Return the schema version of the open file; 0 for an empty one."""
    row = connection.execute("PRAGMA user_version").fetchone()
    version: int = row[0]
    return version


def newer_schema(connection: sqlite3.Connection, database: Path, found: int, known: int) -> HostlerError:
    """Return the refusal of a file that a newer program wrote.

    Args:
        connection: To the file, which may name the program that is needed.
        database: The file.
        found: Its version.
        known: The newest version that this program knows.

    """
    try:
        row = connection.execute("SELECT release FROM schema_versions WHERE version = ?", (found,)).fetchone()
    except sqlite3.Error:
        row = None  # whatever keeps its versions elsewhere
    needed = f"Hostler {row[0]} or newer" if row else "the newer Hostler that wrote it"
    return HostlerError(
        Code.NEWER_SCHEMA,
        f"{database} has schema version {found}, this program knows up to {known}",
        f"use {needed}, or another HOSTLER_HOME; the file was not touched",
    )


def refuse_misfit(connection: sqlite3.Connection, database: Path, known: int) -> None:
    """Refuse a file whose tables are of another version than it says.

    Version 0 without a table is what a making that was cut short leaves, and counts as empty.

    Args:
        connection: In a snapshot.
        database: The file.
        known: The newest version that this program knows; what newer ones keep is theirs.

    Raises:
        HostlerError: unsafe-state.

    """
    version = stored_version(connection)
    if version > known:
        return
    if version < 0:
        raise note_damage(database, f"it says that its schema version is {version}")
    if version == 0:
        if connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
            raise note_damage(database, "it holds tables, and says that it has no schema version")
        return
    ((made,),) = connection.execute("SELECT max(version) FROM schema_versions").fetchall()
    if made != version:
        raise note_damage(database, f"it says that its schema version is {version}, its tables are of {made}")
