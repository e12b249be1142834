"""A new run: checked whole, then written whole."""

import sqlite3
from collections import Counter
from typing import Final

from hostres.errors import Code, HostlerError
from store.activation import early
from store.chain import GENESIS
from store.clock import Stamp
from store.contracts import EventKind, NodeRecord, RunRecord
from store.delegation import delegation_fault
from store.envelopes import problems
from store.heads import Head, append_events, counts_text
from store.lifecycle import RunStatus, Status
from store.limits import Limits
from store.plans import GraphPlan, PlannedNode
from store.records import decode, encode, verified
from store.references import references
from store.row_ids import row_id
from store.service import entrust
from store.transactions import NewEvent
from store.values import Domain, digest_bytes

_DIFFERENT: Final = {
    "workflow": "workflow",
    "plan_sha256": "plan or other inputs",
    "bundle_sha256": "version of its code",
    "folder": "folder",
}


def _refuse(record: RunRecord, why: str, todo: str = "compile the workflow again") -> HostlerError:
    return HostlerError(Code.INVALID_DATA, f"run {record.run_id} cannot be created: {why}", todo)


def check_new(record: RunRecord, plan: GraphPlan, plan_data: bytes, bundle: bytes | None, limits: Limits) -> None:
    """Check that a record, its plan and its bundle belong together and are within bounds.

    Args:
        record: What the run is.
        plan: What it does.
        plan_data: The plan's canonical bytes.
        bundle: Its code, if it has any.
        limits: What is taken.

    Raises:
        HostlerError: invalid-data, saying which of it is wrong.

    """
    if len(plan_data) > limits.value_bytes:
        too_large = f"its plan has {len(plan_data)} bytes, {limits.value_bytes} are allowed"
        raise _refuse(record, too_large, "give it smaller inputs, or files instead")
    if digest_bytes(Domain.GRAPH_PLAN, plan_data) != record.plan_sha256:
        raise _refuse(record, f"its plan does not have the digest {record.plan_sha256}")
    if (plan.workflow, plan.version) != (record.workflow, record.workflow_version):
        raise _refuse(record, f"its plan is of {plan.workflow} {plan.version}")
    _check_bundle(record, plan, bundle, limits)
    _check_nodes(record, plan)


def _check_bundle(record: RunRecord, plan: GraphPlan, bundle: bytes | None, limits: Limits) -> None:
    if (bundle is None) != (record.bundle_sha256 is None):
        raise _refuse(record, "it names a code bundle that is not given, or is given one that it does not name")
    if bundle is not None:
        if len(bundle) > limits.bundle_bytes:
            too_large = f"its code has {len(bundle)} bytes, {limits.bundle_bytes} are allowed"
            raise _refuse(record, too_large, "move data out of the workflow's folder")
        if digest_bytes(Domain.BUNDLE, bundle) != record.bundle_sha256:
            raise _refuse(record, f"its code does not have the digest {record.bundle_sha256}")
    if plan.bundle_sha256 not in (None, record.bundle_sha256):
        raise _refuse(record, f"its plan is of other code, {plan.bundle_sha256}")


def _check_nodes(record: RunRecord, plan: GraphPlan) -> None:
    seen: set[str] = set()
    for node in plan.nodes:
        if node.key in seen:
            raise _refuse(record, f"its plan has two nodes {node.key}")
        missing = [key for key in node.dependencies if key not in seen]
        if missing:
            raise _refuse(record, f"node {node.key} does not come after {', '.join(missing)}")
        unnamed = {reference.node for reference in references(node.input)}.difference(node.dependencies)
        if unnamed:
            raise _refuse(
                record, f"node {node.key} refers to {', '.join(sorted(unnamed))}, on which it does not depend"
            )
        seen.add(node.key)
    fault = delegation_fault(plan.nodes)
    if fault is not None:
        raise _refuse(record, f"node {fault[0]}: {fault[1]}")
    beyond = next(problems(plan.nodes, record.folder), None)
    if beyond is not None:
        raise _refuse(record, beyond, "keep what a node may do within what its parent may")
    too_early = early(plan)
    if too_early is not None:
        raise _refuse(record, f"node {too_early} does not wait for its activation gates alone, or for all of them")


def submitted(connection: sqlite3.Connection, record: RunRecord) -> str | None:
    """Return the run that was asked for under the same name before, None if there is none.

    Args:
        connection: Inside a transaction.
        record: What is asked for now.

    Raises:
        HostlerError: conflict, if it is another one than what is asked for now; invalid-data.

    """
    if record.submission is None:
        return None
    row = connection.execute(
        "SELECT run_id, record, sha256 FROM runs WHERE submission = ?", (record.submission,)
    ).fetchone()
    if row is None:
        return None
    run_id, data, sha256 = row
    what = f"record of run {run_id}"
    before = decode(RunRecord, verified(Domain.RECORD, data, sha256, what), what)
    for name in ("workflow", "plan_sha256", "bundle_sha256", "folder"):
        if getattr(before, name) != getattr(record, name):
            raise HostlerError(
                Code.CONFLICT,
                f"{record.submission!r} was asked for before, as run {run_id}, with another {_DIFFERENT[name]}",
                "ask for the same again, or under another key",
            )
    return before.run_id


def _first_record(node: PlannedNode) -> NodeRecord:
    return NodeRecord(key=node.key, status=Status.PENDING if node.dependencies else Status.READY)


def insert_run(
    connection: sqlite3.Connection,
    *,
    record: RunRecord,
    plan: GraphPlan,
    plan_row: tuple[int, bytes | None],
    bundle_row: tuple[int, bytes | None] | None,
    stamp: Stamp,
    limits: Limits,
    entrusted: bool,
) -> None:
    """Write a checked run inside a write transaction.

    Args:
        connection: The connection.
        record: What it is.
        plan: What it does.
        plan_row: Size and row content of its plan.
        bundle_row: The same of its code bundle.
        stamp: When.
        limits: What is taken.
        entrusted: Whether it is left to the background service.

    Raises:
        HostlerError: conflict, if there is such a run already.

    """
    if connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (record.run_id,)).fetchone():
        raise HostlerError(Code.CONFLICT, f"there is a run {record.run_id} already", "give the new one its own id")
    for table, sha256, row in (
        ("graph_plans", record.plan_sha256, plan_row),
        ("bundles", record.bundle_sha256, bundle_row),
    ):
        if row is not None:
            connection.execute(
                f"INSERT INTO {table} (sha256, size, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",  # noqa: S608 - two names of our own
                (sha256, *row),
            )
    records = [_first_record(node) for node in plan.nodes]
    counts = Counter(one.status for one in records)
    data = encode(record)
    run = connection.execute(
        "INSERT INTO runs (run_id, workflow, plan_sha256, bundle_sha256, created_at, record, sha256, status,"
        " counts, event_seq, event_sha256, submission) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
        (
            record.run_id, record.workflow, record.plan_sha256, record.bundle_sha256, record.created_at, data,
            digest_bytes(Domain.RECORD, data), RunStatus.PLANNED.value, counts_text(counts), GENESIS,
            record.submission,
        ),
    ).lastrowid  # fmt: skip
    assert run is not None
    _insert_nodes(connection, run, records)
    if entrusted:
        entrust(connection, run)
    head = Head(
        run=run, run_id=record.run_id, status=RunStatus.PLANNED, started_at=None, generation=0, host_id=None,
        token=None, counts=dict(counts), event_seq=0, event_sha256=GENESIS,
    )  # fmt: skip
    created = NewEvent(
        kind=EventKind.RUN_CREATED,
        principal=record.principal,
        data={
            "workflow": record.workflow,
            "version": record.workflow_version,
            "plan_sha256": record.plan_sha256,
            "nodes": len(records),
        },
    )
    append_events(connection, head, stamp, [created], limits)
    connection.execute(
        "UPDATE runs SET event_seq = ?, event_sha256 = ? WHERE run = ?", (head.event_seq, head.event_sha256, run)
    )


def _insert_nodes(connection: sqlite3.Connection, run: int, records: list[NodeRecord]) -> None:
    rows = []
    for position, record in enumerate(records):
        data = encode(record)
        rows.append((row_id(run, position), record.key, record.status.value, data, digest_bytes(Domain.RECORD, data)))
    connection.executemany("INSERT INTO nodes (id, key, status, record, sha256) VALUES (?, ?, ?, ?, ?)", rows)
