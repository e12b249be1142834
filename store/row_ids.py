"""Rows of a run lie together and in order: the id of such a row is the number of its run and its place in it.

So no index leads to them, and what is appended for a run goes to the end of what is there, on one page.
"""

import sqlite3
from typing import Final

PLACES: Final = 1 << 32
"""So many rows of a kind a run can have; its events and nodes are bounded far below that."""

IN_RUN: Final = f"id BETWEEN ?1 << 32 AND (?1 << 32) + {PLACES - 1}"
"""SQL: the rows of the run whose number is the first parameter."""


def of_run(columns: str, table: str, *, only: str = "") -> str:
    """Return the SQL that reads the rows of the run whose number is the first parameter, in their order.

    Args:
        columns: What of them.
        table: One whose rows lie by run.
        only: A further condition.

    """
    return f"SELECT {columns} FROM {table} WHERE {IN_RUN}{only and ' AND '}{only} ORDER BY id"  # noqa: S608 - names of our own


def row_id(run: int, place: int) -> int:
    """Return the id of a row.

    Args:
        run: The run's number in this file.
        place: The position of a node, the number of an event, from 0 up to `PLACES` - 1.

    Raises:
        ValueError: No row can be there.

    """
    if not 0 <= place < PLACES:
        raise ValueError(place)
    return run << 32 | place


def next_id(connection: sqlite3.Connection, table: str, run: int) -> int:
    """Return the id of what comes behind all rows that a table has of a run; the first is at place 1."""
    query = f"SELECT coalesce(max(id), ?1 << 32) + 1 FROM {table} WHERE {IN_RUN}"  # noqa: S608 - names of our own
    found: int = connection.execute(query, (run,)).fetchone()[0]
    return found
