"""Checking values by a JSON Schema that a person wrote; it can refer to nothing outside itself."""

from collections.abc import Mapping
from functools import partial

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from pydantic import JsonValue
from referencing import Registry as NoDocuments
from referencing.exceptions import Unresolvable

from hostler.refusals import invalid, place
from hostler.workflows import Check


def checker(schema: Mapping[str, JsonValue]) -> Check:
    """Return what gives a value back if it fits *schema*, and refuses it otherwise.

    Raises:
        HostlerError: The schema is none (invalid-data with the place in it).

    """
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        at = place(list(error.absolute_path))
        raise invalid(f"{at}: {error.message}" if at else error.message, "write it as JSON Schema") from error
    return partial(_check, Draft202012Validator(schema, registry=NoDocuments()))


def _check(validator: Draft202012Validator, value: JsonValue) -> JsonValue:
    try:
        problem = best_match(validator.iter_errors(value))
    except Unresolvable as error:
        raise invalid(
            f"its schema refers to {error.ref}, which is not in the file", "write it into the file"
        ) from error
    if problem is not None:
        at = list(problem.absolute_path)
        raise invalid(f"{place(at)}: {problem.message}" if at else problem.message, "give a value that fits its schema")
    return value
