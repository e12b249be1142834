"""Looking into the run store: one snapshot a call, on a connection of its own, also where nothing can be written."""

import sqlite3
from typing import NoReturn

from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store.claiming import load_grants, load_receipts, load_value
from store.content import Content
from store.contracts import Grant, NodeRecord, Request, RunRecord, Summary
from store.database import reading
from store.faults import damaged, note_damage
from store.heads import read_head
from store.home import Home
from store.hosts import host_alive
from store.ledger_rows import read_ledgers
from store.ledgers import Ledger
from store.plans import GraphPlan, NodePlan
from store.receipts import Receipt
from store.records import decode, verified
from store.requests import cancel_waits, decode_request, next_cancel_id
from store.row_ids import of_run
from store.run_list import Owner, known_status, unknown_run
from store.run_log import RunLog
from store.run_view import RunView
from store.service import ToDo, to_do
from store.values import Domain


class Reader(RunLog):
    """Reads runs; a context manager.

    Args:
        home: The state folder.
        connection: From `database.open_reader`; None if there is nothing to look at.

    Attributes:
        home: The state folder.
        damage: Why a list lacks what could not be read; None as long as all of it could.

    """

    def __init__(self, home: Home, connection: sqlite3.Connection | None) -> None:
        super().__init__(home, connection)
        self._content = Content(home.content)

    def examine(self) -> HostlerError | None:
        """Look through the whole file, which takes seconds where there is much in it; return what is wrong with it."""
        try:
            rows = self._rows("PRAGMA quick_check(1)")
        except HostlerError as error:
            return error
        said = [row[0] for row in rows if row[0] != "ok"]
        return note_damage(self.home.database, " ".join(str(said[0]).split())) if said else None

    def journal_mode(self) -> str | None:
        """Return how SQLite writes the file, in its own word; None where there is no file."""
        return next((str(mode) for (mode,) in self._rows("PRAGMA journal_mode")), None)

    def data_version(self) -> int:
        """Return a number that changes with every commit of others, for who looks again and again."""
        return sum(row[0] for row in self._rows("PRAGMA data_version"))

    def run(self, run_id: str) -> RunView:
        """Return what is known of that run as a whole.

        Raises:
            HostlerError: not-found; invalid-data, naming what is damaged.

        """
        if self._connection is None:
            raise unknown_run(run_id)
        with reading(self._connection, self.home.database):
            row = self._connection.execute(
                "SELECT r.record, r.sha256, r.status, r.started_at, r.finished_at, r.host_id, s.sha256, s.content,"
                " r.imported_sha256"
                " FROM runs AS r LEFT JOIN summaries AS s ON s.run = r.run WHERE r.run_id = ?",
                (run_id,),
            ).fetchone()
            if row is None:
                raise unknown_run(run_id)
            asked = cancel_waits(self._connection, run_id)
            ledgers = read_ledgers(self._connection, self._number(run_id), run_id)
        data, sha256, status, started_at, finished_at, host, summary_sha256, summary, imported_sha256 = row
        what = f"record of run {run_id}"
        return RunView(
            record=decode(RunRecord, verified(Domain.RECORD, data, sha256, what), what),
            status=known_status(status, run_id),
            started_at=started_at,
            finished_at=finished_at,
            imported_sha256=imported_sha256,
            owner=None if host is None else Owner(host=host, alive=host_alive(self.home, host)),
            summary=None if summary_sha256 is None else self._summary(run_id, summary_sha256, summary),
            cancel_waits=asked,
            ledgers=ledgers,
        )

    def _summary(self, run_id: str, sha256: str, inline: bytes | None) -> Summary:
        what = f"summary of run {run_id}"
        return decode(Summary, self._content.get(Domain.RECORD, sha256, inline, what), what)

    def to_do(self) -> list[ToDo]:
        """Return the runs that the background service would go on with and that no living host owns, oldest first."""
        if self._connection is None:
            return []
        with reading(self._connection, self.home.database):
            found = to_do(self._connection)
        alive = {host: host_alive(self.home, host) for host in {one.host_id for one in found} if host is not None}
        return [one for one in found if one.host_id is None or not alive[one.host_id]]

    def is_entrusted(self, run_id: str) -> bool:
        """Say whether a run is left to the background service.

        Raises:
            HostlerError: not-found.

        """
        return bool(self._of_run(run_id, "SELECT 1 FROM entrusted WHERE run = ?"))

    def plan(self, sha256: str) -> GraphPlan:
        """Return the graph plan with that digest, verified.

        Raises:
            HostlerError: not-found; invalid-data.

        """
        what = f"graph plan {sha256}"
        data = self._by_digest("graph_plans", Domain.GRAPH_PLAN, sha256, what, named_in="plan_sha256")
        return decode(GraphPlan, data, what)

    def node_plan(self, sha256: str) -> NodePlan:
        """Return the node plan with that digest, verified.

        Raises:
            HostlerError: not-found; invalid-data.

        """
        what = f"node plan {sha256}"
        return decode(NodePlan, self._by_digest("node_plans", Domain.NODE_PLAN, sha256, what), what)

    def bundle(self, sha256: str) -> bytes:
        """Return the code bundle with that digest, verified.

        Raises:
            HostlerError: not-found; invalid-data.

        """
        what = f"code bundle {sha256}"
        return self._by_digest("bundles", Domain.BUNDLE, sha256, what, named_in="bundle_sha256")

    def nodes(self, run_id: str) -> tuple[NodeRecord, ...]:
        """Return the records of all of a run's nodes, in the order of its plan, verified.

        Raises:
            HostlerError: not-found; invalid-data, naming the node.

        """
        if self._connection is None:
            raise unknown_run(run_id)
        with reading(self._connection, self.home.database):
            head = read_head(self._connection, run_id)
            rows = self._connection.execute(of_run("position, key, record, sha256", "nodes"), (head.run,)).fetchall()
        if [row[0] for row in rows] != list(range(sum(head.counts.values()))):  # a damaged page may hide some
            raise damaged(f"set of nodes of run {run_id}", "some are missing or there twice")
        return tuple(self._node(run_id, *row[1:]) for row in rows)

    @staticmethod
    def _node(run_id: str, key: str, data: bytes, sha256: str) -> NodeRecord:
        what = f"record of node {key} of run {run_id}"
        record = decode(NodeRecord, verified(Domain.RECORD, data, sha256, what), what)
        if record.key != key:
            raise damaged(what, "it is of another node")
        return record

    def grants(self, run_id: str) -> tuple[Grant, ...]:
        """Return the grants of a run, oldest first, verified.

        Raises:
            HostlerError: not-found; invalid-data, naming the grant.

        """
        if self._connection is None:
            raise unknown_run(run_id)
        with reading(self._connection, self.home.database):
            return load_grants(self._connection, self._number(run_id))

    def receipts(self, run_id: str) -> tuple[Receipt, ...]:
        """Return the receipts of a run, oldest first, verified.

        Raises:
            HostlerError: not-found; invalid-data, naming the receipt.

        """
        if self._connection is None:
            raise unknown_run(run_id)
        with reading(self._connection, self.home.database):
            return load_receipts(self._connection, self._number(run_id))

    def ledgers(self, run_id: str) -> tuple[Ledger, ...]:
        """Return what the nodes of a run reserved and spent, in the order of their keys, verified.

        Raises:
            HostlerError: not-found; invalid-data, naming the ledger.

        """
        if self._connection is None:
            raise unknown_run(run_id)
        with reading(self._connection, self.home.database):
            return read_ledgers(self._connection, self._number(run_id), run_id)

    def requests(self, run_id: str) -> tuple[Request, ...]:
        """Return everything that was ever asked of a run, oldest first, verified.

        Raises:
            HostlerError: not-found; invalid-data, naming the request.

        """
        rows = self._of_run(run_id, "SELECT record, sha256, request_id FROM requests WHERE run = ? ORDER BY rowid")
        return tuple(decode_request(*row) for row in rows)

    def next_cancel_id(self, run_id: str, node: str | None) -> str:
        """Return the id that a cancel of a run, or of a node of it, has now; one that waits already has the same."""
        if self._connection is None:
            raise unknown_run(run_id)
        with reading(self._connection, self.home.database):
            return next_cancel_id(self._connection, run_id, node)

    def output(self, run_id: str, node: str) -> JsonValue:
        """Return what a node gave, verified.

        Raises:
            HostlerError: not-found; invalid-data.

        """
        rows = self._of_run(
            run_id,
            "SELECT o.sha256, o.content FROM nodes AS n JOIN outputs AS o ON o.id = n.id WHERE n.run = ? AND n.key = ?",
            node,
        )
        if not rows:
            self._not_found(f"node {node} of run {run_id} has no output", f"see `hostler show {run_id}`")
        sha256, inline = rows[0]
        return load_value(self._content, sha256, inline, f"output of node {node} of run {run_id}")

    def _by_digest(self, table: str, domain: Domain, sha256: str, what: str, *, named_in: str | None = None) -> bytes:
        """Return the bytes with that digest; those that a run names in its column *named_in* must be there."""
        if self._connection is None:
            self._not_found(f"there is no {what}", "see `hostler runs`")
        with reading(self._connection, self.home.database):
            row = self._connection.execute(f"SELECT content FROM {table} WHERE sha256 = ?", (sha256,)).fetchone()  # noqa: S608 - names of our own
            named = row is None and named_in is not None and self._is_named(named_in, sha256)
        if named:
            raise damaged(what, "it is missing")
        if row is None:  # its run may just have been removed
            self._not_found(f"there is no {what}", "see `hostler runs`")
        return self._content.get(domain, sha256, row[0], what)

    def _is_named(self, column: str, sha256: str) -> bool:
        assert self._connection is not None
        query = f"SELECT 1 FROM runs WHERE {column} = ? LIMIT 1"  # noqa: S608 - names of our own
        return self._connection.execute(query, (sha256,)).fetchone() is not None

    @staticmethod
    def _not_found(what: str, todo: str) -> NoReturn:
        raise HostlerError(Code.NOT_FOUND, what, todo)
