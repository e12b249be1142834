"""The run store in small, in memory: what it promises, without how it keeps the promise.

The simulation of the scheduler plays on it, the stateful tests hold the real store against it, and the contract
suite asks the same of both. What is decided by pure functions with exhaustive tests of their own (which move is
legal, what a run's status is, which grant opens what) is asked of these.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hostres.errors import Code, HostlerError
from store import lifecycle, transitions
from store.clock import Clock
from store.contracts import EventKind, Grant, GrantAction, NodeRecord, Request, RunRecord, Summary
from store.leases import HeldLease
from store.ledgers import Ledger
from store.lifecycle import FINAL, IMMUTABLE, RESTING, RUN_FINAL, RunStatus, Status
from store.limits import Limits
from store.plans import GraphPlan, NodePlan
from store.receipts import Receipt, ReceiptState
from store.records import encode, graph_plan_sha256
from store.requests import cancel_id, is_cancel_id
from store.shapes import Shape, is_granted, names_its_revision, revision_due, shape_of
from store.transactions import Claimed, Fence, NewEvent, Transaction
from store.values import Domain, digest, digest_bytes

LEFT_S = 60.0
"""Nothing expires in memory: what a claim finds of a lease is told by whoever plays."""


class Told(NamedTuple):
    """An event as a reader sees it, without its place in the chain."""

    kind: EventKind
    node: str | None
    attempt: int | None
    principal: str | None
    data: Mapping[str, Any]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that a reader can find out about a run."""

    record: RunRecord
    plan: GraphPlan
    status: RunStatus
    started_at: str | None
    finished_at: str | None
    owner: tuple[str, bool] | None
    summary: Summary | None
    cancel_waits: bool
    nodes: tuple[NodeRecord, ...]
    outputs: Mapping[str, Any]
    grants: tuple[Grant, ...]
    requests: tuple[Request, ...]
    events: tuple[Told, ...]
    ledgers: tuple[Ledger, ...]


@dataclass(slots=True, kw_only=True)
class _Run:
    record: RunRecord
    plan: GraphPlan
    shape: Shape
    nodes: dict[str, NodeRecord]
    status: RunStatus = RunStatus.PLANNED
    started_at: str | None = None
    finished_at: str | None = None
    generation: int = 0
    fence: Fence | None = None
    summary: Summary | None = None
    plans: dict[str, NodePlan] = field(default_factory=dict)
    outputs: dict[str, tuple[str, Any]] = field(default_factory=dict)
    grants: dict[str, Grant] = field(default_factory=dict)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)
    answered: dict[str, bool] = field(default_factory=dict)
    events: list[Told] = field(default_factory=list)
    leases: dict[str, tuple[int, str]] = field(default_factory=dict)
    ledgers: dict[str, Ledger] = field(default_factory=dict)

    tally: Counter[Status] = field(default_factory=Counter)

    @property
    def waiting(self) -> tuple[Request, ...]:
        return tuple(request for key, request in self.requests.items() if key not in self.answered)


class _Undo:
    """What a transaction has changed so far, so that a refusal leaves nothing of it; it costs what is touched."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._scalars = {name: getattr(run, name) for name in _SCALARS}
        self._told = len(run.events)
        self._tally = Counter(run.tally)
        self._items: list[tuple[dict[str, Any], str, Any]] = []

    def put(self, where: dict[str, Any], key: str, value: Any) -> None:
        """Put a value into one of the run's tables."""
        self._items.append((where, key, where.get(key)))
        where[key] = value

    def all(self) -> None:
        """Make the run what it was."""
        for where, key, value in reversed(self._items):
            if value is None:
                del where[key]
            else:
                where[key] = value
        for name, value in self._scalars.items():
            setattr(self._run, name, value)
        self._run.tally = self._tally
        del self._run.events[self._told :]


_SCALARS = ("status", "started_at", "finished_at", "fence", "summary")


def _in_order(ledgers: Mapping[str, Ledger]) -> tuple[Ledger, ...]:
    return tuple(ledgers[node] for node in sorted(ledgers))


def _refuse(code: Code, what: str) -> HostlerError:
    return HostlerError(code, what, "this is the model")


class MemoryStore:
    """A store of runs that forgets nothing and never fails."""

    def __init__(self, clock: Clock, limits: Limits | None = None) -> None:
        self.alive: set[str] = set()
        self._clock = clock
        self._limits = limits or Limits()
        self._runs: dict[str, _Run] = {}
        self._hosts = 0

    def host(self) -> str:
        """Return a new living host."""
        self._hosts += 1
        host_id = f"host_{self._hosts:026d}"
        self.alive.add(host_id)
        return host_id

    def kill(self, host_id: str) -> None:
        """End a host, with all its claims still standing."""
        self.alive.discard(host_id)

    def reopen(self) -> None:
        """Nothing: memory is as durable as this gets."""

    def close(self) -> None:
        """Nothing to close."""

    def create(self, record: RunRecord, plan: GraphPlan, *, bundle: bytes | None = None) -> None:
        """Store a new run."""
        keys = [node.key for node in plan.nodes]
        bundle_sha256 = None if bundle is None else digest_bytes(Domain.BUNDLE, bundle)
        fits = (
            len(encode(plan)) <= self._limits.value_bytes
            and len(bundle or b"") <= self._limits.bundle_bytes
            and record.plan_sha256 == graph_plan_sha256(plan)
            and (record.workflow, record.workflow_version) == (plan.workflow, plan.version)
            and record.bundle_sha256 == bundle_sha256
            and plan.bundle_sha256 in (None, bundle_sha256)
            and len(set(keys)) == len(keys)
            and all(set(node.dependencies) <= set(keys[:index]) for index, node in enumerate(plan.nodes))
        )
        if not fits:
            raise _refuse(Code.INVALID_DATA, f"run {record.run_id} does not hold together")
        if record.run_id in self._runs:
            raise _refuse(Code.CONFLICT, f"there is a run {record.run_id}")
        nodes = {
            node.key: NodeRecord(key=node.key, status=Status.PENDING if node.dependencies else Status.READY)
            for node in plan.nodes
        }
        run = self._runs[record.run_id] = _Run(record=record, plan=plan, shape=shape_of(plan), nodes=nodes)
        run.tally.update(node.status for node in nodes.values())
        data = {
            "workflow": plan.workflow,
            "version": plan.version,
            "plan_sha256": record.plan_sha256,
            "nodes": len(nodes),
        }
        self._tell(run, EventKind.RUN_CREATED, data, principal=record.principal)

    def claim(self, run_id: str, host_id: str, *, token: str = "token") -> Claimed:
        """Take a run for a host."""
        if host_id not in self.alive:
            raise _refuse(Code.OWNERSHIP_LOST, f"{host_id} is dead")
        run = self._of(run_id)
        dead = None if run.fence is None else run.fence.host_id
        if dead in self.alive:
            raise _refuse(Code.CONFLICT, f"{dead} works on {run_id}")
        for other in self._runs.values():
            if dead is not None and other.fence is not None and other.fence.host_id == dead:
                other.fence = None
        run.generation += 1
        run.fence = Fence(run_id=run_id, host_id=host_id, generation=run.generation, token=token)
        data = {
            "generation": run.generation,
            "host": host_id,
            "token_sha256": digest(Domain.RECORD, token),
            **({} if dead is None else {"dead": dead}),
        }
        self._tell(run, EventKind.RUN_CLAIMED, data)
        return Claimed(
            fence=run.fence,
            record=run.record,
            plan=run.plan,
            status=run.status,
            started_at=run.started_at,
            nodes=tuple(run.nodes.values()),
            outputs={
                key: run.outputs[key][1]
                for key, node in run.nodes.items()
                if node.status in (Status.COMPLETED, Status.VERIFYING, Status.BLOCKED)
                and node.output_sha256 is not None
            },
            plans={
                key: run.plans[node.frozen_sha256]
                for key, node in run.nodes.items()
                if node.frozen_sha256 is not None and node.status not in IMMUTABLE
            },
            grants=tuple(run.grants.values()),
            requests=run.waiting,
            leases=tuple(
                HeldLease(node=node, attempt=attempt, worker=worker, left_s=LEFT_S)
                for node, (attempt, worker) in sorted(run.leases.items())
            ),
            ledgers=_in_order(run.ledgers),
            receipts=tuple(run.receipts.values()),
        )

    def post(self, request: Request) -> bool:
        """Store what somebody wants, unless there is a request of that id."""
        run = self._of(request.run_id)
        if any(request.request_id in other.requests for other in self._runs.values()):
            return False
        run.requests[request.request_id] = request.model_copy(update={"at": self._clock.now().at})
        return True

    def next_cancel_id(self, run_id: str, node: str | None) -> str:
        """Return the id of the cancel that may wait now."""
        run = self._of(run_id)
        return cancel_id(run_id, node, answered=sum(is_cancel_id(one, run_id, node) for one in run.answered))

    def requests(self, run_ids: Iterable[str]) -> list[Request]:
        """Return what waits for an answer."""
        return [request for run_id in run_ids if run_id in self._runs for request in self._runs[run_id].waiting]

    def unowned(self) -> list[str]:
        """Return the runs that are not final and that no living host owns."""
        return sorted(
            run_id
            for run_id, run in self._runs.items()
            if run.status not in RUN_FINAL and (run.fence is None or run.fence.host_id not in self.alive)
        )

    def seen(self, run_id: str) -> Seen:
        """Return what a reader finds."""
        run = self._of(run_id)
        return Seen(
            record=run.record,
            plan=run.plan,
            status=run.status,
            started_at=run.started_at,
            finished_at=run.finished_at,
            owner=None if run.fence is None else (run.fence.host_id, run.fence.host_id in self.alive),
            summary=run.summary,
            cancel_waits=any(is_cancel_id(one.request_id, run_id, None) for one in run.waiting),
            nodes=tuple(run.nodes.values()),
            outputs={key: value for key, (_, value) in run.outputs.items()},
            grants=tuple(run.grants.values()),
            requests=tuple(run.requests.values()),
            events=tuple(run.events),
            ledgers=_in_order(run.ledgers),
        )

    def run_ids(self) -> list[str]:
        """Return all runs, newest first."""
        return sorted(self._runs, reverse=True)

    def write(self, transactions: Sequence[Transaction]) -> list[HostlerError | None]:
        """Apply each transaction whole or not at all."""
        return [self._apply(transaction) for transaction in transactions]

    def _of(self, run_id: str) -> _Run:
        if run_id not in self._runs:
            raise _refuse(Code.NOT_FOUND, f"there is no run {run_id}")
        return self._runs[run_id]

    def _tell(self, run: _Run, kind: EventKind, data: Mapping[str, Any], *, principal: str | None = None) -> None:
        run.events.append(Told(kind, None, None, principal, data, self._clock.now().at))

    def _apply(self, transaction: Transaction) -> HostlerError | None:
        undo = None
        try:
            self._check_given(transaction)
            run = self._of(transaction.fence.run_id)
            undo = _Undo(run)
            self._change(run, transaction, undo)
        except HostlerError as refusal:
            if undo is not None:
                undo.all()
            return refusal
        return None

    def _check_given(self, transaction: Transaction) -> None:
        given = [(Domain.NODE_PLAN, one.data, one.sha256) for one in transaction.plans]
        given += [(Domain.OUTPUT, one.data, one.sha256) for one in transaction.outputs]
        for domain, data, sha256 in given:
            if len(data) > self._limits.value_bytes or digest_bytes(domain, data) != sha256:
                raise _refuse(Code.INVALID_DATA, "a plan or an output is not what it says, or is too large")

    def _change(self, run: _Run, transaction: Transaction, undo: _Undo) -> None:
        if run.fence != transaction.fence:
            raise _refuse(Code.CONFLICT, "the claim is not in force")
        self._check_room(run, transaction)
        counted = Counter(run.tally)
        for frozen in transaction.plans:
            if frozen.plan.run_id != run.record.run_id or frozen.plan.node not in run.nodes:
                raise _refuse(Code.CONFLICT, "a plan of something else")
            undo.put(run.plans, frozen.sha256, frozen.plan)
        self._put_outputs(run, transaction, undo)
        for grant in transaction.grants:
            if grant.run_id != run.record.run_id or self._grants_by_id(grant.grant_id) not in (None, grant):
                raise _refuse(Code.CONFLICT, "a grant of another run, or another one of that id")
            undo.put(run.grants, grant.grant_id, grant)
        for record in transaction.nodes:
            self._put_node(run, record, transaction, undo)
        self._check_grants(run, transaction)
        self._put_receipts(run, transaction, undo)
        for request_id in transaction.consumed:
            if request_id not in run.requests or request_id in run.answered:
                raise _refuse(Code.CONFLICT, "a request that does not wait")
            undo.put(run.answered, request_id, True)
        for key in transaction.unleased:
            if key in run.leases:
                undo.put(run.leases, key, None)
                del run.leases[key]
        for lease in transaction.leases:
            node = run.nodes[lease.node]
            if (node.status, node.attempt) != (Status.RUNNING, lease.attempt) or lease.node in run.leases:
                raise _refuse(Code.CONFLICT, "a lease of what does not start")
            undo.put(run.leases, lease.node, (lease.attempt, lease.worker))
        for ledger in transaction.ledgers:
            if ledger.node is not None and ledger.node not in run.nodes:
                raise _refuse(Code.NOT_FOUND, f"there is no node {ledger.node}")
            undo.put(run.ledgers, ledger.node or "", ledger)
        self._put_head(run, transaction, counted)

    def _grants_by_id(self, grant_id: str) -> Grant | None:
        return next((run.grants[grant_id] for run in self._runs.values() if grant_id in run.grants), None)

    def _check_room(self, run: _Run, transaction: Transaction) -> None:
        ends = (
            transaction.release
            or transaction.summary is not None
            or (bool(transaction.nodes) and all(record.status in FINAL | RESTING for record in transaction.nodes))
        )
        kept = 0 if ends else self._limits.events_kept + 2 * len(run.nodes)
        coming = len(transaction.events) + transaction.release
        if len(run.events) + coming > max(0, self._limits.events - kept):
            raise _refuse(Code.INVALID_DATA, "no room for more events")

    @staticmethod
    def _put_outputs(run: _Run, transaction: Transaction, undo: _Undo) -> None:
        named = {record.key: record.output_sha256 for record in transaction.nodes}
        for output in transaction.outputs:
            if output.node not in run.nodes:
                raise _refuse(Code.NOT_FOUND, f"there is no node {output.node}")
            stored = run.outputs.get(output.node, (None, None))[0]
            if run.nodes[output.node].status in IMMUTABLE and stored != output.sha256:
                raise _refuse(Code.CONFLICT, f"{output.node} is final")
            if output.sha256 not in (stored, named.get(output.node)):
                raise _refuse(Code.CONFLICT, "an output that its node does not name")
            undo.put(run.outputs, output.node, (output.sha256, output.value))

    @staticmethod
    def _put_node(run: _Run, after: NodeRecord, transaction: Transaction, undo: _Undo) -> None:
        before = run.nodes.get(after.key)
        if before is None:
            raise _refuse(Code.NOT_FOUND, f"there is no node {after.key}")
        if before == after:
            return
        gate = after.key in run.shape.gates
        granted = is_granted(before, run.shape, transaction.grants)
        fits = (
            transitions.refusal(
                before, after, gate=gate, granted=granted, revision=revision_due(before, transaction.grants)
            )
            is None
            and all(
                sha256 in (None, was) or (sha256 in run.plans and run.plans[sha256].node == after.key)
                for was, sha256 in (
                    (before.preparation_sha256, after.preparation_sha256),
                    (before.plan_sha256, after.plan_sha256),
                )
            )
            and (after.output_sha256 is not None or after.status is not Status.COMPLETED or gate)
            and (after.output_sha256 is not None or after.status is not Status.VERIFYING)
            and after.output_sha256 in (None, run.outputs.get(after.key, (None, None))[0])
        )
        if not fits:
            raise _refuse(Code.CONFLICT, f"{after.key} may not become that")
        undo.put(run.nodes, after.key, after)
        run.tally[before.status] -= 1
        run.tally[after.status] += 1

    @staticmethod
    def _check_grants(run: _Run, transaction: Transaction) -> None:
        for grant in transaction.grants:
            node = run.nodes.get(grant.node)
            if node is None:
                raise _refuse(Code.NOT_FOUND, f"there is no node {grant.node}")
            if not names_its_revision(grant, node):
                raise _refuse(Code.CONFLICT, "a grant of another revision")
            bound_to = {
                GrantAction.PREPARATION: node.preparation_sha256,
                GrantAction.EFFECT: node.plan_sha256,
                GrantAction.GATE: node.plan_sha256,
                GrantAction.REPLAY: node.plan_sha256,
                GrantAction.EVIDENCE: node.plan_sha256,
            }
            if grant.action in bound_to and (grant.plan_sha256 is None or grant.plan_sha256 != bound_to[grant.action]):
                raise _refuse(Code.CONFLICT, "a grant for another plan")

    @staticmethod
    def _put_receipts(run: _Run, transaction: Transaction, undo: _Undo) -> None:
        granted = {grant.receipt_id for grant in transaction.grants} - {None}
        if granted != {one.receipt_id for one in transaction.receipts if one.state is ReceiptState.USED}:
            raise _refuse(Code.CONFLICT, "a receipt is used by exactly one grant")
        for receipt in transaction.receipts:
            before = run.receipts.get(receipt.receipt_id)
            opens = receipt.state is ReceiptState.OPEN
            if receipt.run_id != run.record.run_id or opens is not (before is None):
                raise _refuse(Code.CONFLICT, "a receipt of another run, or made twice, or never")
            changes = {"state": receipt.state, "ended_by": receipt.ended_by}
            if before is not None and (
                before.state is not ReceiptState.OPEN or before.model_copy(update=changes) != receipt
            ):
                raise _refuse(Code.CONFLICT, "a receipt that has ended, or is another one")
            undo.put(run.receipts, receipt.receipt_id, receipt)

    @staticmethod
    def _put_head(run: _Run, transaction: Transaction, counted: Counter[Status]) -> None:
        at = transaction.stamp.at
        if transaction.started and run.started_at is None:
            run.started_at = at
        started = run.started_at is not None
        derived = lifecycle.run_status(run.tally, started=started)
        possible = derived, lifecycle.run_status_without_budget(run.tally, started=started)
        status = transaction.status or (run.status if run.status in possible else derived)
        if status not in possible:
            raise _refuse(Code.CONFLICT, "the nodes say otherwise")
        if transaction.summary is not None:
            told = transaction.summary.status, dict(transaction.summary.counts)
            if status not in RUN_FINAL or told != (status, lifecycle.counts(run.tally)):
                raise _refuse(Code.CONFLICT, "the summary says otherwise")
            run.summary = transaction.summary
        elif status is not run.status or run.tally != counted:
            run.summary = None
        if status is not run.status:
            run.status, run.finished_at = status, at if status in RUN_FINAL else None
        events = list(transaction.events)
        if transaction.release:
            assert run.fence is not None
            data: dict[str, Any] = {"generation": run.generation, "host": run.fence.host_id}
            events.append(NewEvent(kind=EventKind.RUN_RELEASED, data=data))
            run.fence = None
        run.events += [Told(one.kind, one.node, one.attempt, one.principal, dict(one.data), at) for one in events]
