"""Taking a run: its identity is verified whole once, here; after that every write is checked by itself."""

import os
import secrets
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Final

import orjson
from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store import chain, lifecycle
from store.budgets import is_limited
from store.clock import Stamp
from store.content import Content
from store.contracts import EventKind, Grant, NodeRecord, RunRecord
from store.faults import damaged
from store.heads import Head, append_events, read_head
from store.home import Home
from store.hosts import host_alive
from store.lazy_dataclass import dataclass
from store.leases import HeldLease
from store.ledger_rows import load_ledgers
from store.ledgers import Ledger
from store.lifecycle import IMMUTABLE, Status
from store.limits import Limits
from store.plans import GraphPlan, NodePlan
from store.receipts import Receipt
from store.records import decode, verified
from store.requests import waiting
from store.row_ids import of_run
from store.transactions import Claimed, Fence, NewEvent
from store.values import Domain, digest
from store.work import held_leases

_TOKEN_BYTES: Final = 16
Known = tuple[str, GraphPlan]
"""The digest of the canonical bytes of a plan, and that plan."""
_STANDS: Final = frozenset({Status.COMPLETED, Status.VERIFYING, Status.BLOCKED})
"""Where a result that the record names is still needed."""


class OwnedError(HostlerError):
    """A run has an owner that lives: conflict, for as long as that one has it."""


def refuse_if_owned(home: Home, connection: sqlite3.Connection, head: Head, *, again: str | None) -> None:
    """Refuse a run whose owner lives, however old its claim is.

    Args:
        home: The store.
        connection: Inside a transaction.
        head: The run.
        again: The host that may take a run of its own anew.

    Raises:
        OwnedError: conflict, naming the owner.

    """
    if head.host_id in (None, again) or not host_alive(home, head.host_id):
        return
    pid, since = connection.execute("SELECT pid, since FROM hosts WHERE host_id = ?", (head.host_id,)).fetchone()
    raise OwnedError(
        Code.CONFLICT,
        f"run {head.run_id} is worked on by {head.host_id} (pid {pid}, since {since})",
        f"follow it with `hostler watch {head.run_id}`, or end that program and resume",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A run in one snapshot, everything in it verified."""

    head: Head
    record: RunRecord
    plan: GraphPlan
    nodes: tuple[NodeRecord, ...]
    digests: tuple[str, ...]
    outputs: dict[str, JsonValue]
    plans: dict[str, NodePlan]
    grants: tuple[Grant, ...]
    ledgers: tuple[Ledger, ...]
    receipts: tuple[Receipt, ...]

    def claimed(self, connection: sqlite3.Connection, fence: Fence, stamp: Stamp) -> Claimed:
        """Return what the new owner gets, with what was asked of the run until now."""
        return Claimed(
            fence=fence,
            record=self.record,
            plan=self.plan,
            status=self.head.status,
            started_at=self.head.started_at,
            nodes=self.nodes,
            outputs=self.outputs,
            plans=self.plans,
            grants=self.grants,
            requests=tuple(waiting(connection, self.head.run)),
            leases=self._leases(connection, stamp),
            ledgers=self.ledgers,
            receipts=self.receipts,
        )

    def _leases(self, connection: sqlite3.Connection, stamp: Stamp) -> tuple[HeldLease, ...]:
        leases = held_leases(connection, self.head.run, stamp)
        if leases:
            running = {node.key: node.attempt for node in self.nodes if node.status is Status.RUNNING}
            for lease in leases:
                if running.get(lease.node) != lease.attempt:
                    what = f"lease of node {lease.node} of run {self.head.run_id}"
                    raise damaged(what, f"it is for attempt {lease.attempt}, which does not run")
        return leases


def take(connection: sqlite3.Connection, head: Head, host_id: str, stamp: Stamp, limits: Limits) -> Fence:
    """Claim a run for a host, inside a write transaction; a dead owner loses its claims on all runs.

    Args:
        connection: The connection.
        head: The run, owned by nobody who lives, or by that host itself; moved on to the new claim.
        host_id: Who takes it.
        stamp: When.
        limits: What is taken.

    """
    if head.host_id != host_id:
        connection.execute("UPDATE runs SET host_id = NULL, token = NULL WHERE host_id = ?", (head.host_id,))
    connection.execute(
        "INSERT INTO hosts (host_id, pid, since) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (host_id, os.getpid(), stamp.at),
    )
    fence = Fence(
        run_id=head.run_id,
        host_id=host_id,
        generation=head.generation + 1,
        token=secrets.token_hex(_TOKEN_BYTES),
    )
    data: dict[str, JsonValue] = {
        "generation": fence.generation,
        "host": host_id,
        "token_sha256": digest(Domain.RECORD, fence.token),
    }
    if head.host_id not in (None, host_id):
        data["dead"] = head.host_id
    append_events(connection, head, stamp, [NewEvent(kind=EventKind.RUN_CLAIMED, data=data)], limits)
    connection.execute(
        "UPDATE runs SET generation = ?, host_id = ?, token = ?, event_seq = ?, event_sha256 = ? WHERE run = ?",
        (fence.generation, host_id, fence.token, head.event_seq, head.event_sha256, head.run),
    )
    head.generation, head.host_id, head.token = fence.generation, host_id, fence.token
    return fence


def load(connection: sqlite3.Connection, content: Content, run_id: str, known: Known | None = None) -> Loaded:
    """Read a run and verify it: record, plan, bundle, nodes, node plans, outputs, grants, ledgers, log.

    Args:
        connection: Inside a transaction.
        content: Where large bytes lie.
        run_id: The run.
        known: A plan that need not be made of its bytes anew; that these have its digest is verified all the same.

    Raises:
        HostlerError: not-found; invalid-data, naming what is damaged.

    """
    head = read_head(connection, run_id)
    record = _record(connection, head)
    plan = _plan(connection, content, head, record, known)
    _check_bundle(connection, content, head, record)
    nodes, digests = _nodes(connection, head, plan)
    plans = _node_plans(connection, content, head, nodes)
    _check_log(connection, head)
    by_key = {record.key: record for record in nodes}
    return Loaded(
        head=head,
        record=record,
        plan=plan,
        nodes=nodes,
        digests=digests,
        outputs=_outputs(connection, content, head, nodes),
        plans=plans,
        grants=load_grants(connection, head.run),
        ledgers=load_ledgers(connection, head, by_key, limited=is_limited(plan)),
        receipts=load_receipts(connection, head.run),
    )


def _record(connection: sqlite3.Connection, head: Head) -> RunRecord:
    data, sha256, plan_sha256, bundle_sha256 = connection.execute(
        "SELECT record, sha256, plan_sha256, bundle_sha256 FROM runs WHERE run = ?", (head.run,)
    ).fetchone()
    what = f"record of run {head.run_id}"
    record = decode(RunRecord, verified(Domain.RECORD, data, sha256, what), what)
    if (record.run_id, record.plan_sha256, record.bundle_sha256) != (head.run_id, plan_sha256, bundle_sha256):
        raise damaged(what, "its columns do not match it")
    return record


def _plan(
    connection: sqlite3.Connection, content: Content, head: Head, record: RunRecord, known: Known | None
) -> GraphPlan:
    what = f"graph plan {record.plan_sha256} of run {head.run_id}"
    row = connection.execute("SELECT content FROM graph_plans WHERE sha256 = ?", (record.plan_sha256,)).fetchone()
    if row is None:
        raise damaged(what, "it is missing")
    data = content.get(Domain.GRAPH_PLAN, record.plan_sha256, row[0], what)
    if known is not None and known[0] == record.plan_sha256:
        return known[1]
    return decode(GraphPlan, data, what)


def _check_bundle(connection: sqlite3.Connection, content: Content, head: Head, record: RunRecord) -> None:
    if record.bundle_sha256 is None:
        return
    what = f"code bundle {record.bundle_sha256} of run {head.run_id}"
    row = connection.execute("SELECT content FROM bundles WHERE sha256 = ?", (record.bundle_sha256,)).fetchone()
    if row is None:
        raise damaged(what, "it is missing")
    content.get(Domain.BUNDLE, record.bundle_sha256, row[0], what)


def _nodes(
    connection: sqlite3.Connection, head: Head, plan: GraphPlan
) -> tuple[tuple[NodeRecord, ...], tuple[str, ...]]:
    records, digests = [], []
    with _closed(connection, of_run("key, status, record, sha256", "nodes"), head.run) as rows:
        for key, status, data, sha256 in rows:
            what = f"record of node {key} of run {head.run_id}"
            record = decode(NodeRecord, verified(Domain.RECORD, data, sha256, what), what)
            if (record.key, record.status) != (key, status):
                raise damaged(what, "its columns do not match it")
            records.append(record)
            digests.append(sha256)
    if [record.key for record in records] != [node.key for node in plan.nodes]:
        raise damaged(f"set of nodes of run {head.run_id}", "it is not the plan's")
    _check_counts(head, Counter(record.status for record in records))
    return tuple(records), tuple(digests)


def _check_counts(head: Head, counts: Counter[Status]) -> None:
    if counts != Counter({status: number for status, number in head.counts.items() if number}):
        raise damaged(f"count of nodes of run {head.run_id}", "it is not what its nodes add up to")
    derived = lifecycle.run_status(counts, started=head.started_at is not None)
    if head.status not in (derived, lifecycle.run_status_without_budget(counts, started=head.started_at is not None)):
        raise damaged(f"status of run {head.run_id}", f"it says {head.status}, its nodes say {derived}")


def _node_plans(
    connection: sqlite3.Connection, content: Content, head: Head, nodes: tuple[NodeRecord, ...]
) -> dict[str, NodePlan]:
    """Verify every stored plan, and return the last one of each node that may still go on."""
    named = {
        sha256: record
        for record in nodes
        for sha256 in (record.preparation_sha256, record.plan_sha256)
        if sha256 is not None
    }
    plans: dict[str, NodePlan] = {}
    with _closed(connection, of_run("sha256, node, content", "node_plans"), head.run) as rows:
        for sha256, node, inline in rows:
            what = f"plan {sha256} of node {node} of run {head.run_id}"
            data = content.get(Domain.NODE_PLAN, sha256, inline, what)
            record = named.get(sha256)
            if record is None or record.key != node:
                continue
            del named[sha256]
            if record.frozen_sha256 == sha256 and record.status not in IMMUTABLE:
                plans[node] = decode(NodePlan, data, what)
    for sha256, record in named.items():
        raise damaged(f"plan {sha256} of node {record.key} of run {head.run_id}", "it is missing")
    return plans


def _outputs(
    connection: sqlite3.Connection, content: Content, head: Head, nodes: tuple[NodeRecord, ...]
) -> dict[str, JsonValue]:
    outputs: dict[str, JsonValue] = {}
    with _closed(connection, of_run("position, sha256, content", "outputs"), head.run) as rows:
        for position, sha256, inline in rows:
            if not 0 <= position < len(nodes):
                raise damaged(f"output {position} of run {head.run_id}", "it belongs to no node")
            record = nodes[position]
            if record.status in _STANDS and record.output_sha256 == sha256:
                what = f"output of node {record.key} of run {head.run_id}"
                outputs[record.key] = load_value(content, sha256, inline, what)
    for record in nodes:
        if record.status in _STANDS and record.output_sha256 is not None and record.key not in outputs:
            raise damaged(f"output of node {record.key} of run {head.run_id}", "it is missing")
    return outputs


def load_value(content: Content, sha256: str, inline: bytes | None, what: str) -> JsonValue:
    """Return a stored output, its digest verified.

    Raises:
        HostlerError: invalid-data, naming *what*.

    """
    try:
        value: JsonValue = orjson.loads(content.get(Domain.OUTPUT, sha256, inline, what))
    except orjson.JSONDecodeError as error:
        raise damaged(what, f"it is not JSON: {error}") from None
    return value


def load_grants(connection: sqlite3.Connection, run: int) -> tuple[Grant, ...]:
    """Return the grants of a run, oldest first, their digests verified.

    Raises:
        HostlerError: invalid-data, naming the grant.

    """
    with _closed(connection, "SELECT grant_id, record, sha256 FROM grants WHERE run = ? ORDER BY rowid", run) as rows:
        return tuple(
            decode(Grant, verified(Domain.RECORD, data, sha256, f"grant {grant_id}"), f"grant {grant_id}")
            for grant_id, data, sha256 in rows
        )


def load_receipts(connection: sqlite3.Connection, run: int) -> tuple[Receipt, ...]:
    """Return the receipts of a run, oldest first, their digests verified.

    Raises:
        HostlerError: invalid-data, naming the receipt.

    """
    with _closed(
        connection, "SELECT receipt_id, record, sha256 FROM receipts WHERE run = ? ORDER BY rowid", run
    ) as rows:
        return tuple(
            decode(Receipt, verified(Domain.RECORD, data, sha256, f"receipt {name}"), f"receipt {name}")
            for name, data, sha256 in rows
        )


def _closed(connection: sqlite3.Connection, query: str, run: int) -> closing[sqlite3.Cursor]:
    """Return the rows of a run, closed at the end of the block also if one of them is refused.

    Whoever keeps the error would else keep the cursor, and with it a snapshot under which nothing more can be written.
    """
    return closing(connection.execute(query, (run,)))


def _check_log(connection: sqlite3.Connection, head: Head) -> None:
    row = connection.execute(of_run("event, sha256", "events") + " DESC LIMIT 1", (head.run,)).fetchone()
    what = f"log of run {head.run_id}"
    if row is None:
        raise damaged(what, "it is empty")
    event = chain.unseal(row[0], row[1], run_id=head.run_id, seq=head.event_seq, prev_sha256=None)
    if event.sha256 != head.event_sha256:
        raise damaged(what, f"it does not end with {head.event_sha256}")
