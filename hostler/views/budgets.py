"""What a run and its nodes may spend and have spent, and which nodes no budget lets go. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from hostler.views.waiting import Waiting, waiting_on
from store.amounts import COUNTERS, NOTHING, Amounts, Budget, Demand, Number, decimal_text, plus
from store.budgets import Books, Misfit
from store.contracts import NodeRecord
from store.ledgers import Holder, Ledger
from store.lifecycle import RUN_RESTING, Status
from store.plans import GraphPlan
from store.run_view import RunView

NAMES: Final = {"tokens": "tokens", "cost": "cost", "seconds": "s", "tasks": "tasks", "retries": "retries"}


def books_of(run: RunView, plan: GraphPlan) -> Books:
    """Return the ledgers of a run with what its budgets have left."""
    return Books(plan, run.ledgers)


def waits(run: RunView, plan: GraphPlan, nodes: Sequence[NodeRecord]) -> list[Waiting]:
    """Return all of a run that waits for a person: nodes that rest, then ready ones that no budget lets go.

    Args:
        run: The run.
        plan: Its graph plan.
        nodes: Its nodes, in the order of the plan.

    """
    blocked = {node.key for node in nodes if node.status is Status.BLOCKED}
    found = waiting_on(run.record.run_id, plan, nodes)
    if blocked:
        found = [_with_retries(run, plan, one) if one.node in blocked else one for one in found]
    return [*found, *short(run, plan, nodes)]


def _with_retries(run: RunView, plan: GraphPlan, waiting: Waiting) -> Waiting:
    """Return what moves a blocked node where no budget has a retry of it left: that comes first."""
    if not waiting.command.startswith(f"hostler retry {run.record.run_id}"):
        return waiting
    more = more_retries(run, plan, waiting.node)
    if more is None:
        return waiting
    return replace(waiting, message=f"{waiting.message}; no budget has a retry left", command=more)


def more_retries(run: RunView, plan: GraphPlan, node: str) -> str | None:
    """Return what to type before a node can be tried again whose budgets have no retry left; None if they have."""
    misfit = books_of(run, plan).retry_misfit(node)
    if misfit is None:
        return None
    whose = "" if misfit.holder is None else f" {misfit.holder}"
    return f"hostler budget {run.record.run_id}{whose} --add retries=1"


def short(run: RunView, plan: GraphPlan, nodes: Sequence[NodeRecord]) -> list[Waiting]:
    """Return the ready nodes of a run that rests which no budget lets go, and what would."""
    ready = [node for node in nodes if node.status is Status.READY] if run.status in RUN_RESTING else []
    if not ready:
        return []
    planned, books = {node.key: node for node in plan.nodes}, books_of(run, plan)
    found = []
    for node in ready:
        offer = books.offer(planned[node.key])
        if isinstance(offer, Misfit):
            whose = "" if offer.holder is None else f" {offer.holder}"
            found.append(
                Waiting(
                    node=node.key,
                    reason=node.status,
                    message=f"budget exhausted: {offer}",
                    plan_sha256=node.frozen_sha256,
                    command=f"hostler budget {run.record.run_id}{whose} --add {offer.counter}={offer.missing}",
                )
            )
    return found


def usage_json(amounts: Amounts) -> dict[str, Any]:
    """Return what was spent, leaving out what is nothing; money and seconds are texts, since they are exact."""
    return dict(amounts.but_nothing())


def budget_json(books: Books, holder: Holder) -> dict[str, Any] | None:
    """Return a budget, None if the run or the node has none: of each counter the limit and what is left of it."""
    limits = _limits(books, holder)
    if not limits:
        return None
    return {
        counter: {"limit": _json(counter, limit), "left": _json(counter, books.left(holder, counter) or 0)}
        for counter, limit in limits.items()
    }


def _limits(books: Books, holder: Holder) -> dict[str, Number]:
    found = {counter: books.limit(holder, counter) for counter in COUNTERS}
    return {counter: limit for counter, limit in found.items() if limit is not None}


def _json(counter: str, number: Number) -> int | str:
    return decimal_text(Decimal(number)) if counter in ("cost", "seconds") else int(number)


def kept(ledger: Ledger) -> Amounts:
    """Return what is reserved, or assumed to be spent, of a ledger."""
    total = NOTHING if ledger.reserved is None else ledger.reserved.amount
    for one in ledger.assumed:
        total = plus(total, one.amount)
    return total


def budget_lines(run: RunView, plan: GraphPlan) -> list[str]:
    """Return the budgets of a run and its nodes and what was spent, a line each; nothing where there is neither."""
    books = books_of(run, plan)
    lines = [
        f"budget of {'the run' if holder is None else holder}: {_left_text(books, holder, limits)}"
        for holder in (None, *(node.key for node in plan.nodes))
        if (limits := _limits(books, holder))
    ]
    if books.spent != NOTHING:
        lines.append(f"spent: {amounts_text(books.spent)}")
    for node, ledger in books.ledgers.items():
        assumed = kept(ledger.model_copy(update={"reserved": None}))
        if assumed != NOTHING:
            lines.append(f"{node}: {amounts_text(assumed)} count as spent, since nobody knows")
    return lines


def _left_text(books: Books, holder: Holder, limits: dict[str, Number]) -> str:
    return ", ".join(
        f"{decimal_text(Decimal(books.left(holder, counter) or 0))} of {decimal_text(Decimal(limit))}"
        f" {NAMES[counter]} left"
        for counter, limit in limits.items()
    )


def amounts_text(amounts: Amounts | Budget) -> str:
    """Return amounts for people, or the limits of a budget."""
    found = ((name, getattr(amounts, name)) for name in COUNTERS)
    named = [
        f"{decimal_text(Decimal(number))} {NAMES[name]}"
        for name, number in found
        if number is not None and (number or isinstance(amounts, Budget))
    ]
    return ", ".join(named) or "nothing"


def demand_text(demand: Demand) -> str:
    """Return for people what an attempt reserves."""
    ask, least = demand.ask.model_dump(), demand.least.model_dump()
    text = amounts_text(Amounts(**ask))
    return text if ask == least else f"{text}, at least {amounts_text(Amounts(**least))}"
