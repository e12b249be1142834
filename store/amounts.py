"""What work costs: tokens, money, seconds, tasks and retries, in exact arithmetic.

Money and seconds are decimals, kept as text in the store, so that 0.1 and 0.2 fit 0.3.
"""

import re
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from store.fields import MAX_SAFE_INTEGER, Contract

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
