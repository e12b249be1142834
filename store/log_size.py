"""How large the write-ahead log may grow, whoever reads for however long.

SQLite starts the log over once all of it is in the file and nobody reads a state that needs it. Readers that follow
each other closely keep it from that moment, and so do writers that take turns: one checkpoint after the other would
find that somebody has written on. One reader that stays keeps the log growing. So from `START_OVER_BYTES` on the
moment is made, as the next one to write: a checkpoint that holds up new work until the readers are through. Readers of
Hostler take milliseconds. For another program's the log goes on growing, to `LOG_LIMIT`; there writing ends with an
error that names the reader, while the disk still has room for everybody else.
"""

import logging
import sqlite3
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError
from store.database import LOG_BYTES_KEPT, next_turn
from store.database_file import BUSY_SECONDS, file_bytes
from store.faults import translated
from store.limits import MIB
from store.lock_holders import readers

START_OVER_BYTES: Final = LOG_BYTES_KEPT + MIB // 8
LOG_BYTES: Final = 8 * MIB
"""Above this somebody keeps reading, of which its owner should know."""
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
        self._log = f"{database}-wal"
        self._limit = limit
        self._next = START_OVER_BYTES
        self._named = False
        self._tidied: int | None = None

    def tidy(self) -> None:
        """Do now what the next write would do first, and so need not do again."""
        self._tidied = self.keep_small()

    def before_write(self) -> None:
        """Refuse to write, outside a transaction, when the log cannot grow any more; wait for its readers first.

        Raises:
            HostlerError: unavailable, naming who reads.

        """
        size, self._tidied = self.keep_small() if self._tidied is None else self._tidied, None
        if size <= self._limit or self._started_over(int(BUSY_SECONDS * 1000)):
            return
        who = readers(self._database) or "another program"
        raise HostlerError(
            Code.UNAVAILABLE,
            f"the log of {self._database} has {self._limit // MIB} MiB and cannot start over: {who} keeps reading",
            "end that program, then go on; nothing acknowledged is lost",
        )

    def keep_small(self) -> int:
        """Have the log start over, outside a transaction, if it has grown; what is committed stays so in any case.

        Returns:
            The bytes of the log, 0 if it starts over.

        """
        size = file_bytes(self._log)
        if size < self._next:
            if size < START_OVER_BYTES:
                self._next, self._named = START_OVER_BYTES, False
            return size
        if self._started_over(_BRIEFLY_MS):
            return 0
        self._next = size + _STEP
        if size >= LOG_BYTES and not self._named:
            self._named = True
            who = readers(self._database) or "another program"
            _LOG.warning("the log of %s grows: %s keeps reading an old state of it", self._database, who)
        return size

    def _started_over(self, patience_ms: int) -> bool:
        """Move the log into the file; say whether the next write finds room at its beginning."""
        try:
            with translated(self._database), next_turn(self._connection, BUSY_SECONDS):
                self._connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
                try:
                    busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
                finally:
                    self._connection.execute("PRAGMA busy_timeout = 0")
        except HostlerError as error:
            _LOG.warning("the log of %s was not moved into it: %s", self._database, error)
            return False
        return not busy
