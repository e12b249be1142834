"""JSON schemas of inputs and outputs: their digests, and what can be known from them before anything runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticOmit

from hostler.refusals import invalid, listed
from store.fields import MAX_SAFE_INTEGER
from store.values import Domain, digest

Schema = Mapping[str, Any]

ANYTHING: Final[Schema] = MappingProxyType({})
"""The schema of a value of which nothing is known."""

FOR_PEOPLE: Final = frozenset({"title", "description", "examples", "$comment"})
"""Keywords that change nothing; a digest leaves them out, so that a better docstring is no new schema."""

NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""

LITERAL: Final = frozenset({"const", "default", "enum", "required"})
"""Keywords whose value is data."""

MOST_BRANCHES: Final = 64


class _Quiet(GenerateJsonSchema):
    """A default that JSON cannot hold is left out without a word."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012


@lru_cache(maxsize=1024)
def input_schema(model: type[BaseModel]) -> Schema:
    """Return the JSON schema of what *model* accepts.

    Raises:
        HostlerError: It has none (invalid-data).

    """
    return _schema(model, "validation")


@lru_cache(maxsize=1024)
def output_schema(model: type[BaseModel]) -> Schema:
    """Return the JSON schema of what a value of *model* is written as.

    Raises:
        HostlerError: It has none (invalid-data).

    """
    return _schema(model, "serialization")


def _schema(model: type[BaseModel], mode: Any) -> Schema:
    by_alias = mode == "validation" or bool(model.model_config.get("serialize_by_alias"))
    try:
        return model.model_json_schema(by_alias=by_alias, mode=mode, schema_generator=_Quiet)
    except (PydanticUserError, PydanticOmit) as error:
        raise invalid(
            f"{model.__name__} has no JSON schema: {error}", "use types that can be written as JSON"
        ) from error


@lru_cache(maxsize=1024)
def input_sha256(model: type[BaseModel]) -> str:
    """Return the digest of a model's input schema."""
    return digest(Domain.SCHEMA, _bare(input_schema(model)))


@lru_cache(maxsize=1024)
def output_sha256(model: type[BaseModel]) -> str:
    """Return the digest of a model's output schema."""
    return digest(Domain.SCHEMA, _bare(output_schema(model)))


def _bare(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {
            key: {name: _bare(each) for name, each in value.items()}
            if key in NAMED and isinstance(value, Mapping)
            else _as_json(value)
            if key in LITERAL
            else _bare(value)
            for key, value in schema.items()
            if key not in FOR_PEOPLE
        }
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    return _as_json(schema)


def _as_json(value: Any) -> Any:
    """Return *value* with numbers that canonical JSON refuses, like a bound of 2**63, as text."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    if isinstance(value, int) and abs(value) > MAX_SAFE_INTEGER:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


class NoSuchFieldError(LookupError):
    """A path leads to nothing that the schema knows."""


def follow(root: Schema, path: Sequence[str | int]) -> Schema:
    """Return the schema of the value that *path* leads to in a value of *root*.

    Args:
        root: The schema to start from; `$ref` inside it may point into its `$defs`.
        path: Field names and array indexes.

    Returns:
        Its schema, with the `$defs` of the root; `ANYTHING` where nothing is known.

    Raises:
        NoSuchFieldError: No value of that schema has such a field or element; the message says what there is.

    """
    schema: Schema = root
    definitions = root.get("$defs", {})
    for step in path:
        steps = [_step(branch, step) for branch in _branches(schema, definitions)]
        found = [each for each in steps if not isinstance(each, str)]
        if not found:
            problems = [each for each in steps if isinstance(each, str)]
            raise NoSuchFieldError(problems[0] if problems else "there is no such value")
        schema = {**(found[0] if len(found) == 1 else {"anyOf": found}), "$defs": definitions}
    return schema


def kinds(root: Schema) -> frozenset[str] | None:
    """Return which of object, array, scalar and null a value of *root* may be; None where that is not known."""
    found: set[str] = set()
    for branch in _branches(root, root.get("$defs", {})):
        types = branch.get("type")
        if types is None:
            values = branch["enum"] if "enum" in branch else [branch["const"]] if "const" in branch else None
            if values is None:
                return None
            found.update(kind_of(value) for value in values)
        else:
            found.update(name if name in {"object", "array", "null"} else "scalar" for name in _listed_types(types))
    return frozenset(found)


def kind_of(value: Any) -> str:
    """Return which of object, array, scalar and null a JSON value is."""
    if value is None:
        return "null"
    return "object" if isinstance(value, Mapping) else "array" if isinstance(value, list | tuple) else "scalar"


def takes_text(root: Schema) -> bool:
    """Say whether the values of *root* are strings, null perhaps aside."""
    texts = 0
    for branch in _branches(root, root.get("$defs", {})):
        types = branch.get("type")
        if types is None:
            values = branch["enum"] if "enum" in branch else [branch["const"]] if "const" in branch else [ANYTHING]
            found = {type(value) for value in values if value is not None}
        else:
            found = {str if name == "string" else dict for name in _listed_types(types) if name != "null"}
        if found - {str}:
            return False
        texts += len(found)
    return texts > 0


def _listed_types(types: str | Sequence[str]) -> Sequence[str]:
    return [types] if isinstance(types, str) else types


def _branches(schema: Schema, definitions: Mapping[str, Any]) -> Iterator[Schema]:
    """Yield the alternatives of a schema, each without `$ref`, `anyOf` and `oneOf` at its top."""
    waiting = [schema]
    for _ in range(MOST_BRANCHES):
        if not waiting:
            return
        each = waiting.pop(0)
        reference = each.get("$ref")
        if isinstance(reference, str):
            name = reference.removeprefix("#/$defs/")
            waiting.insert(0, definitions.get(name, ANYTHING))
        elif "anyOf" in each or "oneOf" in each:
            waiting[:0] = each.get("anyOf") or each.get("oneOf") or []
        elif "allOf" in each:
            parts = each["allOf"]
            waiting.insert(0, parts[0] if len(parts) == 1 else ANYTHING)
        else:
            yield each
    if waiting:
        yield ANYTHING


def _step(schema: Schema, step: str | int) -> Schema | str:
    """Return the schema one step further, or in words why there is none."""
    types = schema.get("type")
    names = None if types is None else _listed_types(types)
    wanted = "object" if isinstance(step, str) else "array"
    if names is not None and wanted not in names:
        return f"it is {' or '.join(names)} and has no {'field' if wanted == 'object' else 'element'} {step}"
    return _field(schema, step) if isinstance(step, str) else _element(schema, step)


def _field(schema: Schema, name: str) -> Schema | str:
    properties = schema.get("properties", {})
    if name in properties:
        return _as_schema(properties[name])
    others = schema.get("additionalProperties", not properties)
    if others is False and not schema.get("patternProperties"):
        return f"it has no field {name}, only {listed(list(properties))}"
    return _as_schema(others)


def _element(schema: Schema, index: int) -> Schema | str:
    first = schema.get("prefixItems", [])
    if index < len(first):
        return _as_schema(first[index])
    most = schema.get("maxItems")
    if schema.get("items") is False or (isinstance(most, int) and index >= most):
        return f"it has no element {index}, only {len(first) or most}"
    return _as_schema(schema.get("items", True))


def _as_schema(value: Any) -> Schema:
    return value if isinstance(value, Mapping) else ANYTHING
