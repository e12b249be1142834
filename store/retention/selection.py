"""Which runs may go. Pure but for the query that lists them."""

import sqlite3
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from store.lazy_dataclass import dataclass
from store.lifecycle import RUN_FINAL

_FINAL: Final = tuple(sorted(status.value for status in RUN_FINAL))
_ENDED: Final = f"""
    SELECT run, run_id, coalesce(finished_at, created_at), host_id,
        imported_sha256 IS NULL AND EXISTS (
            SELECT 1 FROM requests AS q WHERE q.run = r.run AND q.consumed_generation IS NULL
        )
    FROM runs AS r
    WHERE (status IN ({", ".join("?" * len(_FINAL))}) OR imported_sha256 IS NOT NULL)
"""  # noqa: S608 - question marks


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that no host will go on with by itself.

    Attributes:
        run: Its number in this file.
        ended_at: When it ended; of an imported one that never did, when it was created.
        host_id: Who claims it all the same.
        asked: Whether somebody wants something of it that is not answered yet.

    """

    run: int
    run_id: str
    ended_at: str
    host_id: str | None
    asked: bool


def ended(connection: sqlite3.Connection) -> list[Ended]:
    """Return the runs that have ended, newest first."""
    rows = connection.execute(f"{_ENDED} ORDER BY run_id DESC", _FINAL)
    return [_ended(row) for row in rows]


def still_ended(connection: sqlite3.Connection, run: int) -> Ended | None:
    """Return that run as it is in the running transaction, None if it has not ended or is gone."""
    row = connection.execute(f"{_ENDED} AND run = ?", (*_FINAL, run)).fetchone()
    return None if row is None else _ended(row)


def _ended(row: Any) -> Ended:
    run, run_id, ended_at, host_id, asked = row
    return Ended(run, run_id, ended_at, host_id, bool(asked))


def may_go(run: Ended, *, before: str, alive: Callable[[str], bool]) -> bool:
    """Say whether nobody needs *run* any more.

    Args:
        run: A run that has ended.
        before: The instant before which it must have; the clock only says how old a run is, never whose it is.
        alive: Says whether a host lives.

    """
    return run.ended_at < before and not run.asked and (run.host_id is None or not alive(run.host_id))


def outdated(runs: Iterable[Ended], *, before: str, keep: int, alive: Callable[[str], bool]) -> list[Ended]:
    """Return the runs that may go.

    Args:
        runs: Newest first.
        before: See `may_go`.
        keep: How many of the newest stay, however old they are.
        alive: Says whether a host lives.

    """
    return [run for run in list(runs)[keep:] if may_go(run, before=before, alive=alive)]


def making_room(
    runs: Iterable[Ended], *, excess: int, size: Callable[[Ended], int], going: Collection[int]
) -> list[Ended]:
    """Return the runs that go because all of them together take too much, oldest first.

    Args:
        runs: Those that may go, whatever their age, newest first.
        excess: Bytes that are too many, once those that go for their age are gone.
        size: Bytes of the disk that a run takes.
        going: Numbers of the runs that go for their age.

    """
    found = []
    for run in reversed([run for run in runs if run.run not in going]):
        if excess <= 0:
            break
        freed = size(run)
        if freed > 0:
            found.append(run)
            excess -= freed
    return found
