"""Rows of a run lie together and in order: the id of such a row is the number of its run and its place in it.

So no index leads to them, and what is appended for a run goes to the end of what is there, on one page.
"""

from typing import Final

PLACES: Final = 1 << 32
"""So many rows of a kind a run can have; its events and nodes are bounded far below that."""


def within(run: str, row: str = "id") -> str:
    """Return the SQL condition that a row is one of a run.

    Args:
        run: What holds the run's number.
        row: What holds the row's id.

    """
    return f"{row} BETWEEN {run} << 32 AND ({run} << 32) + {PLACES - 1}"


IN_RUN: Final = within("?1")
"""The same of the run whose number is the first parameter."""


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


def next_id(table: str) -> str:
    """Return the SQL expression of the id behind all rows that a table has of that run; the first is at place 1."""
    return f"(SELECT coalesce(max(id), ?1 << 32) + 1 FROM {table} WHERE {IN_RUN})"  # noqa: S608 - names of our own
