"""What must hold in a world of chance, after each message and at the end of the run."""

from collections import Counter
from typing import TYPE_CHECKING

from actors.actions import Dispatch, Reconcile
from actors.scheduling.shares import OCCUPYING
from actors.scheduling.state import Port
from hostler.views.waiting import waiting_on
from store.budgets import Books
from store.contracts import EventKind, GrantAction, NodeRecord
from store.ledgers import HOLDING, Entry, fold
from store.lifecycle import FINAL, RESTING, RUN_RESTING, RunStatus, Status, run_status
from store.plans import OperationExecutor
from store.receipts import ReceiptState
from store.revisions import revisions
from store.values import canonical
from tests.actors.support import RUN_ID
from tests.simulation.graphs import APPROVAL, PORTS
from tests.simulation.people import may_recover

if TYPE_CHECKING:
    from tests.simulation.world import World


def check(world: "World") -> None:
    """The host holds in memory what follows from what it was told, and what is stored once that is durable."""
    state = world.state
    working = {Status.PREPARING, Status.QUEUED, Status.RUNNING}
    nodes = state.nodes.values()
    active = [
        node
        for node in nodes
        if (node.status in working and node.worker is None and node.key not in state.deferred)
        or node.clearing
        or node.integrating
        or (node.status is Status.VERIFYING and node.recovering)
    ]
    assert state.active == len(active)
    leased = [node for node in nodes if node.worker is not None]
    assert state.leased == len(leased)
    assert all(node.family.is_external and node.status is Status.RUNNING for node in leased)
    excused = any(node.recovering or node.reconciling or node.integrating for node in nodes)
    assert len(active) <= state.jobs or excused, "more at once than jobs"
    most = state.plan.limits.active
    assert most is None or len(active) + len(leased) <= most or excused, "more at once than the limits allow"
    short = 0 if state.shares is None else state.shares.short
    assert state.status is run_status(state.tally, started=state.started, short=short)
    check_shares(world)
    assert sum(state.tally.values()) == len(state.nodes)
    assert all((node.key, node.status) == (node.record.key, node.record.status) for node in nodes)
    if not world.uncommitted:
        assert {node.key: node.record for node in nodes} == world.model.records
        assert state.status is world.model.status
        assert {node.key: node.record.attempt for node in leased} == world.workers.held
        if state.status in RUN_RESTING:
            check_reasons(world)
        used = [one.receipt_id for one in state.receipts.values() if one.state is ReceiptState.USED]
        granted = [grant.receipt_id for grant in world.model.grants if grant.receipt_id is not None]
        assert sorted(used) == sorted(granted), "a receipt is used once, and with the grant that it gives"


def check_evidence(world: "World", record: NodeRecord) -> None:
    """A completed node has shown what was due, and a person approved what a person must."""
    planned = world.planned[record.key]
    terms = planned.terms
    grants = [grant for grant in world.model.grants if grant.node == record.key and grant.allowed]
    settled = any(grant.action is GrantAction.SETTLE for grant in grants)
    if record.status is not Status.COMPLETED or settled:
        return
    if planned.workspace is not None:
        assert (record.key, record.attempt) in world.executors.moved, "completed, and nobody moved its branch"
    if terms is None:
        return
    assert set(record.evidence) == set(terms.evidence)
    if APPROVAL in terms.evidence:
        actions = {(grant.action, grant.attempt or 0) for grant in grants}
        assert actions & {(GrantAction.EVIDENCE, record.attempt), (GrantAction.GATE, 0)}, "nobody approved it"


def check_shares(world: "World") -> None:
    """Nothing overshoots but by what was said to be spent, and who is active for whom keeps within the caps."""
    state = world.state
    if state.shares is None:
        return
    books, limits = state.shares.books, state.plan.limits
    again = Books(state.plan, books.ledgers.values())
    for holder in (None, *state.nodes):
        for counter in ("tokens", "cost", "tasks", "retries"):
            left = books.left(holder, counter)
            assert left == again.left(holder, counter)
            counted = counter in ("tasks", "retries")
            assert not counted or left is None or left >= 0, "more started than the budget allows"
    reserving = Counter(node.status for node in state.nodes.values() if node.status in HOLDING)
    at_least = reserving.total() - reserving[Status.VERIFYING]  # what is verified again has settled before
    assert at_least <= books.reservations <= reserving.total() if books.limited else books.reservations == 0
    for cap, of in ((limits.per_owner, "owner"), (limits.per_parent, "parent")):
        active = Counter(
            getattr(node.planned.terms, of)
            for node in state.nodes.values()
            if node.planned.terms is not None
            and node.status in OCCUPYING - {Status.VERIFYING}  # what is judged again starts nothing
            and node.key not in state.deferred
        )
        del active[None]
        excused = any(node.recovering or node.reconciling for node in state.nodes.values())
        assert cap is None or excused or all(number <= cap for number in active.values())
    if not world.uncommitted:
        assert {one.node: one for one in world.model.seen.ledgers} == books.ledgers


def check_reasons(world: "World") -> None:
    """A run that rests names every node that keeps it so, why, and what to type."""
    waiting = waiting_on(RUN_ID, world.model.plan, world.model.records.values())
    assert {each.node for each in waiting} == {
        key for key, record in world.model.records.items() if record.status in RESTING
    }
    exhausted = world.state.status is RunStatus.BUDGET_EXHAUSTED  # of which ready nodes are the reason
    assert exhausted or world.state.status.value in {each.reason.value for each in waiting}
    for each in waiting:
        assert each.message
        assert each.command.startswith(f"hostler {each.command.split()[1]} {RUN_ID} {each.node}")
        blocked = world.model.records[each.node]
        assert blocked.status is not Status.BLOCKED or blocked.failure is not None


def check_end(world: "World") -> None:
    """Nothing is held once all messages have arrived, and every node has ended with a reason."""
    assert not world.leases, "a lease was never used and never given back"
    assert not world.machine.asks, "the machine is still asked"
    assert not world.workers.held, "somebody still has work of a run that has ended"
    assert set(world.machine.held) == {work.lease for work in world.executors.works if work.lease is not None}
    for record in world.model.records.values():
        assert record.status in FINAL
        assert record.status is not Status.FAILED or record.failure is not None
        check_evidence(world, record)
    spending = [
        Entry.from_data(event.node, event.attempt, event.data)
        for transaction in world.model.transactions
        for event in transaction.events
        if event.kind is EventKind.SPENDING
    ]
    assert fold(spending) == {one.node: one for one in world.model.seen.ledgers}
    assert all(one.reserved is None for one in world.model.seen.ledgers), "something is reserved for ever"
    for grant in world.model.grants:
        assert may_recover(world.planned, grant.node, grant.principal), "a stranger was obeyed"
    for transaction in world.model.transactions:
        assert transaction.fence.generation <= world.model.generation


def check_begun(world: "World", action: Dispatch | Reconcile, lease: int | None) -> None:
    """An attempt or its reconciliation holds what it claims; if anybody could notice it, its intent is durable."""
    node, record = world.state.nodes[action.node], world.model.records[action.node]
    assert not node.family.is_external, "what workers do was started here"
    if node.family.noticeable or isinstance(action, Reconcile):
        assert (record.status, record.attempt) == (Status.RUNNING, action.attempt), "started before it was durable"
    assert action.node not in world.finished, "a completed node ran again"
    if node.family.noticeable and isinstance(action, Dispatch):
        check_input(world, action)
        world.failures.check(action)
        world.cancels.check(action)
    assert (lease is not None) is bool(action.plan.policy.claims or action.plan.keys), "claims without a lease"
    if node.family.noticeable:
        beside = [work for work in world.executors.works if work.node == action.node]
        assert not beside, "it runs beside what is left of it"


def check_input(world: "World", action: Dispatch) -> None:
    """A node does what it was given last: by its plan, or by whoever corrected it."""
    assert action.given in (None, canonical(action.plan.input)), "it is given other bytes than its plan's"
    planned, made = world.planned[action.node], revisions(world.model.grants).get(action.node)
    assert action.plan.revision == (0 if made is None else made.number), "it follows another revision"
    executor = planned.executor
    if isinstance(executor, OperationExecutor) and Port.PLAN in PORTS[executor.operation, executor.version]:
        return  # its planner says what exactly
    assert action.plan.input == (planned.input if made is None else made.input), "it was given another input"
