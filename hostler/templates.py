"""Input templates: JSON values in which references stand for outputs of other nodes."""

import os
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

from pydantic import BaseModel, JsonValue

from hostler.refusals import invalid, place, require_utf8
from store.references import REF, Reference, references

DEEPEST: Final = 100


Path = tuple[str | int, ...]
Convert = Callable[[Any], JsonValue]


def as_template(value: Any, convert: Convert, at: Path = ()) -> JsonValue:
    """Return a value that an author wrote as JSON.

    Models are dumped, paths become strings, enums their values, tuples lists.

    Args:
        value: What was written.
        convert: Called for whatever else there is; gives JSON or `NotImplemented`.
        at: Where the value stands, for errors.

    Raises:
        HostlerError: Something has no JSON form (invalid-data naming its place).

    """
    if type(value) is str:
        return value if value.isascii() else require_utf8(value, place(at))
    if value is None or type(value) in (int, float, bool):
        return value  # type: ignore[no-any-return] # narrowed by type() above
    if len(at) > DEEPEST:
        raise invalid(f"{place(at[:3])}… is nested deeper than {DEEPEST} levels", "use flatter values")
    if isinstance(value, Mapping):
        return {_name(name, at): as_template(each, convert, (*at, name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_template(each, convert, (*at, index)) for index, each in enumerate(value)]
    if isinstance(value, Enum):
        return as_template(value.value, convert, at)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, PurePath):
        return require_utf8(os.fspath(value), place(at))
    converted = convert(value)
    if converted is not NotImplemented:
        return converted
    if isinstance(value, str | int | float):  # a subclass that means what its base means
        return as_template(next(base(value) for base in (str, int, float) if isinstance(value, base)), convert, at)
    raise invalid(
        f"{place(at) or 'the value'} is a {type(value).__name__}, which JSON cannot hold",
        "use strings, numbers, lists, objects, models or references",
    )


def _name(name: Any, at: Path) -> str:
    if not isinstance(name, str):
        raise invalid(f"{place(at) or 'the value'} has the key {name!r}, which is no string", "use strings as keys")
    return name if name.isascii() else require_utf8(str(name), f"{place(at)}: the key")


def located_references(template: JsonValue, at: Path = ()) -> Iterator[tuple[Path, Reference]]:
    """Yield every reference of a template and where it stands.

    Raises:
        HostlerError: A reference is malformed (invalid-data).

    """
    if isinstance(template, dict):
        if REF in template:
            yield from ((at, each) for each in references(template))
            return
        for name, each in template.items():
            if type(each) in (dict, list):
                yield from located_references(each, (*at, name))
    elif isinstance(template, list):
        for index, each in enumerate(template):
            if type(each) in (dict, list):
                yield from located_references(each, (*at, index))
