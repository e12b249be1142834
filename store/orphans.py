"""Rows of runs that are not there: the run's own row was lost, and nothing else tells that it ever was."""

import sqlite3
from collections.abc import Iterator

import orjson

from store.archive.tables import TABLES, Table
from store.row_ids import of_run


def orphans(connection: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    """Return the numbers of runs that have rows but are not there themselves, nor being removed.

    Args:
        connection: In a transaction that shows one snapshot.

    Returns:
        The tables that have such rows, by number.

    """
    known = {row[0] for row in connection.execute("SELECT run FROM runs UNION ALL SELECT run FROM removals")}
    found: dict[int, tuple[str, ...]] = {}
    for table in TABLES:
        for run in _numbers(connection, table):
            if run not in known:
                found[run] = (*found.get(run, ()), table.name)
    return dict(sorted(found.items()))


def _numbers(connection: sqlite3.Connection, table: Table) -> Iterator[int]:
    """Yield each number once, from one to the next by the index: most tables have many rows for each."""
    if table.by_id:
        run, first, after = -1 << 31, "min(id) >> 32", "id >= (? + 1) << 32"
    else:
        run, first, after = -1 << 63, "min(run)", "run > ?"
    query = f"SELECT {first} FROM {table.name} WHERE {after}"  # noqa: S608 - names of our own
    while (row := connection.execute(query, (run,)).fetchone())[0] is not None:
        run = row[0]
        yield run


def name_of(connection: sqlite3.Connection, run: int) -> str | None:
    """Return the id by which the log of such a run calls it; None if it has no log that can be read."""
    row = connection.execute(of_run("event", "events") + " LIMIT 1", (run,)).fetchone()
    try:
        run_id = orjson.loads(row[0])["run_id"]
    except (TypeError, KeyError, ValueError):
        return None
    return run_id if isinstance(run_id, str) else None
