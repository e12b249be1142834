"""A claimed run as this process last left it in the store, so that a write reads nothing that its claim already knows.

Nothing is taken on trust: every statement that stores what changed names the values it replaces, the claim among
them. If one of them does not find these, the run is not as it was left: `OutdatedError`, and the caller rolls back.
"""

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, Final

from hostres.errors import Code, HostlerError
from store.clock import Stamp
from store.contracts import NodeRecord
from store.faults import damaged
from store.heads import INSERT_EVENT, Head, counts_text, seal_events
from store.lifecycle import RUN_FINAL, RunStatus
from store.limits import Limits
from store.records import decode, encode, verified
from store.row_ids import row_id
from store.shapes import Shape
from store.transactions import NewEvent
from store.values import Domain, digest_bytes

_SELECT_NODE: Final = "SELECT record, sha256 FROM nodes WHERE id = ?"
_REPLACE_NODE: Final = "UPDATE nodes SET status = ?, record = ?, sha256 = ? WHERE id = ? AND sha256 = ?"
_REPLACE_HEAD: Final = (
    "UPDATE runs SET started_at = ?, counts = ?, event_seq = ?, event_sha256 = ?"
    " WHERE run = ? AND status = ? AND started_at IS ? AND generation = ? AND host_id = ? AND token = ?"
    " AND counts = ? AND event_seq = ? AND event_sha256 = ?"
)


class OutdatedError(Exception):
    """The store holds something else than was left there; nothing may be written upon it."""


class Held:
    """One claimed run.

    Attributes:
        head: Its head, changes of this transaction included.
        shape: What its plan says.
        released: Whether this transaction gives the claim back.

    """

    def __init__(self, connection: sqlite3.Connection, head: Head, shape: Shape) -> None:
        self.head = head
        self.shape = shape
        self.released = False
        self._connection = connection
        self._stored = _stored(head)
        self._nodes: dict[int, NodeRecord] = {}
        self._digests: dict[int, str] = {}
        self._changed: set[int] = set()
        self._events: list[tuple[int, bytes, str]] = []
        self._turned = False
        self._finished_at: str | None = None

    def know(self, nodes: Sequence[NodeRecord], digests: Sequence[str]) -> None:
        """Take over all nodes as the claim read and verified them, in the order of the plan."""
        self._nodes = dict(enumerate(nodes))
        self._digests = dict(enumerate(digests))

    def position(self, node: str) -> int:
        """Return where a node stands in the plan.

        Raises:
            HostlerError: not-found.

        """
        position = self.shape.positions.get(node)
        if position is None:
            what = f"run {self.head.run_id} has no node {node}"
            raise HostlerError(Code.NOT_FOUND, what, f"see `hostler show {self.head.run_id}`")
        return position

    def node(self, position: int) -> NodeRecord:
        """Return the record of a node, changes of this transaction included.

        Raises:
            HostlerError: invalid-data, if it is not known yet and what is stored is damaged.

        """
        record = self._nodes.get(position)
        if record is None:
            row = self._connection.execute(_SELECT_NODE, (row_id(self.head.run, position),)).fetchone()
            if row is None:
                raise damaged(f"node {position} of run {self.head.run_id}", "it is not where the plan says")
            data, sha256 = row
            what = f"record of node {position} of run {self.head.run_id}"
            record = decode(NodeRecord, verified(Domain.RECORD, data, sha256, what), what)
            self._nodes[position] = record
            self._digests[position] = sha256
        return record

    def replace_node(self, position: int, record: NodeRecord) -> None:
        """Let *record* stand for a node; what it may become is checked by the caller."""
        counts, before = self.head.counts, self._nodes[position].status
        counts[before] -= 1
        counts[record.status] = counts.get(record.status, 0) + 1
        self._nodes[position] = record
        self._changed.add(position)

    def turn(self, status: RunStatus, stamp: Stamp) -> None:
        """Let the run take another status at that moment, also if it is back at the stored one before it is written."""
        if status is not self.head.status:
            self.head.status = status
            self._turned = True
            self._finished_at = stamp.at if status in RUN_FINAL else None

    def log(self, stamp: Stamp, events: Sequence[NewEvent], limits: Limits) -> None:
        """Append to the run's log.

        Raises:
            HostlerError: invalid-data, for an event that is too large or holds what is no JSON value.

        """
        self._events += seal_events(self.head, stamp, events, limits)

    def node_rows(self) -> list[tuple[Any, ...]]:
        """Return what replaces the nodes that changed, which then count as stored."""
        rows = []
        for position in self._changed:
            record = self._nodes[position]
            data = encode(record)
            sha256 = digest_bytes(Domain.RECORD, data)
            rows.append((record.status._value_, data, sha256, row_id(self.head.run, position), self._digests[position]))
            self._digests[position] = sha256
        self._changed.clear()
        return rows

    def event_rows(self) -> list[tuple[int, bytes, str]]:
        """Return the events that are not stored yet, which then count as stored."""
        rows, self._events = self._events, []
        return rows

    def head_row(self) -> tuple[Any, ...]:
        """Return what replaces the head, which then counts as stored; `put_status` has the rest of it."""
        head, before = self.head, self._stored
        after = self._stored = _stored(head)
        return after[1], after[5], after[6], after[7], head.run, *before

    def put_status(self) -> None:
        """Store what indexes hold, which is rewritten only where it changes."""
        head = self.head
        if self._turned:
            self._turned = False
            self._connection.execute(
                "UPDATE runs SET status = ?, finished_at = ? WHERE run = ?",
                (head.status.value, self._finished_at, head.run),
            )
        if self.released:
            self._connection.execute("UPDATE runs SET host_id = NULL, token = NULL WHERE run = ?", (head.run,))


def write_back(connection: sqlite3.Connection, runs: Collection[Held]) -> None:
    """Store what changed in all of *runs*, inside a write transaction.

    Raises:
        OutdatedError: One of them is not as it was left.

    """
    _replace(connection, _REPLACE_HEAD, [run.head_row() for run in runs])
    _replace(connection, _REPLACE_NODE, [row for run in runs for row in run.node_rows()])
    connection.executemany(INSERT_EVENT, [row for run in runs for row in run.event_rows()])
    for run in runs:
        run.put_status()


def _stored(head: Head) -> tuple[Any, ...]:
    return (
        head.status._value_, head.started_at, head.generation, head.host_id, head.token,
        counts_text(head.counts), head.event_seq, head.event_sha256,
    )  # fmt: skip


def _replace(connection: sqlite3.Connection, statement: str, rows: list[tuple[Any, ...]]) -> None:
    if rows and connection.executemany(statement, rows).rowcount != len(rows):
        raise OutdatedError
