"""Leases in the store: given and ended by the owner of the run, extended by the worker itself."""

import sqlite3
from collections.abc import Iterable

from hostres.clock import boot_id
from hostres.errors import Code, HostlerError
from store.amounts import Budget
from store.clock import Clock, Stamp
from store.database import opened_writer, writing
from store.home import Home
from store.lazy_dataclass import dataclass
from store.leases import HeldLease, NewLease, Term, work_key
from store.records import encode
from store.row_ids import within
from store.schema import SCHEMA_VERSION, check_version


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenWork:
    """A lease as a worker finds it.

    Attributes:
        term: Until when it lasts.
        budget: What may still be spent; None is no limit.

    """

    run_id: str
    node: str
    attempt: int
    worker: str
    term: Term
    budget: Budget | None

    @property
    def key(self) -> str:
        """The name of the attempt."""
        return work_key(self.run_id, self.node, self.attempt)


def put_leases(connection: sqlite3.Connection, run: int, leases: Iterable[NewLease], stamp: Stamp) -> None:
    """Store leases that begin now, inside a write transaction."""
    for lease in leases:
        term = Term.begin(lease.seconds, stamp, boot_id())
        connection.execute(
            "INSERT INTO leases (run, node, attempt, worker, seconds, boot_id, until_boot_ns, expires_at, budget)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                run, lease.node, lease.attempt, lease.worker,
                term.seconds, term.boot_id, term.until_boot_ns, term.expires_at,
                None if lease.budget is None else encode(lease.budget).decode(),
            ),
        )  # fmt: skip


def end_leases(connection: sqlite3.Connection, run: int, nodes: Iterable[str]) -> None:
    """Remove the leases of those nodes, inside a write transaction."""
    connection.executemany("DELETE FROM leases WHERE run = ? AND node = ?", [(run, node) for node in nodes])


def held_leases(connection: sqlite3.Connection, run: int, stamp: Stamp) -> tuple[HeldLease, ...]:
    """Return the leases of a run, as they stand now."""
    rows = connection.execute(
        "SELECT node, attempt, worker, seconds, boot_id, until_boot_ns, expires_at FROM leases"
        " WHERE run = ? ORDER BY node",
        (run,),
    ).fetchall()
    return tuple(
        HeldLease(node=node, attempt=attempt, worker=worker, left_s=_term(term).left_s(stamp, boot_id()))
        for node, attempt, worker, *term in rows
    )


def taken_work(
    connection: sqlite3.Connection, *, run_id: str | None = None, worker: str | None = None, node: str | None = None
) -> list[TakenWork]:
    """Return leases, expired ones too, in the order of their runs.

    Args:
        connection: Inside a transaction.
        run_id: Of that run only.
        worker: Of that worker only.
        node: Of that node only.

    """
    rows = connection.execute(
        "SELECT r.run_id, node, attempt, worker, budget, seconds, boot_id, until_boot_ns, expires_at"
        " FROM leases AS l JOIN runs AS r USING (run)"
        " WHERE (?1 IS NULL OR r.run_id = ?1) AND (?2 IS NULL OR l.worker = ?2) AND (?3 IS NULL OR l.node = ?3)"
        " AND r.imported_sha256 IS NULL ORDER BY r.run_id, l.node",
        (run_id, worker, node),
    ).fetchall()
    return [
        TakenWork(
            run_id=run_id,
            node=node,
            attempt=attempt,
            worker=worker,
            term=_term(term),
            budget=None if budget is None else Budget.model_validate_json(budget),
        )
        for run_id, node, attempt, worker, budget, *term in rows
    ]


def runs_with_work(connection: sqlite3.Connection) -> list[str]:
    """Return the runs that have a ready node or work that is taken, oldest first."""
    rows = connection.execute(
        "SELECT run_id FROM runs AS r WHERE imported_sha256 IS NULL AND ("  # noqa: S608 - names of our own
        " EXISTS (SELECT 1 FROM nodes AS n"
        f" WHERE {within('r.run', 'n.id')} AND n.status = 'ready')"
        " OR EXISTS (SELECT 1 FROM leases AS l WHERE l.run = r.run)) ORDER BY run_id"
    ).fetchall()
    return [row[0] for row in rows]


def beat(home: Home, *, run_id: str, node: str, attempt: int, seconds: float, clock: Clock) -> Term:
    """Extend a lease that has not expired; nobody but its worker writes that.

    Args:
        home: The state folder.
        run_id: The run.
        node: The node.
        attempt: The attempt that the worker has.
        seconds: How long it is to last from now, at least.
        clock: Says when that is.

    Returns:
        Until when it lasts now.

    Raises:
        HostlerError: conflict, if the work is no longer this worker's; unavailable.

    """
    with (
        opened_writer(home.database, SCHEMA_VERSION, create=False) as connection,
        writing(connection, home.database),
    ):
        check_version(connection, home.database)
        found = [each for each in taken_work(connection, run_id=run_id, node=node) if each.attempt == attempt]
        now = clock.now()  # inside the lock: whoever saw it expired before is right for ever
        if not found or found[0].term.left_s(now, boot_id()) == 0:
            raise lost(work_key(run_id, node, attempt))
        term = found[0].term.extended(seconds, now, boot_id())
        connection.execute(
            "UPDATE leases SET seconds = ?, boot_id = ?, until_boot_ns = ?, expires_at = ?"
            " WHERE run = (SELECT run FROM runs WHERE run_id = ?) AND node = ?",
            (term.seconds, term.boot_id, term.until_boot_ns, term.expires_at, run_id, node),
        )
    return term


def lost(key: str) -> HostlerError:
    """Return the error for work that is no longer the worker's."""
    return HostlerError(
        Code.CONFLICT,
        f"{key} is not leased any more: it was settled, given back, cancelled, or its lease expired",
        "stop working on it, and ask for other work: hostler work next",
    )


def _term(row: list[object]) -> Term:
    seconds, boot, until, expires_at = row
    return Term(seconds=seconds, boot_id=boot, until_boot_ns=until, expires_at=expires_at)  # type: ignore[arg-type]
