"""What an operation's planner and reconciler answer, checked whole where it is received, off the scheduler's thread.

Their authors are strangers, so every field may be anything. What passes here is plain values that can be stored; what
does not is refused with a line that names the field.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import orjson
from pydantic import BaseModel, JsonValue, ValidationError

from actors.calling import dumped, given
from actors.failures import MAX_MESSAGE
from actors.operations import ExactPlan, Operation, Preparation, Reconciliation
from actors.outcomes import Exact, Finding, Found, Prepared, storable
from hostres.errors import Code, HostlerError, describe
from store.fields import MAX_SAFE_INTEGER
from store.limits import VALUE_BYTES
from store.publication import LONGEST_KEY, MOST_KEYS
from store.values import canonical, check

_PLANNER: Final = "mend its planner, then start a new run or retry the node"
_RECONCILER: Final = "mend its reconciler, then resume the run"
_KEYS: Final = f'name at most {MOST_KEYS} of 1 to {LONGEST_KEY} characters, as in keys=("project:shop",)'


def prepared(result: Any, operation: Operation) -> Prepared:
    """Return what `prepare` gave as plain values.

    Raises:
        HostlerError: invalid-data, naming what is wrong.

    """
    if not isinstance(result, Preparation):
        raise _refused(f"prepare of {operation.kind} gave {_type(result)}, not a Preparation")
    return Prepared(
        descriptors=_plain(result.descriptors, f"descriptors that prepare of {operation.kind} gave"),
        max_input_bytes=_whole(result.max_input_bytes, f"max_input_bytes that prepare of {operation.kind} gave"),
        max_seconds=_seconds(result.max_seconds, f"max_seconds that prepare of {operation.kind} gave"),
    )


def exact(result: Any, operation: Operation) -> Exact:
    """Return what `plan` gave as plain values; its input is one that the operation takes.

    Raises:
        HostlerError: invalid-data, naming what is wrong.
        pydantic.ValidationError: Its input is not one of the operation's model.

    """
    if not isinstance(result, ExactPlan):
        raise _refused(f"plan of {operation.kind} gave {_type(result)}, not an ExactPlan")
    if not isinstance(result.input, BaseModel):
        raise _refused(f"plan of {operation.kind} gave an input that is {_type(result.input)}, not a model")
    model = operation.input_type.model_validate(result.input)
    what = f"input that plan of {operation.kind} gave"
    try:
        value = _plain(dumped(model, operation.input_type), what)
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused(f"the {what} cannot be written as JSON: {describe(error)}") from error
    given(canonical(value), operation.input_type)  # a model that was never validated may hold anything
    return Exact(input=value, keys=_keys(result.keys, operation))


def found(result: Any, operation: Operation) -> JsonValue | Found:
    """Return what `reconcile` gave: an output, or a finding.

    Raises:
        HostlerError: invalid-data, naming what is wrong.
        pydantic.ValidationError: It is no output of the operation's model.

    """
    if isinstance(result, Reconciliation):
        finding: Any = result.finding
        message: Any = result.message
        if not isinstance(finding, Finding):
            what = f"reconcile of {operation.kind} found {finding!r:.100}, which is no Finding"
            raise _refused(what, _RECONCILER)
        if not isinstance(message, str):
            what = f"reconcile of {operation.kind} gave a message that is {_type(message)}, not a text"
            raise _refused(what, _RECONCILER)
        return Found(finding=finding, message=storable(str.__str__(message), MAX_MESSAGE))
    try:
        return dumped(result, operation.output_type)
    except ValidationError as error:
        if isinstance(result, BaseModel | Mapping):
            raise
        what = f"reconcile of {operation.kind} gave {_type(result)}, neither its output nor a Reconciliation"
        raise _refused(what, _RECONCILER) from error


def _plain(value: Any, what: str) -> JsonValue:
    """Return a copy of a value that its author cannot change any more."""
    try:
        check(value)
        data = canonical(value)
    except HostlerError as error:
        raise HostlerError(Code.INVALID_DATA, f"the {what}: {error.what}", error.todo) from None
    if len(data) > VALUE_BYTES:
        raise HostlerError(
            Code.INVALID_DATA,
            f"too large to be stored, {len(data)} bytes of {VALUE_BYTES} that are allowed: the {what}",
            "put what is large into a file and name that",
        )
    copy: JsonValue = orjson.loads(data)
    return copy


def _whole(value: Any, what: str) -> int | None:
    if value is None:
        return None
    if type(value) is not int:
        raise _refused(f"the {what} is {_type(value)}, not a whole number")
    if not 0 < value <= MAX_SAFE_INTEGER:
        raise _refused(f"the {what} is no number of bytes")
    return value


def _seconds(value: Any, what: str) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float):
        raise _refused(f"the {what} is {_type(value)}, not a number")
    if not 0 < value <= MAX_SAFE_INTEGER or not math.isfinite(value):
        raise _refused(f"the {what} is no time in seconds")
    return float(value)


def _keys(keys: Any, operation: Operation) -> tuple[str, ...]:
    if not isinstance(keys, tuple | list | set | frozenset):
        raise _refused(f"plan of {operation.kind} gave keys that are {_type(keys)}, not a tuple of texts", _KEYS)
    if len(keys) > MOST_KEYS:
        raise _refused(f"plan of {operation.kind} names {len(keys)} publication keys", _KEYS)
    return tuple(_key(key, operation) for key in keys)


def _key(key: Any, operation: Operation) -> str:
    if not isinstance(key, str):
        raise _refused(f"plan of {operation.kind} gave a publication key that is {_type(key)}, not a text", _KEYS)
    text = str.__str__(key)
    if not 0 < len(text) <= LONGEST_KEY:
        raise _refused(f"plan of {operation.kind} gave a publication key of {len(text)} characters", _KEYS)
    try:
        text.encode()
    except UnicodeEncodeError:
        what = f"plan of {operation.kind} gave a publication key that is no Unicode text: {text!a:.200}"
        todo = "name the file by a text of its own, as by os.fsencode(name).hex()"
        raise _refused(what, todo) from None
    return text


def _type(value: Any) -> str:
    return type(value).__name__


def _refused(what: str, todo: str = _PLANNER) -> HostlerError:
    return HostlerError(Code.INVALID_DATA, what, todo)
