"""How large the write-ahead log may grow, whoever reads for however long.

SQLite starts the log over once all of it is in the file and nobody reads a state that needs it. Readers that follow
each other closely keep it from that moment, one that stays keeps it growing. So above `LOG_BYTES` the moment is
made: a checkpoint that holds up new work until the readers are through. Readers of Hostler take milliseconds. For
another program's the log goes on growing, to `LOG_LIMIT`; there writing ends with an error that names the reader,
while the disk still has room for everybody else.
"""

import logging
import sqlite3
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError
from store.database import BUSY_SECONDS, log_bytes
from store.faults import translated
from store.limits import MIB
from store.lock_holders import readers

LOG_BYTES: Final = 8 * MIB
LOG_LIMIT: Final = 1024 * MIB
_STEP: Final = 1 * MIB
_BRIEFLY_MS: Final = 20
"""How long a checkpoint holds up writing for readers, once each step that the log has grown."""

_LOG: Final = logging.getLogger("store")


class LogSize:
    """Keeps the log of one writing connection small.

    Args:
        connection: From `database.open_writer`.
        database: The file.
        limit: Bytes of the log above which nothing is written.

    """

    def __init__(self, connection: sqlite3.Connection, database: Path, *, limit: int = LOG_LIMIT) -> None:
        self._connection = connection
        self._database = database
        self._limit = limit
        self._next = LOG_BYTES
        self._named = False

    def check(self) -> None:
        """Refuse to write, outside a transaction, when the log cannot grow any more; wait for its readers first.

        Raises:
            HostlerError: unavailable, naming who reads.

        """
        if log_bytes(self._database) <= self._limit or self._started_over(int(BUSY_SECONDS * 1000)):
            return
        who = readers(self._database) or "another program"
        raise HostlerError(
            Code.UNAVAILABLE,
            f"the log of {self._database} has {self._limit // MIB} MiB and cannot start over: {who} keeps reading",
            "end that program, then go on; nothing acknowledged is lost",
        )

    def after_commit(self) -> None:
        """Have the log start over, outside a transaction, if it has grown; what is committed stays so in any case."""
        size = log_bytes(self._database)
        if size < self._next:
            if size < LOG_BYTES:
                self._next, self._named = LOG_BYTES, False
            return
        if self._started_over(_BRIEFLY_MS):
            return
        self._next = size + _STEP
        if not self._named:
            self._named = True
            who = readers(self._database) or "another program"
            _LOG.warning("the log of %s grows: %s keeps reading an old state of it", self._database, who)

    def _started_over(self, patience_ms: int) -> bool:
        """Move the log into the file; say whether the next write finds room at its beginning."""
        try:
            with translated(self._database):
                self._connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
                try:
                    busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
                finally:
                    self._connection.execute("PRAGMA busy_timeout = 0")
        except HostlerError as error:
            _LOG.warning("the log of %s was not moved into it: %s", self._database, error)
            return False
        return not busy
