"""What work costs: tokens, money, seconds, tasks and retries, in exact arithmetic.

Money and seconds are decimals, kept as text in the store, so that 0.1 and 0.2 fit 0.3.
"""

import re
from collections.abc import Callable
from decimal import Context, Decimal, Inexact
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from store.fields import MAX_SAFE_INTEGER, Contract

Number = int | Decimal

LARGEST: Final = Decimal(MAX_SAFE_INTEGER)
PLACES: Final = 9
"""Decimal places of the smallest amount."""
_DECIMAL: Final = re.compile(rf"\d{{1,16}}(\.\d{{0,{PLACES}}}0*)?")


def decimal_text(value: Decimal) -> str:
    """Return the one text of *value*: no exponent, no zeros that say nothing."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _exact(value: Any) -> Any:
    """Take what people write (0.1, 3, "0.10") for the decimal that they mean."""
    if isinstance(value, Decimal):
        value = f"{value:f}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{Decimal(repr(value)):f}"
    if not isinstance(value, str):
        return value
    if not _DECIMAL.fullmatch(value):
        raise ValueError(f"a number from 0 is wanted, of at most {PLACES} decimal places")
    return Decimal(decimal_text(Decimal(value)))


Amount = Annotated[
    Decimal,
    BeforeValidator(_exact),
    Field(ge=0, le=LARGEST),
    PlainSerializer(decimal_text, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": MAX_SAFE_INTEGER},
                {"type": "string", "pattern": r"^\d{1,16}(\.\d{1,9})?$"},
            ]
        }
    ),
]
"""A decimal of at most nine places, not negative; text in the store."""
Count = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]


class Budget(Contract):
    """How much may be spent; None is no limit.

    Attributes:
        tokens: Of language models.
        cost: Money, in the one currency that the user thinks in.
        seconds: Of work, from admission to its end.
        tasks: Attempts that start.
        retries: Attempts after a failure.

    """

    tokens: Count | None = None
    cost: Amount | None = None
    seconds: Amount | None = None
    tasks: Count | None = None
    retries: Count | None = None


class Usage(Contract):
    """What an attempt says that it spent; seconds, tasks and retries are counted by the host.

    Attributes:
        tokens: Of language models.
        cost: Money.

    """

    tokens: Count = 0
    cost: Amount = Decimal(0)


class Amounts(Contract):
    """So much of each.

    Attributes:
        tokens: Of language models.
        cost: Money.
        seconds: Of work, from admission to its end.
        tasks: Attempts that started.
        retries: Attempts after a failure.

    """

    tokens: Count = 0
    cost: Amount = Decimal(0)
    seconds: Amount = Decimal(0)
    tasks: Count = 0
    retries: Count = 0

    def but_nothing(self) -> dict[str, int | str]:
        """Return what is more than nothing, as JSON."""
        return {name: value for name, value in self.model_dump(mode="json").items() if value not in (0, "0")}


NOTHING: Final = Amounts()

COUNTERS: Final = tuple(Amounts.model_fields)
"""What is counted, in the order in which a shortage is looked for."""

EXACT: Final = Context(prec=64, traps=[Inexact])
"""Arithmetic that never rounds: what would is an error."""


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Return both together; what no field can hold stays at the largest that it can."""
    return _combined(one, other, lambda a, b: min(EXACT.add(Decimal(a), Decimal(b)), LARGEST))


def monus(one: Amounts, other: Amounts) -> Amounts:
    """Return what is left of *one* without *other*, never less than nothing."""
    return _combined(one, other, lambda a, b: max(EXACT.subtract(Decimal(a), Decimal(b)), Decimal(0)))


def _combined(one: Amounts, other: Amounts, operator: Callable[[Number, Number], Decimal]) -> Amounts:
    found = {name: operator(getattr(one, name), getattr(other, name)) for name in COUNTERS}
    return Amounts.model_construct(
        tokens=int(found["tokens"]),
        cost=found["cost"],
        seconds=found["seconds"],
        tasks=int(found["tasks"]),
        retries=int(found["retries"]),
    )


class Ask(Contract):
    """What an attempt wants to be kept for it before it starts.

    Attributes:
        tokens: Of language models.
        cost: Money.
        seconds: Of work.

    """

    tokens: Count = 0
    cost: Amount = Decimal(0)
    seconds: Amount = Decimal(0)


class Demand(Contract):
    """How much of its budgets an attempt reserves before it starts.

    Attributes:
        ask: What it wants.
        minimum: What it starts with at least, where there is less; None is all that it asks.

    """

    ask: Ask = Ask()
    minimum: Ask | None = None

    @model_validator(mode="after")
    def _ordered(self) -> "Demand":
        if self.minimum is not None:
            for name in Ask.model_fields:
                if getattr(self.minimum, name) > getattr(self.ask, name):
                    raise ValueError(f"its minimum of {name} is more than it asks")
        return self

    @property
    def least(self) -> Ask:
        """What it starts with at least."""
        return self.ask if self.minimum is None else self.minimum
