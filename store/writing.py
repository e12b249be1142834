"""One fenced transaction of a run's owner, applied: everything is checked against the rows it touches, and no more."""

import sqlite3
from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NoReturn

from hostres.errors import Code, HostlerError
from store import lifecycle, transitions
from store.content import Content
from store.contracts import EventKind, Grant, GrantAction, NodeRecord
from store.heads import Head, append_events, counts_text, read_head
from store.lifecycle import FINAL, RESTING, RUN_FINAL, RunStatus, Status
from store.limits import Limits
from store.records import damaged, decode, encode, verified
from store.shapes import Shape, is_granted, shape_of
from store.staged import Staged
from store.transactions import Fence, NewEvent, Output, Transaction
from store.values import Domain, digest_bytes

_ENDS: Final = FINAL | RESTING
_BOUND_TO: Final[Mapping[GrantAction, str]] = MappingProxyType({
    GrantAction.PREPARATION: "preparation_sha256",
    GrantAction.EFFECT: "plan_sha256",
    GrantAction.GATE: "plan_sha256",
    GrantAction.REPLAY: "plan_sha256",
})  # fmt: skip
"""Which plan of its node a grant must name."""
_SHAPES_KEPT: Final = 64


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
        self._shapes: OrderedDict[str, Shape] = OrderedDict()

    def apply(self, staged: Staged) -> None:
        """Write all of one transaction, or raise with part of it written: the caller rolls back.

        Raises:
            HostlerError: conflict, for a stale fence or an illegal move; not-found; invalid-data.

        """
        transaction = staged.transaction
        head = read_head(self._connection, transaction.fence.run_id)
        check_fence(head, transaction.fence)
        self._check_room(head, transaction)
        shape = self._shape(head)
        counted = dict(head.counts)
        self._put_plans(head, shape, staged)
        outputs = self._put_outputs(head, shape, staged)
        grants = self._put_grants(head, transaction.grants)
        for record in transaction.nodes:
            self._put_node(head, shape, record, outputs, grants)
        self._check_grants(head, shape, transaction.grants)
        self._consume(head, transaction)
        self._put_head(head, staged, counted)

    def _check_room(self, head: Head, transaction: Transaction) -> None:
        """Refuse what would leave no room for the events that end the run."""
        coming = len(transaction.events) + transaction.release
        ending = (
            transaction.release
            or transaction.summary is not None
            or (bool(transaction.nodes) and all(record.status in _ENDS for record in transaction.nodes))
        )
        kept = 0 if ending else self._limits.events_kept + 2 * sum(head.counts.values())
        if head.event_seq + coming > max(0, self._limits.events - kept):
            raise HostlerError(
                Code.INVALID_DATA,
                f"run {head.run_id} has {head.event_seq} events, {self._limits.events} are allowed",
                "end it, and start a new one for what is left",
            )

    def _shape(self, head: Head) -> Shape:
        shape = self._shapes.get(head.run_id)
        if shape is None:
            sha256, inline = self._connection.execute(
                "SELECT p.sha256, p.content FROM runs AS r JOIN graph_plans AS p ON p.sha256 = r.plan_sha256"
                " WHERE r.run = ?",
                (head.run,),
            ).fetchone() or (None, None)
            if sha256 is None:
                raise damaged(f"graph plan of run {head.run_id}", "it is missing")
            data = self._content.get(Domain.GRAPH_PLAN, sha256, inline, f"graph plan {sha256}")
            shape = self._shapes[head.run_id] = shape_of(data)
            if len(self._shapes) > _SHAPES_KEPT:
                self._shapes.popitem(last=False)
        return shape

    def _put_plans(self, head: Head, shape: Shape, staged: Staged) -> None:
        for frozen, inline in zip(staged.transaction.plans, staged.plans, strict=True):
            plan = frozen.plan
            if plan.run_id != head.run_id or plan.node not in shape.positions:
                what = f"plan {frozen.sha256} is for node {plan.node} of run {plan.run_id}"
                raise HostlerError(Code.CONFLICT, what, f"it cannot be stored in run {head.run_id}")
            self._connection.execute(
                "INSERT INTO node_plans (sha256, run, node, size, content) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (frozen.sha256, head.run, plan.node, len(frozen.data), inline),
            )

    def _put_outputs(self, head: Head, shape: Shape, staged: Staged) -> dict[str, Output]:
        named = {record.key: record.output_sha256 for record in staged.transaction.nodes}
        for output, inline in zip(staged.transaction.outputs, staged.outputs, strict=True):
            position = _position(head, shape, output.node)
            stored = self._connection.execute(
                "SELECT n.status, o.sha256 FROM nodes AS n"
                " LEFT JOIN outputs AS o ON o.run = n.run AND o.position = n.position"
                " WHERE n.run = ? AND n.position = ?",
                (head.run, position),
            ).fetchone() or _gone(head, output.node)
            if stored[0] in lifecycle.IMMUTABLE and stored[1] != output.sha256:
                raise _illegal(head, output.node, f"it is {stored[0]} for ever")
            if output.sha256 not in (stored[1], named.get(output.node)):  # it would replace one that is named
                raise _illegal(head, output.node, "its output is another one than its record names")
            self._connection.execute(
                "INSERT INTO outputs (run, position, sha256, size, content) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (run, position) DO UPDATE"
                " SET sha256 = excluded.sha256, size = excluded.size, content = excluded.content",
                (head.run, position, output.sha256, len(output.data), inline),
            )
        return {output.node: output for output in staged.transaction.outputs}

    def _put_grants(self, head: Head, grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        for grant in grants:
            if grant.run_id != head.run_id:
                what = f"grant {grant.grant_id} is for run {grant.run_id}"
                raise HostlerError(Code.CONFLICT, what, f"it does not count in run {head.run_id}")
            data = encode(grant)
            stored = self._connection.execute(
                "SELECT record FROM grants WHERE grant_id = ?", (grant.grant_id,)
            ).fetchone()
            if stored is None:
                self._connection.execute(
                    "INSERT INTO grants (grant_id, run, record, sha256) VALUES (?, ?, ?, ?)",
                    (grant.grant_id, head.run, data, digest_bytes(Domain.RECORD, data)),
                )
            elif stored[0] != data:
                what = f"there is another grant {grant.grant_id} already"
                raise HostlerError(Code.CONFLICT, what, "give each grant its own id")
        return grants

    def _put_node(
        self,
        head: Head,
        shape: Shape,
        record: NodeRecord,
        outputs: Mapping[str, Output],
        grants: tuple[Grant, ...],
    ) -> None:
        position = _position(head, shape, record.key)
        row = self._connection.execute(
            "SELECT record, sha256 FROM nodes WHERE run = ? AND position = ?", (head.run, position)
        ).fetchone() or _gone(head, record.key)
        what = f"record of node {record.key} of run {head.run_id}"
        stored = verified(Domain.RECORD, row[0], row[1], what)
        data = encode(record)
        if data == stored:
            return
        before = decode(NodeRecord, stored, what)
        gate = record.key in shape.gates
        granted = is_granted(before, shape, grants)
        reason = transitions.refusal(before, record, gate=gate, granted=granted)
        if reason is None:
            reason = self._plan_refusal(head, before, record) or self._output_refusal(
                head, position, before, record, outputs, gate=gate
            )
        if reason is not None:
            raise _illegal(head, record.key, reason)
        self._connection.execute(
            "UPDATE nodes SET status = ?, record = ?, sha256 = ? WHERE run = ? AND position = ?",
            (record.status.value, data, digest_bytes(Domain.RECORD, data), head.run, position),
        )
        head.counts[before.status] -= 1
        head.counts[record.status] = head.counts.get(record.status, 0) + 1

    def _plan_refusal(self, head: Head, before: NodeRecord, after: NodeRecord) -> str | None:
        for was, sha256 in (
            (before.preparation_sha256, after.preparation_sha256),
            (before.plan_sha256, after.plan_sha256),
        ):
            if sha256 in (None, was):
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
            return "it has no output" if after.status is Status.COMPLETED and not gate else None
        given = outputs.get(after.key)
        if given is not None:
            return None if given.sha256 == after.output_sha256 else "its output is another one"
        if after.output_sha256 == before.output_sha256:
            return None
        row = self._connection.execute(
            "SELECT sha256 FROM outputs WHERE run = ? AND position = ?", (head.run, position)
        ).fetchone()
        return None if row == (after.output_sha256,) else f"its output {after.output_sha256} is not stored"

    def _check_grants(self, head: Head, shape: Shape, grants: tuple[Grant, ...]) -> None:
        """Refuse a grant for another plan than the one that its node has, before it can ever count."""
        for grant in grants:
            position = _position(head, shape, grant.node)
            field = _BOUND_TO.get(grant.action)
            if field is None:
                continue
            row = self._connection.execute(
                "SELECT record, sha256 FROM nodes WHERE run = ? AND position = ?", (head.run, position)
            ).fetchone() or _gone(head, grant.node)
            what = f"record of node {grant.node} of run {head.run_id}"
            node = decode(NodeRecord, verified(Domain.RECORD, row[0], row[1], what), what)
            plan_sha256 = getattr(node, field)
            if grant.plan_sha256 is None or grant.plan_sha256 != plan_sha256:
                what = f"grant {grant.grant_id} is for plan {grant.plan_sha256}; node {grant.node} has {plan_sha256}"
                raise HostlerError(Code.CONFLICT, what, f"see `hostler show {head.run_id}` for what waits")

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

    def _put_head(self, head: Head, staged: Staged, counted: Mapping[Status, int]) -> None:
        transaction = staged.transaction
        if transaction.started and head.started_at is None:
            head.started_at = transaction.stamp.at
            self._connection.execute("UPDATE runs SET started_at = ? WHERE run = ?", (head.started_at, head.run))
        status = _status_after(head, transaction)
        if status is not head.status:
            self._connection.execute(
                "UPDATE runs SET status = ?, finished_at = ? WHERE run = ?",
                (status.value, transaction.stamp.at if status in RUN_FINAL else None, head.run),
            )
        if staged.summary is not None:
            self._put_summary(head, transaction, status, staged.summary)
        elif head.status in RUN_FINAL and (
            status is not head.status or counts_text(head.counts) != counts_text(counted)
        ):
            self._connection.execute("DELETE FROM summaries WHERE run = ?", (head.run,))  # its nodes say otherwise now
        events = transaction.events
        if transaction.release:
            released = {"generation": head.generation, "host": head.host_id}
            events = (*events, NewEvent(kind=EventKind.RUN_RELEASED, data=released))
            self._connection.execute("UPDATE runs SET host_id = NULL, token = NULL WHERE run = ?", (head.run,))
        append_events(self._connection, head, transaction.stamp, events, self._limits)
        self._connection.execute(
            "UPDATE runs SET counts = ?, event_seq = ?, event_sha256 = ? WHERE run = ?",
            (counts_text(head.counts), head.event_seq, head.event_sha256, head.run),
        )

    def _put_summary(
        self, head: Head, transaction: Transaction, status: RunStatus, staged: tuple[int, str, bytes | None]
    ) -> None:
        summary = transaction.summary
        assert summary is not None
        if status not in RUN_FINAL:
            what = f"run {head.run_id} is {status}; only one that has ended has a summary"
            raise HostlerError(Code.CONFLICT, what, "start again from the store")
        if summary.status is not status or dict(summary.counts) != lifecycle.counts(head.counts):
            raise HostlerError(
                Code.CONFLICT,
                f"the summary of run {head.run_id} says {summary.status}, its nodes say {status}",
                "start again from the store",
            )
        size, sha256, inline = staged
        self._connection.execute(
            "INSERT OR REPLACE INTO summaries (run, sha256, size, content) VALUES (?, ?, ?, ?)",
            (head.run, sha256, size, inline),
        )


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


def _gone(head: Head, node: str) -> NoReturn:
    raise damaged(f"record of node {node} of run {head.run_id}", "it is not where the plan says")


def _illegal(head: Head, node: str, reason: str) -> HostlerError:
    return HostlerError(Code.CONFLICT, f"node {node} of run {head.run_id}: {reason}", "start again from what is stored")


def _position(head: Head, shape: Shape, node: str) -> int:
    position = shape.positions.get(node)
    if position is None:
        what = f"run {head.run_id} has no node {node}"
        raise HostlerError(Code.NOT_FOUND, what, f"see `hostler show {head.run_id}`")
    return position


def _status_after(head: Head, transaction: Transaction) -> RunStatus:
    derived = lifecycle.run_status(head.counts, started=head.started_at is not None)
    wanted = transaction.status
    if wanted in (None, derived):
        return derived
    # Whether budgets still let a ready node go is not in the records of nodes.
    if wanted is RunStatus.BUDGET_EXHAUSTED and derived is RunStatus.RUNNING:
        return wanted
    raise HostlerError(
        Code.CONFLICT,
        f"run {head.run_id} cannot become {wanted}: its nodes say {derived}",
        "start again from the store",
    )
