"""One fenced transaction of a run's owner, applied: everything is checked against the rows it touches, and no more."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from hostres.errors import Code, HostlerError
from store import lifecycle, transitions
from store.content import Content
from store.contracts import EventKind, NodeRecord
from store.faults import damaged
from store.grant_rows import check_grants, put_grants
from store.heads import Head, counts_text, read_head
from store.held import Held, OutdatedError, write_back
from store.ledger_rows import put_ledger
from store.lifecycle import FINAL, RESTING, RUN_FINAL, RunStatus, Status
from store.limits import Limits
from store.plans import GraphPlan
from store.receipt_rows import put_receipts
from store.records import decode, encode
from store.row_ids import next_id, row_id
from store.shapes import is_granted, revision_due, shape_of
from store.staged import Staged
from store.transactions import Fence, NewEvent, Output, Transaction
from store.values import Domain
from store.work import end_leases, put_leases

_ENDS: Final = FINAL | RESTING


_PUT_PLAN: Final = (
    "INSERT INTO node_plans (id, sha256, node, size, content)"  # noqa: S608 - names of our own
    f" VALUES ({next_id('node_plans')}, ?2, ?3, ?4, ?5) ON CONFLICT (sha256) DO NOTHING"
)
"""Behind those that were frozen before."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Writer:
    """Applies staged transactions inside a write transaction that somebody else begins and ends.

    Args:
        connection: From `database.open_writer`.
        content: Where large bytes lie.
        limits: What is taken.

    """

    def __init__(self, connection: sqlite3.Connection, content: Content, limits: Limits) -> None:
        self._connection = connection
        self._content = content
        self._limits = limits
        self._held: dict[str, Held] = {}
        self._touched: dict[str, Held] = {}

    def hold(self, head: Head, plan: GraphPlan, nodes: Sequence[NodeRecord], digests: Sequence[str]) -> None:
        """Keep a run that was just claimed, and verified whole, until it is released.

        Args:
            head: With the new claim.
            plan: Its plan.
            nodes: In the order of the plan.
            digests: Of their stored bytes, in the same order.

        """
        held = self._held[head.run_id] = Held(self._connection, head, shape_of(plan))
        held.know(nodes, digests)

    def apply(self, group: Iterable[Staged]) -> None:
        """Write all of *group*, or raise with part of it written: the caller rolls back and calls `forget`.

        Raises:
            HostlerError: conflict, for a stale fence or an illegal move; not-found; invalid-data.
            OutdatedError: The store is not as this process left it; without what is held the same may do.

        """
        for staged in group:
            self._apply(staged)
        write_back(self._connection, self._touched.values())
        for held in self._touched.values():
            if held.released:
                del self._held[held.head.run_id]
        self._touched.clear()

    def forget(self, group: Iterable[Staged]) -> None:
        """Let go of the runs of *group*; what is stored of them is read again."""
        self._touched.clear()
        for staged in group:
            self._held.pop(staged.transaction.fence.run_id, None)

    def _apply(self, staged: Staged) -> None:
        transaction = staged.transaction
        run = self._run(transaction.fence.run_id)
        head = run.head
        check_fence(head, transaction.fence)
        summed_up = counts_text(head.counts) if head.status in RUN_FINAL else None
        self._check_room(run, transaction)
        plans = self._put_plans(run, staged) if transaction.plans else _NOTHING
        outputs = self._put_outputs(run, staged) if transaction.outputs else _NOTHING
        if transaction.grants:
            put_grants(self._connection, head, transaction.grants)
        for record in transaction.nodes:
            self._put_node(run, record, plans, outputs, transaction)
        if transaction.grants:
            check_grants(run, transaction.grants)
        if transaction.receipts or transaction.grants:
            put_receipts(self._connection, head, transaction)
        if transaction.consumed:
            self._consume(head, transaction)
        if transaction.leases or transaction.unleased:
            self._put_leases(head, transaction)
        for ledger in transaction.ledgers:
            put_ledger(self._connection, run.head, run.shape.positions, ledger)
        self._put_head(run, staged, summed_up)

    def _run(self, run_id: str) -> Held:
        run = self._touched.get(run_id)
        if run is None:
            run = self._held.get(run_id)
            if run is None:
                run = self._held[run_id] = self._read(run_id)
            self._touched[run_id] = run
        elif run.released:
            raise OutdatedError
        return run

    def _read(self, run_id: str) -> Held:
        head = read_head(self._connection, run_id)
        sha256, inline = self._connection.execute(
            "SELECT p.sha256, p.content FROM runs AS r JOIN graph_plans AS p ON p.sha256 = r.plan_sha256"
            " WHERE r.run = ?",
            (head.run,),
        ).fetchone() or (None, None)
        if sha256 is None:
            raise damaged(f"graph plan of run {run_id}", "it is missing")
        what = f"graph plan {sha256}"
        plan = decode(GraphPlan, self._content.get(Domain.GRAPH_PLAN, sha256, inline, what), what)
        return Held(self._connection, head, shape_of(plan))

    def _check_room(self, run: Held, transaction: Transaction) -> None:
        """Refuse what would leave no room for the events that end the run."""
        head = run.head
        coming = len(transaction.events) + transaction.release
        if head.event_seq + coming <= self._limits.events - self._limits.events_kept - 2 * len(run.shape.positions):
            return
        ending = (
            transaction.release
            or transaction.summary is not None
            or (bool(transaction.nodes) and all(record.status in _ENDS for record in transaction.nodes))
        )
        if not ending or head.event_seq + coming > self._limits.events:
            raise HostlerError(
                Code.INVALID_DATA,
                f"run {head.run_id} has {head.event_seq} events, {self._limits.events} are allowed",
                "end it, and start a new one for what is left",
            )

    def _put_plans(self, run: Held, staged: Staged) -> dict[str, str]:
        """Store the plans; return digest → node of those that were not stored before."""
        head = run.head
        new = {}
        for frozen, inline in zip(staged.transaction.plans, staged.plans, strict=True):
            plan = frozen.plan
            if plan.run_id != head.run_id or plan.node not in run.shape.positions:
                what = f"plan {frozen.sha256} is for node {plan.node} of run {plan.run_id}"
                raise HostlerError(Code.CONFLICT, what, f"it cannot be stored in run {head.run_id}")
            stored = self._connection.execute(_PUT_PLAN, (head.run, frozen.sha256, plan.node, len(frozen.data), inline))
            if stored.rowcount == 1:
                new[frozen.sha256] = plan.node
            if inline is None:
                self._content.keep(frozen.sha256, frozen.data)
        return new

    def _put_outputs(self, run: Held, staged: Staged) -> dict[str, Output]:
        head = run.head
        named = {record.key: record.output_sha256 for record in staged.transaction.nodes}
        for output, inline in zip(staged.transaction.outputs, staged.outputs, strict=True):
            position = run.position(output.node)
            status = run.node(position).status
            if output.sha256 != named.get(output.node) or status in lifecycle.IMMUTABLE:
                stored = self._output_sha256(head, position)
                if status in lifecycle.IMMUTABLE and stored != output.sha256:
                    raise _illegal(head, output.node, f"it is {status} for ever")
                if output.sha256 not in (stored, named.get(output.node)):  # it would replace one that is named
                    raise _illegal(head, output.node, "its output is another one than its record names")
            self._connection.execute(
                "INSERT INTO outputs (id, sha256, size, content) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE"
                " SET sha256 = excluded.sha256, size = excluded.size, content = excluded.content",
                (row_id(head.run, position), output.sha256, len(output.data), inline),
            )
            if inline is None:
                self._content.keep(output.sha256, output.data)
        return {output.node: output for output in staged.transaction.outputs}

    def _output_sha256(self, head: Head, position: int) -> str | None:
        row = self._connection.execute(
            "SELECT sha256 FROM outputs WHERE id = ?", (row_id(head.run, position),)
        ).fetchone()
        return None if row is None else row[0]

    def _put_node(
        self,
        run: Held,
        record: NodeRecord,
        plans: Mapping[str, str],
        outputs: Mapping[str, Output],
        transaction: Transaction,
    ) -> None:
        head, shape = run.head, run.shape
        position = run.position(record.key)
        before = run.node(position)
        if record.status is before.status and record == before:
            return
        gate, grants = record.key in shape.gates, transaction.grants
        granted = bool(grants) and is_granted(before, shape, grants)
        revision = revision_due(before, grants) if grants else None
        reason = transitions.refusal(before, record, gate=gate, granted=granted, revision=revision)
        if reason is None:
            reason = self._plan_refusal(head, before, record, plans) or self._output_refusal(
                head, position, before, record, outputs, gate=gate
            )
        if reason is not None:
            raise _illegal(head, record.key, reason)
        run.replace_node(position, record)

    def _plan_refusal(self, head: Head, before: NodeRecord, after: NodeRecord, plans: Mapping[str, str]) -> str | None:
        for was, sha256 in (
            (before.preparation_sha256, after.preparation_sha256),
            (before.plan_sha256, after.plan_sha256),
        ):
            if sha256 in (None, was) or plans.get(sha256) == after.key:
                continue
            row = self._connection.execute("SELECT run, node FROM node_plans WHERE sha256 = ?", (sha256,)).fetchone()
            if row != (head.run, after.key):
                return f"its plan {sha256} is not stored"
        return None

    def _output_refusal(
        self,
        head: Head,
        position: int,
        before: NodeRecord,
        after: NodeRecord,
        outputs: Mapping[str, Output],
        *,
        gate: bool,
    ) -> str | None:
        if after.output_sha256 is None:
            due = (after.status is Status.COMPLETED and not gate) or after.status is Status.VERIFYING
            return "it has no output" if due else None
        given = outputs.get(after.key)
        if given is not None:
            return None if given.sha256 == after.output_sha256 else "its output is another one"
        if after.output_sha256 == before.output_sha256:
            return None
        stored = self._output_sha256(head, position)
        return None if stored == after.output_sha256 else f"its output {after.output_sha256} is not stored"

    def _consume(self, head: Head, transaction: Transaction) -> None:
        for request_id in transaction.consumed:
            changed = self._connection.execute(
                "UPDATE requests SET consumed_generation = ?"
                " WHERE request_id = ? AND run = ? AND consumed_generation IS NULL",
                (head.generation, request_id, head.run),
            ).rowcount
            if changed != 1:
                what = f"request {request_id} of run {head.run_id} does not wait for an answer"
                raise HostlerError(Code.CONFLICT, what, "it was answered before, or it is of another run")

    def _put_leases(self, head: Head, transaction: Transaction) -> None:
        if transaction.unleased:
            end_leases(self._connection, head.run, transaction.unleased)
        if transaction.leases:
            running = {record.key: record.attempt for record in transaction.nodes if record.status is Status.RUNNING}
            for lease in transaction.leases:
                if running.get(lease.node) != lease.attempt:
                    raise _illegal(head, lease.node, f"it is leased for attempt {lease.attempt}, which does not start")
            put_leases(self._connection, head.run, transaction.leases, transaction.stamp)

    def _put_head(self, run: Held, staged: Staged, summed_up: str | None) -> None:
        """Store where the run stands.

        Args:
            run: The run.
            staged: The transaction, its nodes put already.
            summed_up: What its nodes were before this transaction, others of its group included, if it had ended.

        """
        head, transaction = run.head, staged.transaction
        if transaction.started and head.started_at is None:
            head.started_at = transaction.stamp.at
        run.turn(_status_after(head, transaction), transaction.stamp)
        if staged.summary is not None:
            self._put_summary(head, transaction, staged.summary)
        elif summed_up is not None and summed_up != counts_text(head.counts):
            self._connection.execute("DELETE FROM summaries WHERE run = ?", (head.run,))  # its nodes say otherwise now
        events = transaction.events
        if transaction.release:
            run.released = True
            released = {"generation": head.generation, "host": head.host_id}
            events = (*events, NewEvent(kind=EventKind.RUN_RELEASED, data=released))
        run.log(transaction.stamp, events, self._limits)

    def _put_summary(self, head: Head, transaction: Transaction, staged: tuple[int, str, bytes | None]) -> None:
        summary = transaction.summary
        assert summary is not None
        if head.status not in RUN_FINAL:
            what = f"run {head.run_id} is {head.status}; only one that has ended has a summary"
            raise HostlerError(Code.CONFLICT, what, "start again from the store")
        if summary.status is not head.status or dict(summary.counts) != lifecycle.counts(head.counts):
            raise HostlerError(
                Code.CONFLICT,
                f"the summary of run {head.run_id} says {summary.status}, its nodes say {head.status}",
                "start again from the store",
            )
        size, sha256, inline = staged
        self._connection.execute(
            "INSERT OR REPLACE INTO summaries (run, sha256, size, content) VALUES (?, ?, ?, ?)",
            (head.run, sha256, size, inline),
        )
        if inline is None:
            self._content.keep(sha256, encode(summary))


def check_fence(head: Head, fence: Fence) -> None:
    """Refuse a write that was not made under the claim in force.

    Raises:
        HostlerError: conflict.

    """
    if (head.host_id, head.generation, head.token) != (fence.host_id, fence.generation, fence.token):
        raise HostlerError(
            Code.CONFLICT,
            f"claim {fence.generation} on run {head.run_id} is no longer in force; the last one is {head.generation}",
            "whoever owns it now goes on with it",
        )


def _illegal(head: Head, node: str, reason: str) -> HostlerError:
    return HostlerError(Code.CONFLICT, f"node {node} of run {head.run_id}: {reason}", "start again from what is stored")


def _status_after(head: Head, transaction: Transaction) -> RunStatus:
    started = head.started_at is not None
    derived = lifecycle.run_status(head.counts, started=started)
    if derived is (transaction.status or head.status):
        return derived
    # whether budgets still let a ready node go is not in the records of nodes
    possible = (derived, lifecycle.run_status_without_budget(head.counts, started=started))
    wanted = transaction.status or (head.status if head.status in possible else derived)
    if wanted in possible:
        return wanted
    raise HostlerError(
        Code.CONFLICT,
        f"run {head.run_id} cannot become {wanted}: its nodes say {derived}",
        "start again from the store",
    )
