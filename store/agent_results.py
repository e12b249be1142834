"""What an agent answers with, read from bytes that are believed nothing unchecked. Pure."""

import json
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated, Any, Final

import orjson
from pydantic import Field, JsonValue, ValidationError

from hostres.errors import HostlerError
from store.amounts import PLACES, Usage
from store.fields import Contract
from store.lazy_dataclass import dataclass
from store.policy import MIB
from store.secrets import holds_secret, mask
from store.terms import Evidence
from store.values import parse_json

EXCERPT_BYTES: Final = 2048
MOST_BYTES: Final = 32 * MIB
"""More of an answer is never kept, whatever its limit: what is said to be spent is looked for in that."""
_SMALLEST: Final = Decimal(1).scaleb(-PLACES)
_MASKED_AT_ONCE: Final = 64 * 1024
"""Characters of which an excerpt is made: a secret that begins in the excerpt ends within these."""


class AgentStatus(StrEnum):
    """How an agent says that its work ended."""

    SUCCESS = "success"
    RETRY = "retry"
    FAILED = "failed"
    BLOCKED = "blocked"
    BUDGET_EXHAUSTED = "budget-exhausted"


class AgentResult(Contract):
    """What an agent answers with.

    Attributes:
        status: How its work ended.
        summary: What it did, or why it did not, for people.
        evidence: What it brings to show for it.
        usage: What it spent.
        output: A value for the nodes that depend on it.

    """

    status: AgentStatus = Field(strict=False)
    summary: str = Field(default="", max_length=64 * 1024)
    evidence: Annotated[tuple[Evidence, ...], Field(max_length=64, strict=False)] = ()
    usage: Usage | None = None
    output: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """An answer that is no result.

    Attributes:
        why: One line, without anything secret.
        excerpt: Its first 2 KB, masked.
        usage: What it says was spent, as far as that can be read.

    """

    why: str
    excerpt: str
    usage: Usage | None


def read_result(
    data: bytes, *, limit: int, size: int | None = None, secrets: Sequence[str] = ()
) -> AgentResult | Malformed:
    """Read an answer.

    Args:
        data: Its bytes, or the first of them.
        limit: How many bytes it may have.
        size: How many it has; None if *data* is all of it.
        secrets: Values that must not be in it.

    """
    whole = len(data) if size is None else size
    if whole > limit:
        return _malformed(f"it is {whole} bytes long, {limit} are allowed", data, secrets)
    try:
        value = parse_json(data)
    except HostlerError as error:
        return _malformed("it is empty" if not data.strip() else f"it is no JSON: {error.what}", data, secrets)
    if holds_secret(value, secrets):
        return _malformed("it holds secret material", data, secrets, value)
    try:
        return AgentResult.model_validate(_with_rounded_cost(value))
    except ValidationError as error:
        return _malformed(f"it is no result: {_first(error)}", data, secrets, value)


def excerpt_of(data: bytes, secrets: Sequence[str] = ()) -> str:
    """Return the first 2 KB of an answer, masked; never cut in the middle of a secret or of a character."""
    text = data[: 4 * _MASKED_AT_ONCE].decode("utf-8", "replace")[:_MASKED_AT_ONCE]
    return mask(text, secrets).encode("utf-8", "replace")[:EXCERPT_BYTES].decode("utf-8", "ignore")


def usage_in(data: bytes) -> Usage | None:
    """Return what an answer says was spent, whatever else is wrong with it: in all of it, or in its last line."""
    lines = data.rstrip().rsplit(b"\n", 1)
    for text in (data, lines[-1]):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        usage = value.get("usage") if isinstance(value, dict) else None
        if isinstance(usage, dict):
            known = {name: amount for name in Usage.model_fields if (amount := _amount(name, usage.get(name)))}
            return Usage.model_validate(known) if known else None
    return None


def _with_rounded_cost(value: JsonValue) -> JsonValue:
    """Round a cost of more places than are kept up: nobody throws good work away over a fraction of a millionth."""
    usage = value.get("usage") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(usage, dict) or "cost" not in usage:
        return value
    return {**value, "usage": {**usage, "cost": _rounded(usage["cost"])}}


def _rounded(cost: JsonValue) -> JsonValue:
    if isinstance(cost, bool) or not isinstance(cost, int | float | str):
        return cost
    try:
        exact = Decimal(str(cost))
        if not exact.is_finite() or exact == exact.quantize(_SMALLEST):
            return cost
        return f"{exact.quantize(_SMALLEST, rounding=ROUND_CEILING):f}"
    except InvalidOperation:
        return cost


def _amount(name: str, value: Any) -> Any:
    try:
        return getattr(Usage.model_validate({name: _rounded(value) if name == "cost" else value}), name)
    except ValidationError:
        return None


def _malformed(why: str, data: bytes, secrets: Sequence[str], value: JsonValue = None) -> Malformed:
    if value is not None and b"\\" in data[: 4 * _MASKED_AT_ONCE]:  # an escape could hide what is secret
        shown = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    else:
        shown = data
    return Malformed(
        why=mask(" ".join(why.split()), secrets)[:500], excerpt=excerpt_of(shown, secrets), usage=usage_in(data)
    )


def _first(error: ValidationError) -> str:
    from store.misfits import first_misfit  # noqa: PLC0415 - only where something is wrong

    return first_misfit(error)
