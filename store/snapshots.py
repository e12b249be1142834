"""One snapshot of the run store, for what has to see all of a run at once."""

import contextlib
import sqlite3
from collections.abc import Iterator

from store.content import Content
from store.database import open_reader, reading
from store.home import Home
from store.lazy_dataclass import dataclass
from store.run_list import unknown_run
from store.schema import SCHEMA_VERSION, check_version
from store.versions import stored_version


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The store as it stands at one moment.

    Attributes:
        connection: In a read transaction.
        content: Where large bytes lie.

    """

    connection: sqlite3.Connection
    content: Content

    def number(self, run_id: str) -> int:
        """Return the number of a run in this file.

        Raises:
            HostlerError: not-found.

        """
        row = self.connection.execute("SELECT run FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        if row is None:
            raise unknown_run(run_id)
        number: int = row[0]
        return number


@contextlib.contextmanager
def snapshot(home: Home) -> Iterator[Snapshot | None]:
    """Give a snapshot of the store, also where nothing can be written; None if there is none.

    Raises:
        HostlerError: newer-schema, unsafe-state or unavailable.

    """
    connection = open_reader(home.database, SCHEMA_VERSION) if home.exists else None
    if connection is None:
        yield None
        return
    with contextlib.closing(connection), reading(connection, home.database):
        if stored_version(connection) == 0:
            yield None
            return
        check_version(connection, home.database)
        yield Snapshot(connection, Content(home.content))
