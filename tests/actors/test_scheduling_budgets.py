"""Budgets in the core: who may start, what is charged, what comes back, and what a crash makes of it."""

from decimal import Decimal
from typing import Any

import pytest

from actors.actions import AnswerSpending, Judge, SpendingRecorded, SpendingRefused, TimerName
from actors.messages import Due, LeftoversEnded, Returned, SpendingReported
from actors.outcomes import Aborted, Failed, Finding, Found, Value
from actors.scheduling.operators import as_value
from actors.scheduling.state import Port
from store.amounts import NOTHING, Amounts, Ask, Budget, Demand, Usage
from store.contracts import EventKind, Request, RequestKind
from store.ledgers import Change, Entry, Kept, Ledger, fold
from store.lifecycle import RunStatus, Status
from store.plans import PlannedNode, RunLimits
from store.policy import Effect, FailureCode, Policy, Resume, Retry
from store.terms import Owner, Terms
from tests.actors.support import HUMAN, RUN_ID, Drive, Model, dispatched, gate, kinds, left, planned, rule

ONE = Decimal(1)


def node(key: str, *after: str, parent: str | None = None, owner: str | None = None, budget: Budget | None = None,
         ask: Ask | None = None, priority: int = 0, **policy: Any) -> PlannedNode:  # fmt: skip
    """Return a node that writes, with its terms."""
    demand = None if ask is None else Demand(ask=ask)
    made = planned(key, *after, policy=Policy(**{"effect": Effect.LOCAL_DERIVED_WRITE, "budget": demand} | policy))
    works_for = None if owner is None else Owner(role="lead", id=owner)
    terms = Terms(parent=parent, owner=works_for, budget=budget) if parent or budget or owner else None
    return made.model_copy(update={"terms": terms, "priority": priority})


def drive(*nodes: PlannedNode, budget: Budget | None = None, **limits: Any) -> Drive:
    drive = Drive(Model(nodes, limits=RunLimits(budget=budget, **limits)))
    drive.begin()
    return drive


def ledger(drive: Drive, key: str | None) -> Ledger:
    """Return the stored ledger, which must be what the log adds up to and what the core has in memory."""
    stored = {one.node: one for one in drive.model.seen.ledgers}
    told = fold(
        Entry.from_data(event.node, event.attempt, event.data)
        for transaction in drive.model.transactions
        for event in transaction.events
        if event.kind is EventKind.SPENDING
    )
    assert stored == told
    assert drive.state.shares is not None
    assert stored == drive.state.shares.books.ledgers
    return stored.get(key) or Ledger(node=key)


def status_of(drive: Drive) -> RunStatus:
    return drive.model.status


def spent(drive: Drive, key: str) -> Amounts:
    return ledger(drive, key).spent


def value(**usage: Any) -> Value:
    given = as_value({})
    return Value(value=given.value, data=given.data, sha256=given.sha256, usage=Usage(**usage))


def short(drive: Drive) -> list[Any]:
    return list(drive.model.events("run-status")[-1].get("short", []))


@pytest.mark.parametrize(
    ("budget", "counter"),
    [
        (Budget(tokens=9), "tokens"),
        (Budget(cost=Decimal("0.99")), "cost"),
        (Budget(seconds=Decimal(1)), "seconds"),
        (Budget(tasks=0), "tasks"),
    ],
)
def test_limits_below_any_node_start_nothing_and_name_the_node_and_the_counter(budget: Budget, counter: str) -> None:
    """G5: budget-exhausted with zero starts; raising the budget lets the run go on."""
    run = drive(node("a", ask=Ask(tokens=10, cost=ONE, seconds=Decimal(2))), budget=budget)
    assert run.state.status is status_of(run)
    assert status_of(run) is RunStatus.BUDGET_EXHAUSTED
    assert run.model.events("node-running") == []
    assert [(one["node"], one["holder"], one["counter"]) for one in short(run)] == [("a", None, counter)]
    actions = run.request(RequestKind.BUDGET, data={"add": {counter: 10}})
    assert dispatched(actions) == ["a"]
    assert status_of(run) is RunStatus.RUNNING
    run.returned("a")
    assert status_of(run) is RunStatus.COMPLETED


def test_what_is_added_to_a_node_lets_its_children_go_on() -> None:
    run = drive(gate("p").model_copy(update={"terms": Terms(budget=Budget(tasks=0))}), node("c", parent="p"))
    assert run.status("c") is Status.READY
    assert dispatched(run.request(RequestKind.BUDGET, "p", data={"add": {"tasks": 1}})) == ["c"]
    assert ledger(run, "p").added == Amounts(tasks=1)


def test_a_run_that_waits_for_a_person_too_says_so_first() -> None:
    """Resting statuses come in their order: budget-exhausted is the last."""
    run = drive(gate("g"), node("a"), budget=Budget(tasks=0))
    assert status_of(run) is RunStatus.APPROVAL_REQUIRED
    run.approve("g")
    assert status_of(run) is RunStatus.BUDGET_EXHAUSTED


@pytest.mark.parametrize(("used", "goes"), [(500, True), (501, False)])
def test_the_other_waits_until_the_reservation_is_settled(used: int, goes: bool) -> None:
    """G6: 1,500 tokens left, two nodes asking 1,000: the second starts if what was returned suffices."""
    run = drive(node("a", ask=Ask(tokens=1000)), node("b", ask=Ask(tokens=1000)), budget=Budget(tokens=1500))
    assert run.statuses() == {"a": "running", "b": "ready"}
    assert status_of(run) is RunStatus.RUNNING, "nothing is exhausted while something may come back"
    assert dispatched(run.returned("a", value(tokens=used))) == (["b"] if goes else [])
    assert (status_of(run) is not RunStatus.BUDGET_EXHAUSTED) is goes


def test_a_smaller_node_goes_past_a_misfit_which_goes_first_once_what_it_needs_is_free() -> None:
    """G7: the misfit is not starved: it is looked at before its equals, whatever their names."""
    small = [node(f"s{number}", ask=Ask(tokens=3)) for number in range(6)]
    run = drive(node("a", ask=Ask(tokens=4)), *small, node("z", ask=Ask(tokens=8)), budget=Budget(tokens=10))
    assert [key for key, status in run.statuses().items() if status == "running"] == ["a", "s0", "s1"]
    run = drive(node("a", ask=Ask(tokens=4)), node("b", ask=Ask(tokens=8)), *small, budget=Budget(tokens=10))
    assert [key for key, status in run.statuses().items() if status == "running"] == ["a", "s0", "s1"]
    run.returned("s0")
    assert run.status("b") is Status.READY, "7 are kept, 3 are free"
    assert run.status("s2") is Status.RUNNING, "a smaller one goes"
    run.returned("a")
    assert [run.status(key) for key in ("b", "s3")] == [Status.READY, Status.RUNNING]
    for key in ("s1", "s2", "s3", "s4"):
        run.returned(key)
    while run.status("b") is Status.READY:
        run.returned(next(key for key, status in run.statuses().items() if status == "running"))
    assert run.status("b") is Status.RUNNING


def test_the_misfit_goes_before_an_equal_that_is_ready_later() -> None:
    """G7: what it needs is free in the moment in which another becomes ready that would take it."""
    run = drive(
        node("a", ask=Ask(tokens=6)), node("z", ask=Ask(tokens=8)), node("b", "a", ask=Ask(tokens=6)),
        budget=Budget(tokens=10),
    )  # fmt: skip
    assert run.statuses() == {"a": "running", "z": "ready", "b": "pending"}
    assert dispatched(run.returned("a")) == ["z"]


def test_many_of_one_size_wait_in_one_lane_and_only_the_first_is_looked_at() -> None:
    run = drive(*(node(f"n{number:02d}", ask=Ask(tokens=5)) for number in range(40)), budget=Budget(tokens=5))
    order = []
    while running := [key for key, status in run.statuses().items() if status == "running"]:
        order += running
        run.returned(running[0])
    assert order == sorted(run.state.nodes)
    assert status_of(run) is RunStatus.COMPLETED


def test_of_two_children_of_a_parent_with_one_task_only_one_starts() -> None:
    """G8: a parent's budget of one task and two ready children → only one starts."""
    parent = gate("p").model_copy(update={"terms": Terms(budget=Budget(tasks=1))})
    run = drive(parent, node("c1", parent="p"), node("c2", parent="p"))
    run.approve("p")
    assert run.statuses() == {"p": "completed", "c1": "running", "c2": "ready"}
    run.returned("c1")
    assert status_of(run) is RunStatus.BUDGET_EXHAUSTED
    assert [(one["node"], one["holder"], one["counter"]) for one in short(run)] == [("c2", "p", "tasks")]


@pytest.mark.parametrize(
    "outcome",
    [
        Failed(code=FailureCode.SUBPROCESS, message="m", todo="t", usage=Usage(tokens=7, cost=Decimal("0.1"))),
        Aborted(reason="timeout", usage=Usage(tokens=7, cost=Decimal("0.1"))),
        value(tokens=7, cost=Decimal("0.1")),
    ],
)
def test_what_an_attempt_spent_is_recorded_however_it_ends(outcome: Any) -> None:
    """G10: also an error, also over its limit: on the node, its ancestors and the run; a good result is kept."""
    run = drive(
        gate("p").model_copy(update={"terms": Terms(budget=Budget(tokens=20))}),
        node("a", parent="p", ask=Ask(tokens=5)),
        budget=Budget(tokens=100, seconds=Decimal(1000)),
    )
    run.approve("p")
    run.returned("a", outcome)
    took = spent(run, "a").seconds
    assert 0 < took < Decimal("0.0000001"), "the test's clock goes by nanoseconds"
    assert spent(run, "a") == Amounts(tokens=7, cost=Decimal("0.1"), tasks=1, seconds=took)
    assert ledger(run, "a").reserved is None
    assert run.state.shares is not None
    books = run.state.shares.books
    assert (books.left("p", "tokens"), books.left(None, "tokens")) == (13, 93)
    assert (run.status("a") is Status.COMPLETED) is isinstance(outcome, Value)


def test_the_spending_of_a_late_result_is_recorded_and_takes_the_place_of_what_was_assumed() -> None:
    """G10: late: the run did not wait for it, and hears of it all the same."""
    cost = Decimal("0.25")
    run = drive(
        node("a", ask=Ask(cost=ONE), effect=Effect.PAID_CLOUD, max_seconds=1), node("b"), budget=Budget(cost=ONE)
    )
    run.approve("a")
    attempt = run.state.nodes["a"].record.attempt
    for kind in ("deadline", "overdue"):
        run.send(Due(timer=TimerName(kind=kind, node="a", attempt=attempt)))
    assert ledger(run, "a").assumed == (Kept(attempt=attempt, amount=Amounts(cost=ONE)),)
    run.returned("a", value(cost=cost), attempt=attempt)
    assert run.model.events("late-result")
    assert (ledger(run, "a").assumed, spent(run, "a").cost) == ((), cost)


def test_an_operation_says_what_it_spends_while_it_runs_and_that_is_durable_before_it_goes_on() -> None:
    run = drive(node("a", ask=Ask(cost=ONE)), budget=Budget(cost=ONE))
    actions = run.send(SpendingReported(node="a", attempt=1, usage=Usage(cost=Decimal("0.4")), reply_to=object()))  # type: ignore[arg-type]
    assert [action.answer for action in kinds(actions, AnswerSpending)] == [SpendingRecorded()]
    assert ledger(run, "a").reserved == Kept(attempt=1, amount=Amounts(cost=Decimal("0.6"), tasks=1))
    assert spent(run, "a") == Amounts(cost=Decimal("0.4"))
    run = run.crash()
    run.begin()
    run.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert spent(run, "a").cost == Decimal("0.4"), "a crash loses nothing of it"


def test_what_is_spent_after_the_run_was_handed_back_is_refused() -> None:
    run = drive(node("a"), budget=Budget(tasks=5))
    run.returned("a")
    actions = run.send(SpendingReported(node="a", attempt=1, usage=Usage(tokens=1), reply_to=object()))  # type: ignore[arg-type]
    assert [action.answer for action in kinds(actions, AnswerSpending)] == [SpendingRefused()]


def test_usage_in_a_run_without_any_budget_is_recorded_and_nothing_else() -> None:
    run = drive(node("a"), node("b"))
    run.returned("b")
    assert not run.model.seen.ledgers
    run.returned("a", value(tokens=3))
    assert run.model.seen.ledgers == (Ledger(node="a", spent=Amounts(tokens=3)),)


# --- crashes ------------------------------------------------------------------------------------------------------


def crashed(*nodes: PlannedNode, **limits: Any) -> Drive:
    """Return the run with node a running, as a new owner finds it once nothing of it lives."""
    run = drive(*nodes, **limits)
    if run.status("a") is Status.APPROVAL_REQUIRED:
        run.approve("a")
    assert run.status("a") is Status.RUNNING
    run = run.crash(ports={("test.work", 1): frozenset({Port.RECONCILE})} if nodes[0].label == "asks" else {})
    run.clock = 100
    run.begin()
    run.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    return run


def test_a_crash_frees_what_a_queued_node_reserved() -> None:
    run = drive(node("a", ask=Ask(cost=ONE), claims={"ffmpeg": 1}), budget=Budget(cost=ONE, tasks=1))
    assert run.status("a") is Status.QUEUED
    assert ledger(run, "a").reserved == Kept(attempt=1, amount=Amounts(cost=ONE, tasks=1))
    run = run.crash()
    run.begin()
    assert spent(run, "a") == NOTHING
    assert run.status("a") is Status.QUEUED, "it reserves again, and starts within the one task"


def test_a_crash_charges_the_seconds_of_what_can_be_made_again_and_frees_the_rest() -> None:
    run = crashed(node("a", ask=Ask(cost=ONE), max_seconds=30.0), budget=Budget(cost=ONE, seconds=Decimal(500)))
    assert spent(run, "a") == Amounts(tasks=1, seconds=Decimal(30)), "no longer than it could have run"
    assert ledger(run, "a").reserved == Kept(attempt=2, amount=Amounts(cost=ONE, tasks=1))


def test_a_crash_counts_what_a_paid_call_reserved_as_spent() -> None:
    run = crashed(node("a", ask=Ask(cost=ONE), effect=Effect.PAID_CLOUD), budget=Budget(cost=Decimal("1.5")))
    assert run.status("a") is Status.READY
    assert ledger(run, "a").assumed == (Kept(attempt=1, amount=Amounts(cost=ONE)),)
    assert status_of(run) is RunStatus.BUDGET_EXHAUSTED


@pytest.mark.parametrize(
    ("answer", "cost"),
    [
        ({"outcome": "retry"}, "0"),
        ({"outcome": "failed"}, "1"),
        ({"outcome": "completed", "value": 1}, "1"),
        ({"outcome": "completed", "value": 1, "spent": {"cost": "0.3"}}, "0.3"),
    ],
)
def test_a_settlement_corrects_what_was_assumed_of_an_ambiguous_node(answer: dict[str, Any], cost: str) -> None:
    run = crashed(node("a", ask=Ask(cost=ONE), resume=Resume.AMBIGUOUS_AFTER_DISPATCH), budget=Budget(cost=ONE))
    assert run.status("a") is Status.AMBIGUOUS
    assert ledger(run, "a").assumed == (Kept(attempt=1, amount=Amounts(cost=ONE)),)
    run.request(RequestKind.SETTLE, "a", data=answer)
    assert (ledger(run, "a").assumed, spent(run, "a").cost) == ((), Decimal(cost))


@pytest.mark.parametrize(
    ("found", "cost"), [(Found(finding=Finding.RETRY), "0"), (value(cost=Decimal("0.2")), "0.2"), (as_value(1), "1")]
)
def test_a_reconciliation_says_what_a_crashed_paid_call_spent(found: Any, cost: str) -> None:
    paid = node("a", ask=Ask(cost=ONE), effect=Effect.PAID_CLOUD, resume=Resume.VERIFIED_RECEIPT)
    run = crashed(paid.model_copy(update={"label": "asks"}), budget=Budget(cost=Decimal(5)))
    run.send(Returned(node="a", attempt=1, outcome=found, release=None, reconciling=True))
    assert spent(run, "a").cost + sum(kept.amount.cost for kept in ledger(run, "a").assumed) == Decimal(cost)


def test_cancelled_calls_return_what_they_reserved_at_once() -> None:
    """Field case 90: of 20 reservations 10 are cancelled, 5 crash, 5 finish at a tenth; then the rest fits exactly."""
    calls = [node(f"n{number:02d}", ask=Ask(cost=ONE), resume=Resume.AMBIGUOUS_AFTER_DISPATCH) for number in range(20)]
    rest = [node("y", "n19", ask=Ask(cost=Decimal("14.5"))), node("z", "n19", ask=Ask(cost=Decimal("0.1")))]
    run = Drive(Model([*calls, *rest], limits=RunLimits(budget=Budget(cost=Decimal(20)))), jobs=30)
    run.begin()
    for number in range(10):
        run.request(RequestKind.CANCEL, f"n{number:02d}")
        run.returned(f"n{number:02d}", Aborted(reason="cancel"))
    for number in range(15, 20):
        run.returned(f"n{number:02d}", value(cost=Decimal("0.1")))
    assert [run.status(key) for key in "yz"] == [Status.RUNNING, Status.READY], (
        "20 less 0.5 and 5 reserved, to the cent"
    )
    run = run.crash()
    run.begin()
    nodes = tuple(f"n{number}" for number in range(10, 15))
    run.send(LeftoversEnded(nodes=nodes, ended={}, remaining={}))
    assert {run.status(key) for key in nodes} == {Status.AMBIGUOUS}
    assert run.status("z") is Status.READY, "what is unknown is held until somebody decides"
    run.request(RequestKind.SETTLE, "n10", data={"outcome": "failed", "spent": {"cost": "0.9"}})
    assert run.status("z") is Status.RUNNING


# --- retries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("exhausted", "status"), [("fail", Status.FAILED), ("block", Status.BLOCKED)])
def test_retries_of_the_run_used_up_fail_or_block_as_the_policy_says(exhausted: Any, status: Status) -> None:
    """G12: the reason says which limit; a person may raise it and try again, which costs one as well."""
    run = drive(node("a", retry=Retry(attempts=9, exhausted=exhausted)), gate("g"), budget=Budget(retries=1))
    run.failed("a")
    assert run.status("a") is Status.RUNNING
    run.failed("a")
    assert run.status("a") is status
    failure = run.state.nodes["a"].record.failure
    assert failure is not None
    assert failure.code is FailureCode.SUBPROCESS
    assert "needs 1 retries, the budget of the run has 0 left" in failure.message
    assert run.request(RequestKind.RETRY, "a") is not None
    assert "hostler" not in run.model.events("request-refused")[-1]["message"]
    assert run.status("a") is status
    run.request(RequestKind.BUDGET, data={"add": {"retries": 1}})
    run.request(RequestKind.RETRY, "a")
    assert run.status("a") is Status.RUNNING
    assert spent(run, "a").retries == 2


# --- requests, caps, ownership of a run that rests ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "data", "principal", "says"),
    [
        (None, {"add": {"tokens": 1}}, "human:ann", "the budget of the run does not limit tokens"),
        ("a", {"add": {"cost": 1}}, "human:ann", "the budget of node a does not limit cost"),
        (None, {"add": {"cost": -1}}, "human:ann", "does not say how much"),
        (None, {}, "human:ann", "does not say how much"),
        (None, {"add": {"cost": 1}}, "agent:x", "agent:x may not budget the run"),
    ],
)
def test_a_budget_is_raised_by_people_and_only_where_there_is_one(
    about: str | None, data: dict[str, Any], principal: str, says: str
) -> None:
    run = drive(node("a", ask=Ask(cost=ONE)), budget=Budget(cost=Decimal("0.5")))
    before = run.model.seen.ledgers
    run.request(RequestKind.BUDGET, about, data=data, principal=principal)
    assert says in run.model.events("request-refused")[-1]["message"]
    assert run.model.seen.ledgers == before
    assert status_of(run) is RunStatus.BUDGET_EXHAUSTED


def test_a_host_that_only_settles_requests_leaves_an_exhausted_run_exhausted_until_enough_is_added() -> None:
    """`hostler budget` of a run that nobody works on: it claims the run, adds, and hands it back to go on."""
    model = Model([node("a", ask=Ask(cost=ONE))], limits=RunLimits(budget=Budget(cost=Decimal("0.5"))))
    gone = left(Drive(model, release_at_rest=True).begin())
    assert gone is not None
    assert gone.status is RunStatus.BUDGET_EXHAUSTED
    for amount, status in (("0.2", RunStatus.BUDGET_EXHAUSTED), ("0.3", RunStatus.RUNNING)):
        helper = Drive(model, jobs=0, release_at_rest=True)
        model.asked += 1
        request = Request(
            request_id=f"r{model.asked}", run_id=RUN_ID, kind=RequestKind.BUDGET, principal=HUMAN,
            data={"add": {"cost": amount}}, at="2026-01-01T00:00:00.000Z",
        )  # fmt: skip
        model.post(request)
        for action in kinds(helper.begin(), Judge):
            helper.send(rule(action))
        assert helper.state.left
        assert model.status is status
    again = Drive(model)
    assert dispatched(again.begin()) == ["a"]


@pytest.mark.parametrize(("cap", "groups"), [("per_owner", "owner"), ("per_parent", "parent")])
def test_no_more_are_active_for_one_owner_or_parent_than_the_limits_say(cap: str, groups: str) -> None:
    nodes = [node(f"{who}{n}", **{groups: f"of-{who}"}) for who in "ab" for n in range(4)]  # type: ignore[arg-type]
    limits = RunLimits.model_validate({cap: 2})
    run = Drive(Model([gate("of-a"), gate("of-b"), *nodes, node("free")], limits=limits))
    run.begin()

    def running() -> list[str]:
        return [key for key, status in run.statuses().items() if status == "running"]

    assert running() == ["a0", "a1", "b0", "b1", "free"]
    run.returned("a1")
    assert running() == ["a0", "a2", "b0", "b1", "free"]
    run.request(RequestKind.CANCEL, "b2")
    run.returned("b0")
    assert running() == ["a0", "a2", "b1", "b3", "free"]
    run = run.crash()
    run.begin()
    run.send(LeftoversEnded(nodes=tuple(run.state.nodes), ended={}, remaining={}))
    assert len([key for key in running() if key.startswith("a")]) == 2


def test_a_node_that_is_cancelled_before_it_was_looked_at_again_holds_nobody_back() -> None:
    """Its lane goes on with the next; 52001 of the simulation."""
    run = drive(*(node(key, ask=Ask(tokens=1)) for key in "abc"), node("x"), budget=Budget(tokens=0))
    run.state.jobs = 1  # which x takes
    run.request(RequestKind.BUDGET, data={"add": {"tokens": 1}})
    assert run.statuses() == {**dict.fromkeys("abc", "ready"), "x": "running"}
    run.request(RequestKind.CANCEL, "a")
    run.returned("x")
    assert run.statuses() == {"a": "cancelled", "b": "running", "c": "ready", "x": "completed"}


def test_change_names_are_those_of_the_log() -> None:
    assert [change.value for change in Change] == ["reserve", "spend", "settle", "correct", "add"]
