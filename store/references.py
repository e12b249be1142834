"""References inside input templates: finding them, following them, filling in workflow inputs. Pure.

A template is a JSON value in which `{"$ref": {"node": key, "path": [field or index…]}}` stands for a part of
another node's output and `{"$input": name}` for a workflow input.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store.lazy_dataclass import dataclass
from store.values import path_text

REF: Final = "$ref"
INPUT: Final = "$input"
SECRET: Final = "$secret"  # noqa: S105 - what names one, not one
"""`{"$secret": NAME}` stands for the value that the variable NAME has where the program is started."""
MARKERS: Final = (REF, INPUT, SECRET)
"""What has a meaning where the author of a plan wrote it, and nowhere else."""
_REF_FIELDS: Final = frozenset({"node", "path"})
_REF_TODO: Final = 'write {"$ref": {"node": KEY, "path": [FIELD or INDEX, …]}} and nothing beside it'
_INPUT_TODO: Final = 'write {"$input": NAME} and nothing beside it'

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A part of a node's output.

    Attributes:
        node: The key of the node.
        path: Fields and indexes that lead to the part; empty is the whole output.

    """

    node: str
    path: Steps = ()


def _refuse(where: Steps, why: str, todo: str) -> HostlerError:
    return HostlerError(Code.INVALID_DATA, f"{path_text(*where)}: {why}", todo)


def _reference(value: dict[str, JsonValue], where: Steps) -> Reference:
    body = value[REF]
    if len(value) != 1 or not isinstance(body, dict) or not body.keys() <= _REF_FIELDS:
        raise _refuse(where, "not a reference", _REF_TODO)
    node, path = body.get("node"), body.get("path", [])
    if not isinstance(node, str) or not isinstance(path, list):
        raise _refuse(where, "not a reference", _REF_TODO)
    steps: list[str | int] = []
    for step in path:
        if isinstance(step, bool) or not isinstance(step, str | int):
            raise _refuse(where, "a step of a reference's path is a string or an integer", _REF_TODO)
        steps.append(step)
    return Reference(node=node, path=tuple(steps))


def _find(template: JsonValue, where: Steps) -> Iterator[Reference]:
    if isinstance(template, dict):
        if REF in template:
            yield _reference(template, where)
            return
        for key, item in template.items():
            yield from _find(item, (*where, key))
    elif isinstance(template, list):
        for index, item in enumerate(template):
            yield from _find(item, (*where, index))


def references(template: JsonValue) -> tuple[Reference, ...]:
    """Return every reference in *template*, in its order.

    Raises:
        HostlerError: invalid-data, for something that has `$ref` but is not a reference.

    """
    return tuple(_find(template, ()))


def _follow(reference: Reference, output: JsonValue, where: Steps) -> JsonValue:
    value = output
    for depth, step in enumerate(reference.path):
        match step, value:
            case str(), dict() if step in value:
                value = value[step]
            case int(), list() if 0 <= step < len(value):
                value = value[step]
            case _:
                raise _refuse(
                    where,
                    f"the output of node {reference.node} has no {path_text(*reference.path[: depth + 1])}",
                    "a field needs an object that has it, an index an array within range",
                )
    return value


def resolve(template: JsonValue, outputs: Mapping[str, JsonValue]) -> JsonValue:
    """Return *template* with every reference replaced by what it refers to.

    Args:
        template: The value with references.
        outputs: The output of each node that may be referred to.

    Raises:
        HostlerError: invalid-data, when a reference names no such node or its path does not lead anywhere.

    """
    return _resolve(template, outputs, ())


def _resolve(template: JsonValue, outputs: Mapping[str, JsonValue], where: Steps) -> JsonValue:
    if isinstance(template, dict):
        if REF in template:
            reference = _reference(template, where)
            if reference.node not in outputs:
                raise _refuse(where, f"node {reference.node} has no output", "refer to a node that completes before")
            return _follow(reference, outputs[reference.node], where)
        return {key: _resolve(item, outputs, (*where, key)) for key, item in template.items()}
    if isinstance(template, list):
        return [_resolve(item, outputs, (*where, index)) for index, item in enumerate(template)]
    return template


def substitute_inputs(template: JsonValue, inputs: Mapping[str, JsonValue]) -> JsonValue:
    """Return *template* with every `{"$input": name}` replaced by that workflow input.

    An input is data: one that itself holds a marker is refused rather than followed.

    Raises:
        HostlerError: invalid-data, for an unknown input, or one that holds a marker.

    """
    return _substitute(template, inputs, ())


def _substitute(template: JsonValue, inputs: Mapping[str, JsonValue], where: Steps) -> JsonValue:
    if isinstance(template, dict):
        if INPUT in template:
            name = template[INPUT]
            if len(template) != 1 or not isinstance(name, str):
                raise _refuse(where, "not a workflow input", _INPUT_TODO)
            if name not in inputs:
                raise _refuse(where, f"there is no workflow input {name}", "name a declared input")
            found = marker_in(inputs[name])
            if found is not None:
                raise _refuse(where, f"the value of input {name} holds {found}, which is for plans", "give plain data")
            return inputs[name]
        return {key: _substitute(item, inputs, (*where, key)) for key, item in template.items()}
    if isinstance(template, list):
        return [_substitute(item, inputs, (*where, index)) for index, item in enumerate(template)]
    return template


def marker_in(value: JsonValue) -> str | None:
    """Return the first `$ref`, `$input` or `$secret` that a plain value holds, None where it holds none."""
    if isinstance(value, dict):
        for name in MARKERS:
            if name in value:
                return name
        return next((found for each in value.values() if (found := marker_in(each))), None)
    if isinstance(value, list):
        return next((found for each in value if (found := marker_in(each))), None)
    return None
