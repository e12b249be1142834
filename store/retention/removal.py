"""Runs taken out of the store, in bites that no other program has to wait long for.

A run leaves the list in one transaction, which also notes its number in `removals`; from then on nothing finds it.
Only when that is durable do its files go, then its rows, a few at a time, and last the note. Whoever is killed on the
way leaves a note, with which the next one goes on.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from hostres.errors import HostlerError
from store.database import writing
from store.retention.selection import Ended, may_go, still_ended
from store.room import is_full
from store.row_ids import IN_RUN
from store.service import take_back

BITE_ROWS: Final = 256
"""So many rows go in one transaction."""

_RUNS_AT_ONCE: Final = 32
_PAUSE_S: Final = 0.002
"""Between two bites; who waits for the write lock looks more often than that."""

_BY_ROWID: Final = (
    *((table, IN_RUN) for table in ("node_plans", "outputs", "nodes", "events")),
    *((table, "run = ?1") for table in ("summaries", "grants", "requests", "leases", "receipts")),
)
_BY_KEY: Final = (("ledgers", "node"), ("workspaces", "node"))


def pause() -> None:
    """Let those who wait for the write lock have it."""
    time.sleep(_PAUSE_S)


class Removal:
    """Takes runs out.

    Args:
        connection: A writing one; its foreign keys are switched off, since a run's rows go after the run.
        database: The file, for errors.

    """

    def __init__(self, connection: sqlite3.Connection, database: Path) -> None:
        connection.execute("PRAGMA foreign_keys = OFF")
        self._connection = connection
        self._database = database

    def begun(self) -> list[tuple[int, str]]:
        """Return number and id of the runs that are out of the list and not yet gone."""
        return self._connection.execute("SELECT run, run_id FROM removals ORDER BY run").fetchall()

    def hide(self, runs: Sequence[Ended], *, before: str, alive: Callable[[str], bool]) -> Iterator[list[Ended]]:
        """Take runs out of the list, those that still may go; yield which, each time when that is durable.

        Args:
            runs: The runs.
            before: See `selection.may_go`.
            alive: Says whether a host lives.

        """
        for start in range(0, len(runs), _RUNS_AT_ONCE):
            hidden = []
            with writing(self._connection, self._database):
                for run in runs[start : start + _RUNS_AT_ONCE]:
                    now = still_ended(self._connection, run.run)
                    if now is None or not may_go(now, before=before, alive=alive):
                        continue
                    self._connection.execute("INSERT INTO removals (run, run_id) VALUES (?, ?)", (now.run, now.run_id))
                    take_back(self._connection, now.run)
                    self._connection.execute("DELETE FROM runs WHERE run = ?", (now.run,))
                    hidden.append(now)
            yield hidden
            pause()

    def rows(self, runs: Sequence[int]) -> None:
        """Remove the rows of runs that are out of the list, and the notes."""
        left, most = list(runs), BITE_ROWS
        while left:
            try:
                gone = self._some_rows(left, most)
            except HostlerError as refused:
                if most == 1 or not is_full(refused):
                    raise
                most = max(1, most // 4)  # what is large takes room in the log before it gives any back
            else:
                left, most = left[gone:], min(BITE_ROWS, 2 * most)
            pause()

    def _some_rows(self, runs: Sequence[int], room: int) -> int:
        """Remove up to *room* rows in one transaction; return how many of the runs are wholly gone."""
        gone = 0
        with writing(self._connection, self._database):
            while gone < len(runs) and room > 0:
                room -= self._bite(runs[gone], room)
                if room > 0:
                    self._connection.execute("DELETE FROM removals WHERE run = ?", (runs[gone],))
                    gone += 1
        return gone

    def _bite(self, run: int, room: int) -> int:
        """Remove up to *room* rows of a run; fewer only if there are no more."""
        gone = 0
        for table, of_run in _BY_ROWID:
            gone += self._connection.execute(
                f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {of_run} LIMIT ?2)",  # noqa: S608 - names of our own
                (run, room - gone),
            ).rowcount
        for table, key in _BY_KEY:
            gone += self._connection.execute(
                f"DELETE FROM {table} WHERE run = ? AND {key} IN (SELECT {key} FROM {table} WHERE run = ? LIMIT ?)",  # noqa: S608 - likewise
                (run, run, room - gone),
            ).rowcount
        return gone

    def unreferenced(self) -> dict[str, int]:
        """Remove graph plans and code bundles that no run refers to.

        Returns:
            How many of each, by table.

        """
        return {
            "graph_plans": self._sweep("graph_plans", "sha256", "plan_sha256"),
            "bundles": self._sweep("bundles", "sha256", "bundle_sha256"),
        }

    def _sweep(self, table: str, key: str, column: str) -> int:
        total = 0
        while True:
            with writing(self._connection, self._database):
                gone = self._connection.execute(
                    f"DELETE FROM {table} WHERE rowid IN (SELECT t.rowid FROM {table} AS t"  # noqa: S608 - likewise
                    f" WHERE NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.{column} = t.{key}) LIMIT ?)",
                    (BITE_ROWS,),
                ).rowcount
            total += gone
            if gone < BITE_ROWS:
                return total
            pause()

    def forget_hosts(self, alive: Callable[[str], bool]) -> None:
        """Remove the rows of hosts that are dead and claim nothing; an id is never used again."""
        names = [row[0] for row in self._connection.execute("SELECT host_id FROM hosts")]
        dead = [name for name in names if not alive(name)]
        for start in range(0, len(dead), BITE_ROWS):
            with writing(self._connection, self._database):
                self._connection.executemany(
                    "DELETE FROM hosts WHERE host_id = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE host_id = ?1)",
                    [(name,) for name in dead[start : start + BITE_ROWS]],
                )
