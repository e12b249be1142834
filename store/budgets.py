"""Budgets: what each of them has left, and whether more fits. Pure.

A node draws on its own budget, on those of all nodes that delegated it, and on the run's; what was reserved and spent
stands in their ledgers.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from pydantic import JsonValue, ValidationError

from store.amounts import COUNTERS, EXACT, NOTHING, Amounts, Ask, Budget, Number, decimal_text, plus
from store.lazy_dataclass import dataclass
from store.ledgers import Entry, Holder, Ledger, apply
from store.plans import GraphPlan, PlannedNode


def read_amounts(data: object) -> Amounts:
    """Return what people ask to add.

    Raises:
        ValueError: It is nothing, or no amounts.

    """
    try:
        amounts = Amounts.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(str(step) for step in first['loc']) or 'it'}: {first['msg']}") from None
    if amounts == NOTHING:
        raise ValueError("it is nothing")
    return amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Why an attempt does not fit.

    Attributes:
        holder: Whose budget has too little left.
        counter: Of what.
        needed: What the attempt starts with at least.
        left: What is left, which is less; below nothing where more was spent than allowed.

    """

    holder: Holder
    counter: str
    needed: Number
    left: Number

    @property
    def missing(self) -> str:
        """How much would have to be added."""
        return decimal_text(EXACT.subtract(Decimal(self.needed), Decimal(self.left)))

    def __str__(self) -> str:
        whose = "the run" if self.holder is None else f"node {self.holder}"
        needed, left = (decimal_text(Decimal(number)) for number in (self.needed, self.left))
        return f"it needs {needed} {self.counter}, the budget of {whose} has {left} left"

    def to_json(self) -> dict[str, JsonValue]:
        """Return it for an event."""
        return {
            "holder": self.holder,
            "counter": self.counter,
            "needed": decimal_text(Decimal(self.needed)),
            "left": decimal_text(Decimal(self.left)),
        }


def is_limited(plan: GraphPlan) -> bool:
    """Say whether a plan has any budget."""
    return plan.limits.budget is not None or any(
        node.terms is not None and node.terms.budget is not None for node in plan.nodes
    )


class Books:
    """All ledgers of a run, with what every budget has left.

    Args:
        plan: Its budgets, and who was delegated by whom.
        ledgers: As they are stored.

    Attributes:
        limited: Whether there is any budget, so that attempts reserve and are counted.
        ledgers: Of the run and of each node that has one.
        reservations: How many attempts have something reserved.

    """

    def __init__(self, plan: GraphPlan, ledgers: Iterable[Ledger] = ()) -> None:
        self._budgets: dict[Holder, Budget] = {None: plan.limits.budget} if plan.limits.budget is not None else {}
        self._parents: dict[str, str] = {}
        for node in plan.nodes:
            if node.terms is None:
                continue
            if node.terms.budget is not None:
                self._budgets[node.key] = node.terms.budget
            if node.terms.parent is not None:
                self._parents[node.key] = node.terms.parent
        self._delegates = frozenset(self._parents.values())
        self._used: dict[Holder, dict[str, Number]] = {holder: dict.fromkeys(COUNTERS, 0) for holder in self._budgets}
        self.limited = bool(self._budgets)
        self.ledgers: dict[Holder, Ledger] = {}
        self.reservations = 0
        for ledger in ledgers:
            self._put(ledger)

    def post(self, entry: Entry) -> tuple[Ledger, tuple[Holder, ...]]:
        """Make one change.

        Returns:
            The ledger after it, and whose budgets have more left than before.

        Raises:
            InconsistentError: It does not fit.

        """
        after = apply(self.ledgers.get(entry.node) or Ledger(node=entry.node), entry)
        return after, self._put(after)

    def _put(self, after: Ledger) -> tuple[Holder, ...]:
        before = self.ledgers.get(after.node) or Ledger(node=after.node)
        self.ledgers[after.node] = after
        self.reservations += (after.reserved is not None) - (before.reserved is not None)
        was, now = before.used, after.used
        changes = {
            name: EXACT.subtract(Decimal(getattr(now, name)), Decimal(getattr(was, name)))
            for name in COUNTERS
            if getattr(now, name) != getattr(was, name)
        }
        for holder in self.chain(after.node):
            used = self._used[holder]
            for name, change in changes.items():
                used[name] = EXACT.add(Decimal(used[name]), change)
        if any(change < 0 for change in changes.values()):
            return self.chain(after.node)
        return (after.node,) if before.added != after.added else ()

    def chain(self, key: Holder) -> tuple[Holder, ...]:
        """Return whose budgets a node draws on: its own, those of all that delegated it, the run's."""
        holders: list[Holder] = []
        while key is not None:
            holders += [key] if key in self._budgets else []
            key = self._parents.get(key)
        return (*holders, None) if None in self._budgets else tuple(holders)

    def limit(self, holder: Holder, counter: str) -> Number | None:
        """Return how much a budget allows, with what was added; None is without limit."""
        budget = self._budgets.get(holder)
        allowed: Number | None = None if budget is None else getattr(budget, counter)
        ledger = self.ledgers.get(holder)
        if allowed is None or ledger is None:
            return allowed
        return EXACT.add(Decimal(allowed), Decimal(getattr(ledger.added, counter)))

    def left(self, holder: Holder, counter: str) -> Number | None:
        """Return how much of a budget is left, below nothing where it is overdrawn; None is without limit."""
        limit = self.limit(holder, counter)
        if limit is None:
            return None
        return EXACT.subtract(Decimal(limit), Decimal(self._used[holder][counter]))

    def offer(self, node: PlannedNode) -> Amounts | Misfit:
        """Return what the next attempt of *node* may reserve, or why it may not start."""
        granted: dict[str, Number] = {}
        chain = self.chain(node.key)
        for counter, (wanted, least) in self._demand(node).items():
            granted[counter] = wanted
            for holder in chain:
                left = self.left(holder, counter)
                if left is None:
                    continue
                if left < least:
                    return Misfit(holder=holder, counter=counter, needed=least, left=left)
                granted[counter] = min(granted[counter], left)
        return _amounts(granted)

    def _demand(self, node: PlannedNode) -> dict[str, tuple[Number, Number]]:
        """Return what the next attempt of *node* wants, and with how much it starts at least, by counter."""
        demand = node.policy.budget
        wanted: dict[str, tuple[Number, Number]] = {}
        for counter in Ask.model_fields:
            if demand is not None:
                wanted[counter] = getattr(demand.ask, counter), getattr(demand.least, counter)
            else:
                own = self._own(node.key, counter)
                wanted[counter] = own, own
        wanted["tasks"] = 1, 1
        return wanted

    def _own(self, key: str, counter: str) -> Number:
        """Return what is left of a node's own budget; as much again where nothing is; nothing if it delegates."""
        left = None if key in self._delegates else self.left(key, counter)
        if left is None:
            return 0
        return left if left > 0 else self.limit(key, counter) or 0

    def retry_misfit(self, key: str) -> Misfit | None:
        """Say why a node may not be tried again after a failure, None if it may."""
        for holder in self.chain(key):
            left = self.left(holder, "retries")
            if left is not None and left < 1:
                return Misfit(holder=holder, counter="retries", needed=1, left=left)
        return None

    def allowance(self, key: str) -> Budget:
        """Return what the attempt of a node that has reserved may spend; None where nothing limits it."""
        ledger = self.ledgers.get(key)
        kept = NOTHING if ledger is None or ledger.reserved is None else ledger.reserved.amount
        found: dict[str, Number | None] = {}
        for counter in COUNTERS:
            lefts = [left for holder in self.chain(key) if (left := self.left(holder, counter)) is not None]
            own = getattr(kept, counter) if counter in Ask.model_fields else 0
            found[counter] = own or (max(min(lefts), 0) if lefts else None)
        return Budget(
            tokens=_whole(found["tokens"]),
            cost=_decimal(found["cost"]),
            seconds=_decimal(found["seconds"]),
            tasks=_whole(found["tasks"]),
            retries=_whole(found["retries"]),
        )

    def delegated(self, key: str) -> Amounts:
        """Return what the nodes that *key* delegated to, and those that these did, have spent."""
        total = NOTHING
        for other, ledger in self.ledgers.items():
            if other != key and key in self._ancestry(other):
                total = plus(total, ledger.spent)
        return total

    def _ancestry(self, key: Holder) -> list[str]:
        found = []
        while key is not None:
            found.append(key)
            key = self._parents.get(key)
        return found

    @property
    def spent(self) -> Amounts:
        """What all nodes together have spent."""
        total = NOTHING
        for ledger in self.ledgers.values():
            total = plus(total, ledger.spent)
        return total


def _amounts(numbers: Mapping[str, Number]) -> Amounts:
    return Amounts(
        tokens=int(numbers["tokens"]),
        cost=Decimal(numbers["cost"]),
        seconds=Decimal(numbers["seconds"]),
        tasks=int(numbers["tasks"]),
    )


def _decimal(number: Number | None) -> Decimal | None:
    return None if number is None else Decimal(number)


def _whole(number: Number | None) -> int | None:
    return None if number is None else int(number)
