"""Calling a node's own function: from canonical bytes to canonical bytes, through its models where it has them."""

import math
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson
from pydantic import BaseModel, JsonValue

from hostres.errors import Code, HostlerError

_FINITE: Final = frozenset({str, int, bool, type(None)})
"""Most values are of these, and a call for each would cost more than the look."""


def given(data: bytes, input_type: type[BaseModel] | None) -> Any:
    """Return the argument that a function gets.

    Args:
        data: The canonical bytes of its input.
        input_type: The model of its input, None for any JSON value.

    Raises:
        pydantic.ValidationError: The input does not fit its model.

    """
    return orjson.loads(data) if input_type is None else input_type.model_validate_json(data)


def dumped(result: Any, output_type: type[BaseModel] | None) -> JsonValue:
    """Return what a function gave as a JSON value.

    Args:
        result: What it gave.
        output_type: The model of its output, None for any JSON value, in which models may stand.

    Raises:
        pydantic.ValidationError: It does not fit the model.
        HostlerError: A number in it is not finite, or it is nested too deeply (invalid-data).

    """
    if output_type is not None and not isinstance(result, output_type):
        result = output_type.model_validate(result)
    try:
        return cast("JsonValue", _plain(result, "$"))
    except (RecursionError, ValueError) as error:  # pydantic's own bound is a plain ValueError, none of its own
        if not isinstance(error, RecursionError) and (type(error) is not ValueError or "depth" not in str(error)):
            raise
        raise HostlerError(Code.INVALID_DATA, "$: nested too deeply", "put it in a file and give its path") from None


def _plain(value: Any, path: str) -> Any:
    """Return *value* with the models in its lists and dicts as JSON; whoever stores it finds what is none."""
    if isinstance(value, BaseModel):
        _refuse_non_finite(value.model_dump(), path)  # as JSON, pydantic writes NaN under `Any` as null
        return value.model_dump(mode="json")
    if type(value) is list:
        return [each if type(each) in _FINITE else _plain(each, f"{path}[{index}]") for index, each in enumerate(value)]
    if type(value) is dict:
        return {key: each if type(each) in _FINITE else _plain(each, f"{path}.{key}") for key, each in value.items()}
    return value


def _refuse_non_finite(value: Any, path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise HostlerError(Code.INVALID_DATA, f"{path}: {value} is no JSON number", "use null, or a text")
    if isinstance(value, dict | Mapping):  # the first needs no look at what is registered
        for key, inner in value.items():
            if type(inner) not in _FINITE:
                _refuse_non_finite(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple | set | frozenset):
        for index, inner in enumerate(value):
            if type(inner) not in _FINITE:
                _refuse_non_finite(inner, f"{path}[{index}]")
