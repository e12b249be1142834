"""What shell completion looks up: ids of runs and keys of nodes, without a check, a lock or a byte written.

Whatever is wrong with the store is no matter here: then there is nothing to offer. What is not a well-formed name is
left out, so that nothing in the file can do anything to a terminal.
"""

import contextlib
import os
import re
import sqlite3
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes

from store.patterns import NODE_KEY_PATTERN, RUN_ID_PATTERN
from store.row_ids import within

_RUN_ID: Final = re.compile(RUN_ID_PATTERN.strip("^$"))
_KEY: Final = re.compile(NODE_KEY_PATTERN.strip("^$"))
_WORD: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,254}")
_PATIENCE_S: Final = 0.2
_AFTER_EVERY_ID: Final = "\x7f"


def glimpsed_runs(database: Path, beginning: str, *, limit: int) -> list[tuple[str, str]]:
    """Return the newest runs whose ids begin so: id, and what a person knows it by.

    Args:
        database: The run store.
        beginning: Of their ids.
        limit: At most so many.

    """
    rows = _rows(
        database,
        "SELECT run_id, workflow, status FROM runs WHERE run_id >= ? AND run_id < ? ORDER BY run_id DESC LIMIT ?",
        (beginning, beginning + _AFTER_EVERY_ID, limit),
    )
    return [
        (run_id, f"{workflow}, {status}")
        for run_id, workflow, status in rows
        if _RUN_ID.fullmatch(run_id) and _WORD.fullmatch(workflow) and _WORD.fullmatch(status)
    ]


def glimpsed_nodes(database: Path, run_id: str) -> list[str]:
    """Return the keys of the nodes of a run, in the order of its plan."""
    query = (
        f"SELECT n.key FROM runs AS r JOIN nodes AS n ON {within('r.run', 'n.id')}"  # noqa: S608 - names of our own
        " WHERE r.run_id = ? ORDER BY n.id"
    )
    return [key for (key,) in _rows(database, query, (run_id,)) if _KEY.fullmatch(key)]


def _rows(database: Path, query: str, values: tuple[object, ...]) -> list[tuple[str, ...]]:
    if not database.is_file():
        return []
    # SQLite would make the index of the log where it is missing, even for a reader. Where it is there, it is used.
    how = "mode=ro" if os.path.exists(f"{database}-shm") else "immutable=1"  # noqa: PTH110 - a name beside it
    uri = f"file:{quote_from_bytes(os.fsencode(database))}?{how}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE_S)) as connection:
        return connection.execute(query, values).fetchall()
