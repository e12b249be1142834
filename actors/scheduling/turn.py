"""One turn of the core: what a message changes, gathered into one transaction and the actions around it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import JsonValue

from actors.actions import Action, NodeChanged, RunChanged
from actors.outcomes import Value
from actors.scheduling import spending
from actors.scheduling.state import NodeState, RunState
from store.clock import Stamp
from store.contracts import EventKind, Failure, Grant, NodeRecord, Summary
from store.leases import NewLease
from store.ledgers import Entry, Ledger
from store.lifecycle import FINAL, RESTING, RunStatus, Status, check_path, counts
from store.receipts import Receipt
from store.transactions import FrozenPlan, NewEvent, Output, Transaction

OF_RUN: Final = frozenset({EventKind.RUN_STATUS, EventKind.RUN_FINALIZED, EventKind.RUN_REOPENED})
ENDS: Final = FINAL | RESTING


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What follows from one message.

    Attributes:
        transaction: What the store must make durable; None when nothing changed.
        now: What may be done at once, since nobody could notice it.
        after: What may be done only when the transaction is durable.

    """

    transaction: Transaction | None
    now: tuple[Action, ...]
    after: tuple[Action, ...]


@dataclass(slots=True)
class _Trail:
    """Where a node stood when the turn began, and the statuses it took since."""

    before: Status
    path: list[Status] = field(default_factory=list)
    data: dict[str, JsonValue] = field(default_factory=dict)
    principal: str | None = None


class Turn:
    """The changes of one message, made to the state at once and to the store in one transaction."""

    def __init__(self, state: RunState, stamp: Stamp) -> None:
        self.state = state
        self.stamp = stamp
        self.begins = False
        """Whether this host takes the run up with it."""
        self.now: list[Action] = []
        self.after: list[Action] = []
        self._trails: dict[str, _Trail] = {}
        self._events: list[NewEvent] = []
        self._of_run: list[NewEvent] = []
        self._plans: list[FrozenPlan] = []
        self._outputs: list[Output] = []
        self._ledgers: dict[str | None, Ledger] = {}
        self._grants: list[Grant] = []
        self._receipts: dict[str, Receipt] = {}
        self._consumed: list[str] = []
        self._leases: list[NewLease] = []
        self._unleased: list[str] = []
        self._status: RunStatus | None = None
        self._summary: Summary | None = None
        self._started = False
        self._release = False

    def move(
        self,
        node: NodeState,
        *path: Status,
        data: Mapping[str, JsonValue] | None = None,
        principal: str | None = None,
        **changes: Any,
    ) -> None:
        """Take *node* along *path*, each step legal, and change its record.

        Args:
            node: The node.
            *path: Statuses in turn.
            data: Added to the event that tells of it.
            principal: Who wanted it.
            **changes: Fields of the record.

        """
        before = node.status
        after = check_path(node.key, before, path)
        if node.worker is not None and after is not Status.RUNNING:
            self.end_lease(node)
        if after in FINAL:
            changes.setdefault("finished_at", self.stamp.at)
        changes["status"] = after
        trail = self._changed(node, changes)
        node.status = after
        tally = self.state.tally
        tally[before] -= 1
        tally[after] += 1
        trail.path += path
        if data:
            trail.data.update(data)
        trail.principal = principal or trail.principal
        if self.state.shares is not None:
            spending.moved(self, node, before)

    def book(self, entry: Entry, *, principal: str | None = None) -> None:
        """Change a ledger; the log tells of each change."""
        self._ledgers[entry.node] = spending.book(self, entry)
        node = None if entry.node is None else self.state.nodes[entry.node]
        self.event(EventKind.SPENDING, node, attempt=entry.attempt, principal=principal, **entry.to_data())

    def change(self, node: NodeState, **changes: Any) -> None:
        """Change the record of *node* without moving it."""
        self._changed(node, changes)

    def _changed(self, node: NodeState, changes: dict[str, Any]) -> _Trail:
        """Change the record of *node*: a copy, made by the first change of a turn, which shows it only at its end."""
        trail = self._trails.get(node.key)
        if trail is None:
            trail = self._trails[node.key] = _Trail(node.status)
            node.record = node.record.but(changes)
        else:
            node.record.amend(changes)
        return trail

    def event(
        self,
        kind: EventKind,
        node: NodeState | None = None,
        *,
        attempt: int | None = None,
        principal: str | None = None,
        **data: JsonValue,
    ) -> None:
        """Log an event with this transaction; what is said of the run comes after what is said of its nodes."""
        event = NewEvent(kind=kind, node=node.key if node else None, attempt=attempt, principal=principal, data=data)
        (self._of_run if kind in OF_RUN else self._events).append(event)

    def freeze(self, plan: FrozenPlan) -> None:
        """Store the exact plan of a node."""
        self._plans.append(plan)

    def output(self, node: NodeState, value: Value) -> None:
        """Store what a node gave."""
        self._outputs.append(Output(node=node.key, value=value.value, sha256=value.sha256, data=value.data))
        self.state.outputs[node.key] = value.value

    def grant(self, grant: Grant) -> None:
        """Store a person's answer."""
        self._grants.append(grant)

    def receipt(self, receipt: Receipt) -> None:
        """Store a receipt that is made, used up or taken back."""
        self._receipts[receipt.receipt_id] = receipt
        self.state.receipts[receipt.receipt_id] = receipt

    def consume(self, request_ids: Iterable[str]) -> None:
        """Mark requests as taken up, in the same transaction as what follows from them."""
        self._consumed += request_ids

    def lease(self, lease: NewLease) -> None:
        """Store that a worker outside has the work of a node, which starts with this transaction."""
        self._leases.append(lease)

    def end_lease(self, node: NodeState) -> None:
        """Let no worker have it any more, in the store and here."""
        node.worker = None
        self.state.leased -= 1
        self._unleased.append(node.key)

    def start(self) -> None:
        """Mark the run as taken up for the first time."""
        self.state.started_at = self.stamp.at
        self._started = True

    def set_status(self, status: RunStatus, summary: Summary | None) -> None:
        """Store the derived status of the run, with its summary if it is final."""
        self.state.status = self._status = status
        self._summary = summary
        self.tell_status()

    def tell_status(self) -> None:
        """Tell views where the run stands."""
        state = self.state
        self.after.append(RunChanged(run_id=state.run_id, status=state.status, counts=counts(state.tally)))

    def release(self) -> None:
        """Give the claim back with this transaction."""
        self._release = True
        self.state.left = True

    def decision(self) -> Decision:
        """Close the turn."""
        state, nodes = self.state, self.state.nodes
        records, events = list[NodeRecord](), self._events
        views: list[Action] = []
        for key, trail in self._trails.items():
            record = nodes[key].record
            records.append(record)
            views.append(NodeChanged(run_id=state.run_id, record=record))
            if trail.path:
                events.append(_told(record, trail))
        events += self._of_run
        writes = records or events or self._grants or self._consumed or self._release or self._started
        return Decision(
            transaction=Transaction(
                fence=state.fence,
                stamp=self.stamp,
                status=self._status,
                started=self._started,
                summary=self._summary,
                nodes=tuple(records),
                plans=tuple(self._plans),
                outputs=tuple(self._outputs),
                events=tuple(events),
                grants=tuple(self._grants),
                receipts=tuple(self._receipts.values()),
                consumed=tuple(self._consumed),
                leases=tuple(self._leases),
                unleased=tuple(self._unleased),
                ledgers=tuple(self._ledgers.values()),
                release=self._release,
            )
            if writes
            else None,
            now=tuple(self.now),
            after=(*views, *self.after),
        )


def _told(record: NodeRecord, trail: _Trail) -> NewEvent:
    """Return the event that tells where the turn left a node that moved; one a node, however many moves it made."""
    data: dict[str, JsonValue] = {"status": record.status._value_, "from": trail.before._value_, **trail.data}
    if len(trail.path) > 1:
        data["via"] = [status._value_ for status in trail.path[:-1]]
    if record.status in ENDS and record.failure is not None:
        data["failure"] = _failure(record.failure)
    kind = EventKind.NODE_RUNNING if record.status is Status.RUNNING else EventKind.NODE_STATUS
    return NewEvent(kind=kind, node=record.key, attempt=record.attempt or None, principal=trail.principal, data=data)


def _failure(failure: Failure) -> dict[str, JsonValue]:
    return {"code": failure.code.value, "message": failure.message, "todo": failure.todo}
