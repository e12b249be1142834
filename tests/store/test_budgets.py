"""What fits a budget, what an attempt keeps and gives back, and that ledgers are what their entries add up to."""

import random
from decimal import ROUND_DOWN, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.amounts import COUNTERS, NOTHING, Amounts, Ask, Budget, Demand, monus, plus
from store.budgets import Books, Misfit, read_amounts
from store.ledgers import Change, Entry, InconsistentError, Ledger, apply, fold
from store.plans import GraphPlan, PlannedNode, RunLimits
from store.policy import Policy
from store.terms import Terms
from tests.store.support import OPERATION


def node(
    key: str,
    *,
    parent: str | None = None,
    budget: Budget | None = None,
    ask: Ask | None = None,
    least: Ask | None = None,
) -> PlannedNode:
    terms = Terms(parent=parent, budget=budget) if parent or budget else None
    policy = Policy(budget=None if ask is None else Demand(ask=ask, minimum=least))
    return PlannedNode(key=key, executor=OPERATION, input=None, policy=policy, terms=terms)


def books(*nodes: PlannedNode, budget: Budget | None = None) -> Books:
    plan = GraphPlan(workflow="w", version=1, inputs={}, nodes=nodes, limits=RunLimits(budget=budget))
    return Books(plan)


def start(of: Books, wanted: PlannedNode, attempt: int = 1) -> Amounts | Misfit:
    offer = of.offer(wanted)
    if isinstance(offer, Amounts):
        of.post(Entry(node=wanted.key, attempt=attempt, change=Change.RESERVE, amount=offer))
    return offer


def settle(of: Books, key: str, attempt: int = 1, *, assumed: bool = False, **amount) -> None:
    spent = Amounts.model_validate({"tasks": 1, **amount})
    of.post(Entry(node=key, attempt=attempt, change=Change.SETTLE, amount=spent, assumed=assumed))


def test_of_two_that_ask_1000_of_1500_one_starts_and_the_other_when_enough_came_back() -> None:
    """G6: 1,500 tokens left and two nodes asking 1,000 (minimum 1,000)."""
    first, second = (node(key, ask=Ask(tokens=1000)) for key in ("a", "b"))
    run = books(first, second, budget=Budget(tokens=1500))
    assert start(run, first) == Amounts(tokens=1000, tasks=1)
    assert start(run, second) == Misfit(holder=None, counter="tokens", needed=1000, left=Decimal(500))
    run.post(Entry(node="a", attempt=1, change=Change.SPEND, amount=Amounts(tokens=400)))
    assert isinstance(run.offer(second), Misfit), "what is not spent is still kept"
    settle(run, "a")
    assert start(run, second) == Amounts(tokens=1000, tasks=1)


def test_a_minimum_lets_an_attempt_start_with_less() -> None:
    first = node("a", ask=Ask(tokens=1000), least=Ask(tokens=200))
    run = books(first, budget=Budget(tokens=300))
    assert start(run, first) == Amounts(tokens=300, tasks=1)


@pytest.mark.parametrize(("limit", "both"), [("0.3", True), ("0.299999999", False)])
def test_costs_of_a_tenth_and_two_tenths_fit_three_tenths(limit: str, both: bool) -> None:
    """G6: costs 0.1 and 0.2 against 0.3 → both; money is decimal, whatever people write."""
    first, second = (
        node("a", ask=Ask.model_validate({"cost": 0.1})),
        node("b", ask=Ask.model_validate({"cost": "0.20"})),
    )
    run = books(first, second, budget=Budget.model_validate({"cost": limit}))
    assert isinstance(start(run, first), Amounts)
    assert isinstance(start(run, second), Amounts) is both


def test_a_node_draws_on_its_own_budget_on_every_ancestors_and_on_the_runs() -> None:
    """G8: a parent's budget of one task and two ready children → only one starts."""
    top, middle = node("top", budget=Budget(tasks=1)), node("mid", parent="top")
    children = [node(key, parent="mid") for key in ("c1", "c2")]
    run = books(top, middle, *children, budget=Budget(tasks=9))
    assert isinstance(start(run, children[0]), Amounts)
    assert start(run, children[1]) == Misfit(holder="top", counter="tasks", needed=1, left=Decimal(0))
    settle(run, "c1")
    assert isinstance(run.offer(children[1]), Misfit), "a task that was done does not come back"
    assert run.delegated("top") == run.delegated("mid") == run.spent == Amounts(tasks=1)


def test_a_node_that_says_nothing_else_asks_for_what_is_left_of_its_own_budget() -> None:
    one = node("a", budget=Budget(cost=Decimal(2)))
    run = books(one, node("b"), budget=Budget(cost=Decimal(3)))
    assert start(run, one) == Amounts(cost=Decimal(2), tasks=1)
    assert run.offer(node("b")) == Amounts(tasks=1), "who has no budget of its own reserves only its task"
    run.post(Entry(node="a", attempt=1, change=Change.SPEND, amount=Amounts(cost=Decimal(2))))
    settle(run, "a")
    assert run.offer(one) == Misfit(holder="a", counter="cost", needed=Decimal(2), left=Decimal(0))


def test_what_delegates_does_not_keep_the_budget_of_those_it_delegates_to() -> None:
    parent, child = node("p", budget=Budget(cost=Decimal(2))), node("c", parent="p", ask=Ask(cost=Decimal(2)))
    run = books(parent, child)
    assert isinstance(start(run, parent), Amounts)
    assert isinstance(start(run, child), Amounts)


def test_a_budget_that_is_overdrawn_lets_nothing_more_start() -> None:
    one, other = node("a", ask=Ask(cost=Decimal(1))), node("b")
    run = books(one, other, budget=Budget(cost=Decimal(1)))
    start(run, one)
    run.post(Entry(node="a", attempt=1, change=Change.SPEND, amount=Amounts(cost=Decimal("1.5"))))
    settle(run, "a")
    assert run.offer(other) == Misfit(holder=None, counter="cost", needed=0, left=Decimal("-0.5"))
    _, eased = run.post(Entry(change=Change.ADD, amount=Amounts(cost=Decimal("0.5"))))
    assert eased == (None,)
    assert isinstance(run.offer(other), Amounts)


def test_what_is_assumed_counts_until_a_correction_says_better() -> None:
    one = node("a", ask=Ask(cost=Decimal(1)))
    run = books(one, budget=Budget(cost=Decimal(1)))
    start(run, one)
    settle(run, "a", assumed=True)
    assert isinstance(run.offer(one), Misfit)
    assert run.reservations == 0
    run.post(Entry(node="a", attempt=1, change=Change.CORRECT))
    assert isinstance(run.offer(one), Amounts)


def test_the_allowance_of_an_attempt_is_what_it_reserved_and_else_what_is_left() -> None:
    one = node("a", ask=Ask(tokens=10))
    run = books(one, budget=Budget(tokens=100, cost=Decimal(5)))
    start(run, one)
    assert run.allowance("a") == Budget(tokens=10, cost=Decimal(5))


def test_retries_are_counted_like_everything_else() -> None:
    run = books(node("a"), budget=Budget(retries=1))
    assert run.retry_misfit("a") is None
    run.post(Entry(node="a", attempt=1, change=Change.SPEND, amount=Amounts(retries=1)))
    assert str(run.retry_misfit("a")) == "it needs 1 retries, the budget of the run has 0 left"


@pytest.mark.parametrize(
    "entry",
    [
        Entry(node="a", attempt=2, change=Change.RESERVE),
        Entry(node="a", change=Change.RESERVE),
        Entry(node="a", attempt=2, change=Change.SETTLE),
    ],
)
def test_entries_that_contradict_the_ledger_are_refused(entry: Entry) -> None:
    """G9: an inconsistent ledger entry."""
    held = apply(Ledger(node="a"), Entry(node="a", attempt=1, change=Change.RESERVE, amount=Amounts(tasks=1)))
    with pytest.raises(InconsistentError):
        apply(held, entry)
    with pytest.raises(InconsistentError):
        apply(Ledger(node="a"), Entry(node="a", attempt=1, change=Change.SETTLE))


@pytest.mark.parametrize(
    "data", [None, {}, {"cost": -1}, {"cost": "0.0"}, {"money": 1}, {"tokens": 1.5}, {"cost": "1e3"}]
)
def test_what_is_no_amount_cannot_be_added(data: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_amounts(data)


numbers = st.integers(min_value=0, max_value=2**53 - 1)
decimals = st.decimals(min_value=0, max_value=10**9, places=9, allow_nan=False)
amounts = st.builds(Amounts, tokens=numbers, cost=decimals, seconds=decimals, tasks=numbers, retries=numbers)


@given(amounts, amounts)
def test_arithmetic_is_exact(one: Amounts, other: Amounts) -> None:
    both = plus(one, other)
    if all(getattr(both, name) < 2**53 - 1 for name in COUNTERS):
        assert monus(both, other) == one
    assert monus(one, both) == NOTHING
    assert Amounts.model_validate_json(both.model_dump_json()) == both


@settings(max_examples=50)
@given(st.integers(min_value=0, max_value=2**32))
def test_ledgers_and_what_is_left_are_what_the_entries_add_up_to_in_any_interleaving(seed: int) -> None:
    """Whatever order attempts reserve, spend, settle and are corrected in, nothing overshoots and nothing is lost."""
    chance = random.Random(seed)
    budget = Budget(tokens=chance.randint(0, 50), cost=Decimal(chance.randint(0, 50)) / 10, tasks=chance.randint(0, 30))
    nodes = [node("p", budget=Budget(tokens=20))]
    for index in range(6):
        ask = Ask(tokens=chance.randint(0, 20), cost=Decimal(chance.randint(0, 20)) / 10)
        nodes.append(node(f"n{index}", parent=chance.choice([None, "p"]), ask=ask, least=chance.choice([None, Ask()])))
    run, entries = books(*nodes, budget=budget), []
    attempts = dict.fromkeys((each.key for each in nodes), 0)

    def post(key: str | None, change: Change, **fields) -> None:
        entry = Entry(node=key, attempt=attempts[key] if key else None, change=change, **fields)
        entries.append(Entry.from_data(entry.node, entry.attempt, entry.to_data()))
        run.post(entry)

    for _ in range(60):
        each = chance.choice(nodes)
        ledger = run.ledgers.get(each.key) or Ledger(node=each.key)
        if ledger.reserved is None:
            offer = run.offer(each)
            if isinstance(offer, Amounts):
                attempts[each.key] += 1
                post(each.key, Change.RESERVE, amount=offer)
            elif chance.random() < 0.1:
                post(None, Change.ADD, amount=Amounts(tokens=5))
        elif chance.random() < 0.4:
            kept = ledger.reserved.amount
            half = (kept.cost / 2).quantize(Decimal("1e-9"), ROUND_DOWN)  # halved ten times it would be no amount
            spent = Amounts(tokens=chance.randint(0, kept.tokens), cost=half)
            post(each.key, Change.SPEND, amount=spent)
        elif chance.random() < 0.8:
            post(each.key, Change.SETTLE, amount=Amounts(tasks=1), assumed=chance.random() < 0.3)
        elif ledger.assumed:
            post(each.key, Change.CORRECT, amount=Amounts(tokens=1) if chance.random() < 0.1 else NOTHING)
    assert fold(entries) == run.ledgers
    again = Books(GraphPlan(workflow="w", version=1, inputs={}, nodes=nodes, limits=RunLimits(budget=budget)),
                  run.ledgers.values())  # fmt: skip
    for holder in (None, "p"):
        for counter in COUNTERS:
            assert again.left(holder, counter) == run.left(holder, counter)
    assert again.reservations == run.reservations
    if not any(entry.change is Change.CORRECT and entry.amount != NOTHING for entry in entries):
        assert all((run.left(holder, name) or 0) >= 0 for holder in (None, "p") for name in COUNTERS), "overshoot"
