"""The list of runs: found by prefix, listed newest first. Light: nothing here reads the records behind the rows.

`hostler runs` needs no more, and starts five times faster without what reads records.
"""

import contextlib
import sqlite3
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from hostres.errors import Code, HostlerError
from store.database import open_reader, reading
from store.faults import damaged
from store.home import Home
from store.lifecycle import RunStatus
from store.patterns import NEWEST, PREFIX
from store.schema import SCHEMA_VERSION, check_version
from store.versions import stored_version

_LISTED: Final = 5
_AFTER_EVERY_ID: Final = "\x7f"
_GUESSED_FROM: Final = 500
"""So many of the newest runs may be meant by an id with a slip in it."""
_ALIKE: Final = 0.85
"""Ids of one day are alike in half of their characters."""


class RunRow(NamedTuple):
    """A line of the list of runs.

    Attributes:
        host: Id of the host that claims it.
        alive: Whether that host lives.
        imported: Whether it is a mere record, brought in from an archive.

    """

    run_id: str
    workflow: str
    status: RunStatus
    created_at: str
    started_at: str | None
    finished_at: str | None
    host: str | None
    alive: bool
    imported: bool


class Owner(NamedTuple):
    """Who claims a run."""

    host: str
    alive: bool


def unknown_run(run_id: str, guess: str | None = None) -> HostlerError:
    """Return the error for a run that is not there.

    Args:
        run_id: What was asked for.
        guess: The run that was probably meant.

    """
    todo = "see `hostler runs`" if guess is None else f"did you mean {guess}? see `hostler runs`"
    return HostlerError(Code.NOT_FOUND, f"there is no run {run_id}", todo)


def known_status(text: str, run_id: str) -> RunStatus:
    """Return the status of a run that its column holds.

    Raises:
        HostlerError: invalid-data.

    """
    try:
        return RunStatus(text)
    except ValueError:
        raise damaged(f"status of run {run_id}", "there is no such status") from None


class RunList:
    """Lists runs, one snapshot a call; a context manager.

    Args:
        home: The state folder.
        connection: From `database.open_reader`; None if there is nothing to look at.

    Attributes:
        home: The state folder.
        damage: Why a list lacks what could not be read; None as long as all of it could.

    """

    def __init__(self, home: Home, connection: sqlite3.Connection | None) -> None:
        self.damage: HostlerError | None = None
        self.home = home
        self._connection = connection

    @classmethod
    def open(cls, home: Home) -> Self:
        """Look into *home*; one without a run store is empty.

        Raises:
            HostlerError: newer-schema, unsafe-state, unavailable or invalid-data.

        """
        connection = open_reader(home.database, SCHEMA_VERSION) if home.exists else None
        if connection is None:
            return cls(home, None)
        try:
            with reading(connection, home.database):
                if stored_version(connection) > 0:
                    check_version(connection, home.database)
                    return cls(home, connection)
        except BaseException:
            connection.close()
            raise
        connection.close()
        return cls(home, None)

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._connection is not None:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def find(self, text: str) -> str:
        """Return the id of the run that *text* means.

        Args:
            text: Any unique prefix of it, `run_` may be left out; `-` means the newest.

        Raises:
            HostlerError: not-found; conflict, if it means several.

        """
        if text == NEWEST:
            newest = self._rows("SELECT run_id FROM runs ORDER BY run_id DESC LIMIT 1")
            if not newest:
                raise HostlerError(Code.NOT_FOUND, "there is no run yet", "start one with `hostler run`")
            run_id: str = newest[0][0]
            return run_id
        prefix = text if text.startswith(PREFIX) or PREFIX.startswith(text) else PREFIX + text
        found = self.ids(prefix, limit=_LISTED + 1)
        if not found or not text:
            raise unknown_run(text, self._guess(prefix))
        if len(found) > 1:
            more = ", …" if len(found) > _LISTED else ""
            what = f"{text} means several runs: {', '.join(found[:_LISTED])}{more}"
            raise HostlerError(Code.CONFLICT, what, "give more of its id")
        return found[0]

    def ids(self, prefix: str, *, limit: int, newest: bool = False) -> list[str]:
        """Return the ids of runs that begin with *prefix*.

        Args:
            prefix: The beginning, with `run_`.
            limit: At most so many.
            newest: The newest first; otherwise the oldest.

        """
        order = "DESC" if newest else "ASC"
        rows = self._rows(
            f"SELECT run_id FROM runs WHERE run_id >= ? AND run_id < ? ORDER BY run_id {order} LIMIT ?",  # noqa: S608 - words of our own
            prefix,
            prefix + _AFTER_EVERY_ID,
            limit,
        )
        return [row[0] for row in rows]

    def runs(
        self, *, status: RunStatus | None = None, limit: int | None = None, before: str | None = None
    ) -> list[RunRow]:
        """Return the runs, newest first; of a damaged file those that can be read, and `damage` says so.

        A page costs what is on it, however many runs there are.

        Args:
            status: Only those.
            limit: At most so many.
            before: Only those older than the run of that id.

        Raises:
            HostlerError: invalid-data, naming a run whose status is damaged.

        """
        conditions = {"status = ?": status and status.value, "run_id < ?": before}
        given = {condition: value for condition, value in conditions.items() if value is not None}
        rows = self._listed(
            "SELECT run_id, workflow, status, created_at, started_at, finished_at, host_id, imported_sha256 FROM runs"  # noqa: S608 - text of our own
            f" WHERE {' AND '.join(given) or 'TRUE'}",
            tuple(given.values()),
            limit,
        )
        alive = self._alive({row[6] for row in rows if row[6] is not None})
        return [
            RunRow(
                run_id=row[0],
                workflow=row[1],
                status=known_status(row[2], row[0]),
                created_at=row[3],
                started_at=row[4],
                finished_at=row[5],
                host=row[6],
                alive=alive.get(row[6], False),
                imported=row[7] is not None,
            )
            for row in rows
        ]

    def _alive(self, hosts: set[str]) -> dict[str, bool]:
        if not hosts:
            return {}
        from store.hosts import host_alive  # noqa: PLC0415  locks cost more than the list, and most runs have no host

        return {host: host_alive(self.home, host) for host in hosts}

    def _guess(self, prefix: str) -> str | None:
        """Return the run that is most like an id with a slip in it."""
        from hostres.suggestions import nearest  # noqa: PLC0415  only where something is wrong

        by_beginning = {each[: len(prefix)]: each for each in self.ids(PREFIX, limit=_GUESSED_FROM, newest=True)}
        near = nearest(prefix, by_beginning, cutoff=_ALIKE) if len(prefix) > len(PREFIX) + 2 else None
        return None if near is None else by_beginning[near]

    def _listed(self, query: str, values: tuple[object, ...], limit: int | None) -> list[Any]:
        """Return the rows of a query for runs, newest first; in a damaged file those that can still be read."""
        try:
            return self._rows(f"{query} ORDER BY run_id DESC LIMIT ?", *values, -1 if limit is None else limit)
        except HostlerError as error:
            if error.code is not Code.UNSAFE_STATE:
                raise
            self.damage = error
        ((last,),) = self._rows("SELECT seq FROM sqlite_sequence WHERE name = 'runs'")
        found: list[Any] = []
        for number in range(1, last + 1):
            with contextlib.suppress(HostlerError):
                found += self._rows(f"{query} AND run = ?", *values, number)
        return sorted(found, key=lambda row: str(row[0]), reverse=True)[:limit]

    def _rows(self, query: str, *values: object) -> list[Any]:
        if self._connection is None:
            return []
        with reading(self._connection, self.home.database):
            return self._connection.execute(query, values).fetchall()
