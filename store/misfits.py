"""What does not fit its model, in words of our own: pydantic's speak of its types. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from hostres.suggestions import nearest
from store.patterns import NAME_PATTERN, NODE_KEY_PATTERN, RUN_ID_PATTERN, SHA256_PATTERN

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_IS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "missing": "is missing",
        "extra_forbidden": "is no field that there is",
        "bool_parsing": "is neither true nor false",
        "bool_type": "is neither true nor false",
        "decimal_parsing": "is not a number",
        "decimal_type": "is not a number",
        "dict_type": "is not an object",
        "finite_number": "is not a finite number",
        "float_parsing": "is not a number",
        "float_type": "is not a number",
        "frozen_set_type": "is not a list",
        "int_from_float": "is not a whole number",
        "int_parsing": "is not a whole number",
        "int_type": "is not a whole number",
        "iteration_error": "is not a list",
        "list_type": "is not a list",
        "mapping_type": "is not an object",
        "model_attributes_type": "is not an object",
        "model_type": "is not an object",
        "none_required": "is not null",
        "set_type": "is not a list",
        "string_sub_type": "is not text",
        "string_type": "is not text",
        "string_unicode": "is not UTF-8",
        "tuple_type": "is not a list",
        "greater_than": "is not more than {gt:,}",
        "greater_than_equal": "is less than {ge:,}",
        "less_than": "is not less than {lt:,}",
        "less_than_equal": "is more than {le:,}",
        "multiple_of": "is no multiple of {multiple_of}",
        "string_too_long": "has more than {max_length} characters",
        "string_too_short": "has fewer than {min_length} characters",
        "too_long": "has more than {max_length} entries",
        "too_short": "has fewer than {min_length} entries",
        "enum": "is not {expected}",
        "literal_error": "is not {expected}",
    }
)
"""By pydantic's types of errors, which unlike its words are a part of its interface (docs.pydantic.dev: errors)."""

_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        NAME_PATTERN: "a name: lower-case words joined by . - or _",
        NODE_KEY_PATTERN: "a key: lower-case segments joined by /",
        SHA256_PATTERN: "a digest: 64 digits and letters a to f",
        RUN_ID_PATTERN: "the id of a run",
    }
)


def misfit(where: str, problem: "ErrorDetails") -> str:
    """Return one thing that a validation found, as a sentence without its full stop.

    Args:
        where: What does not fit, as people write it; "" for the value as a whole.
        problem: What pydantic says of it.

    """
    kind, facts = problem["type"], problem.get("ctx", {})
    if kind in ("too_short", "string_too_short") and facts["min_length"] == 1:
        return f"{where or 'it'} is empty"
    if kind == "string_pattern_mismatch":
        return f"{where or 'it'} is not {_FORMS.get(facts['pattern'], 'of the form ' + facts['pattern'])}"
    words = _IS.get(kind)
    if words is None:  # an author's own words, or of a type that is seldom met
        said = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        return f"{where}: {said}" if where else said
    plain = {name: int(fact) if isinstance(fact, float) and fact.is_integer() else fact for name, fact in facts.items()}
    return f"{where or 'it'} {words.format_map(plain)}{_meant(problem['input'], facts)}"


def first_misfit(error: "ValidationError", *inside: str) -> str:
    """Return the first thing that a validation found, with the dotted path to it.

    Args:
        error: What pydantic raised.
        inside: Where the validated value stands.

    """
    first = error.errors(include_url=False)[0]
    return misfit(".".join(map(str, (*inside, *first["loc"]))), first)


def _meant(given: Any, facts: Mapping[str, Any]) -> str:
    """Return which of the words was probably meant; pydantic writes them in quotes."""
    expected = facts.get("expected")
    if not isinstance(expected, str) or not isinstance(given, str):
        return ""
    near = nearest(given, expected.split("'")[1::2])
    return f" (did you mean {near}?)" if near else ""
