"""Ledgers: what was reserved and spent, changed by one entry after the other. Pure.

Each node has a ledger of its own, and so has the run, for what was added to its budget. Every change is one `Entry`,
which the log tells of; so the ledgers are what the log adds up to, and nothing else.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from pydantic import Field, JsonValue

from store.amounts import NOTHING, Amounts, monus, plus
from store.fields import Attempt, Contract, NodeKey
from store.lifecycle import Status

Holder = str | None
"""Whose budget: a node's key, or None for the run."""

HOLDING: Final = frozenset({Status.QUEUED, Status.RUNNING, Status.VERIFYING})
"""Where a node's attempt may have something reserved."""


class Change(StrEnum):
    """What an entry does to a ledger."""

    RESERVE = "reserve"
    SPEND = "spend"
    SETTLE = "settle"
    CORRECT = "correct"
    ADD = "add"


class Entry(Contract):
    """One change of one ledger.

    Attributes:
        node: Whose ledger; None is the run's.
        attempt: Which attempt it is about.
        change: `reserve` keeps *amount* for the attempt; `spend` takes it, first from what is kept; `settle` takes it
            and gives back what else is kept; `correct` takes it in place of what was assumed of the attempt; `add`
            raises the budget.
        assumed: Of `settle`: what else is kept counts as spent, until a correction says better.

    """

    node: NodeKey | None = None
    attempt: Attempt | None = None
    change: Change = Field(strict=False)
    amount: Amounts = NOTHING
    assumed: bool = False

    def to_data(self) -> dict[str, JsonValue]:
        """Return what the event that tells of it holds."""
        data: dict[str, JsonValue] = {"change": self.change.value, "amount": dict(self.amount.but_nothing())}
        if self.assumed:
            data["assumed"] = True
        return data

    @classmethod
    def from_data(cls, node: str | None, attempt: int | None, data: Mapping[str, Any]) -> "Entry":
        """Read what `to_data` wrote.

        Raises:
            ValueError: It is no entry.

        """
        return cls.model_validate({"node": node, "attempt": attempt, **data})


class Kept(Contract):
    """So much, of one attempt."""

    attempt: Attempt
    amount: Amounts


class Ledger(Contract):
    """What one node reserved and spent itself, or what was added to the budget of the run.

    Attributes:
        node: Whose it is; None is the run's.
        reserved: Kept for the attempt that is queued or runs.
        assumed: Counted as spent by attempts of which it is not known.
        spent: Said to be spent, or counted by the host.
        added: To the budget of the plan, by people.

    """

    node: NodeKey | None = None
    reserved: Kept | None = None
    assumed: tuple[Kept, ...] = Field(default=(), strict=False)
    spent: Amounts = NOTHING
    added: Amounts = NOTHING

    @property
    def used(self) -> Amounts:
        """All that is not free any more."""
        total = self.spent if self.reserved is None else plus(self.spent, self.reserved.amount)
        for kept in self.assumed:
            total = plus(total, kept.amount)
        return total


class InconsistentError(ValueError):
    """An entry that does not fit its ledger."""


def apply(ledger: Ledger, entry: Entry) -> Ledger:
    """Return *ledger* as it is after *entry*.

    Raises:
        InconsistentError: The entry does not fit.

    """
    match entry.change:
        case Change.RESERVE:
            if ledger.reserved is not None or entry.attempt is None:
                raise InconsistentError(f"attempt {entry.attempt} reserves beside what is reserved")
            return _changed(ledger, reserved=Kept(attempt=entry.attempt, amount=entry.amount))
        case Change.SPEND:
            spent = plus(ledger.spent, entry.amount)
            kept = ledger.reserved
            if kept is None or kept.attempt != entry.attempt:
                return _changed(ledger, spent=spent)
            return _changed(
                ledger, spent=spent, reserved=Kept(attempt=kept.attempt, amount=monus(kept.amount, entry.amount))
            )
        case Change.SETTLE:
            return _settled(ledger, entry)
        case Change.CORRECT:
            return _changed(
                ledger,
                spent=plus(ledger.spent, entry.amount),
                assumed=tuple(kept for kept in ledger.assumed if kept.attempt != entry.attempt),
            )
        case Change.ADD:
            return _changed(ledger, added=plus(ledger.added, entry.amount))


def _settled(ledger: Ledger, entry: Entry) -> Ledger:
    kept = ledger.reserved
    if kept is None or kept.attempt != entry.attempt:
        raise InconsistentError(f"attempt {entry.attempt} settles what it has not reserved")
    assumed = ledger.assumed
    if entry.assumed:
        rest = Amounts(tokens=kept.amount.tokens, cost=kept.amount.cost)
        if rest != NOTHING:
            assumed = (*assumed, Kept(attempt=kept.attempt, amount=rest))
    return _changed(ledger, reserved=None, spent=plus(ledger.spent, entry.amount), assumed=assumed)


def _changed(ledger: Ledger, **fields: Any) -> Ledger:
    return ledger.model_copy(update=fields)


def fold(entries: Iterable[Entry]) -> dict[Holder, Ledger]:
    """Return the ledgers that *entries* add up to.

    Raises:
        InconsistentError: One of them does not fit what came before it.

    """
    ledgers: dict[Holder, Ledger] = {}
    for entry in entries:
        ledgers[entry.node] = apply(ledgers.get(entry.node) or Ledger(node=entry.node), entry)
    return ledgers
