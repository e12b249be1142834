"""The floor: what SQLite alone makes of one small row a commit, set up as the run store is."""

import os
import sqlite3
from pathlib import Path
from typing import Final

from store.database import WAL_BYTES

BODY: Final = os.urandom(512)


class BareCommits:
    """A file with one table, its log in WAL mode, synchronous FULL, and grown before use.

    Args:
        place: A folder of its own.

    """

    def __init__(self, place: Path) -> None:
        path = place / "bare.db"
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(
            "CREATE TABLE rows (run TEXT, seq INTEGER, body BLOB, PRIMARY KEY (run, seq)) WITHOUT ROWID"
        )
        with Path(f"{path}-wal").open("r+b") as log:
            log.seek(0, os.SEEK_END)
            log.write(bytes(WAL_BYTES - log.tell()))
            log.flush()
            os.fsync(log.fileno())
        self._seq = 0

    def commit(self, times: int) -> None:
        """Make *times* commits of one row."""
        for _ in range(times):
            self._seq += 1
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("INSERT INTO rows VALUES (?, ?, ?)", ("run", self._seq, BODY))
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
