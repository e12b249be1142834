"""Secrets of a node: references to variables of the host's environment, resolved only when its program starts."""

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from actors.failures import OperationFailed
from actors.outcomes import Aborted, Exact, Failed, Found, Outcome, Prepared, Value
from hostres.masking import MARKED, Mask
from store.policy import FailureCode
from store.values import Domain, canonical, digest_bytes

_PLAIN: Final = Mask()


def resolved(name: str) -> str:
    """Return the value of a secret.

    Raises:
        OperationFailed: The environment of this host has none of that name.

    """
    value = os.environ.get(name)
    if value is None:
        raise OperationFailed(
            FailureCode.UNAVAILABLE,
            f"the environment of this host has no variable {name}, which it is to get as a secret",
            f"start the host with {name} set",
        )
    return value


def mask_of(names: Iterable[str]) -> Mask:
    """Return the mask for all that comes of carrying out a plan that names these secrets."""
    values = tuple(os.environ[name] for name in names if name in os.environ)
    return Mask.of(os.environ, values) if values or MARKED in os.environ else _PLAIN


def masked(outcome: Outcome, mask: Mask) -> Outcome:
    """Return *outcome* without secrets, as it may be stored."""
    match outcome:
        case Value(data=data):
            return outcome if not mask.finds(data) else _masked_value(outcome, mask)
        case Failed():
            return replace(outcome, message=mask.text(outcome.message), todo=mask.text(outcome.todo))
        case Found():
            return replace(outcome, message=mask.text(outcome.message))
        case Aborted():
            return outcome


def masked_plan(answer: Prepared | Exact | Failed, mask: Mask) -> Prepared | Exact | Failed:
    """Return what a planner said; a secret in it is a failure, since its plan is stored and shown."""
    if isinstance(answer, Failed):
        return replace(answer, message=mask.text(answer.message), todo=mask.text(answer.todo))
    if mask.finds(canonical([answer.input, *answer.keys] if isinstance(answer, Exact) else answer.descriptors)):
        return Failed(
            code=FailureCode.INVALID_DATA,
            message="its planner puts a secret into its plan, which is stored and shown",
            todo="let the operation read the secret itself when it runs",
        )
    return answer


def _masked_value(outcome: Value, mask: Mask) -> Value:
    value = without(outcome.value, mask)
    data = canonical(value)
    return replace(outcome, value=value, data=data, sha256=digest_bytes(Domain.OUTPUT, data))


def without(value: JsonValue, mask: Mask) -> JsonValue:
    """Return a JSON value without secrets."""
    match value:
        case str():
            return mask.text(value)
        case list():
            return [without(each, mask) for each in value]
        case dict():
            return {mask.text(name): without(each, mask) for name, each in value.items()}
        case _:
            return value
