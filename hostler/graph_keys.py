"""Keys of a graph file that nobody knows: which one it is, in which line, and what was probably meant."""

import types
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue

from hostler.graph_files import Graph, Node
from hostler.refusals import invalid, listed, place
from hostres.errors import HostlerError
from hostres.suggestions import nearest
from store.references import INPUT, MARKERS, REF
from store.terms import Terms
from store.workspace import GitWorkspace

REFERENCE: Final = "$"
"""Begins the names of references, which stand for values."""
_TERMS: Final = {"owner", "budget", "authority", "evidence"}


class Unknown(NamedTuple):
    """A key that nobody knows.

    Attributes:
        place: Where it stands, step by step.
        known: What could stand beside it.
        node: The node that it stands in, "" where it is none.

    """

    place: tuple[str | int, ...]
    known: tuple[str, ...]
    node: str = ""


def first_unknown(document: JsonValue) -> Unknown | None:
    """Return the first key of a graph that nobody knows, also in the terms and the workspace of a node.

    Args:
        document: What a file holds.

    """
    found = next(_of_model(Graph, document, ()), None)
    match document, found:
        case {"nodes": [*nodes]}, Unknown(place=("nodes", int() as index, *_)):
            node = nodes[index]
            key = node.get("key") if isinstance(node, dict) else None
            return found._replace(node=key) if isinstance(key, str) else found
        case _:
            return found


def misspelt_references(
    document: JsonValue, inputs: Collection[str], at: tuple[str | int, ...] = ()
) -> Iterator[Unknown]:
    """Yield what has the shape of a reference under another name, and so would pass as data.

    Args:
        document: What a file holds, or a part of it.
        inputs: The inputs of its workflow.
        at: Where that part stands.

    """
    if isinstance(document, list):
        for index, each in enumerate(document):
            yield from misspelt_references(each, inputs, (*at, index))
    elif isinstance(document, dict):
        for name, value in document.items():
            if name.startswith(REFERENCE) and len(document) == 1 and name not in MARKERS:
                if isinstance(value, dict) and "node" in value and value.keys() <= {"node", "path"}:
                    yield Unknown((*at, name), (REF,))
                elif isinstance(value, str) and value in inputs:
                    yield Unknown((*at, name), (INPUT,))
            yield from misspelt_references(value, inputs, (*at, name))


def unknown_key(path: Path, unknown: Unknown) -> HostlerError:
    """Return the refusal of a key, with file, line and what was probably meant.

    Args:
        path: The file.
        unknown: The key.

    """
    name = str(unknown.place[-1])
    near = nearest(name, unknown.known)
    todo = (
        f"did you mean {place((*unknown.place[:-1], near))}?"
        if near
        else f"take it out; here may stand {listed(list(unknown.known), limit=20)}"
    )
    inside = f"node {unknown.node}: " if unknown.node else ""
    return invalid(f"{where(path, unknown.place)}: {inside}there is no key {place(unknown.place)}", todo)


def where(path: Path, steps: Sequence[str | int]) -> str:
    """Return where something stands in a graph file, `<path> line <number>`; the path alone if that cannot be told.

    Args:
        path: The file.
        steps: What it is in, step by step; where the last of them are missing, those before them count.

    """
    ends = range(len(steps), 0, -1)
    line = next((line for end in ends if (line := line_in(path, steps[:end])) is not None), None)
    return str(path) if line is None else f"{path} line {line}"


def line_in(path: Path, steps: Sequence[str | int]) -> int | None:
    """Return the line of a key in a graph file, from 1; None where that cannot be told.

    Args:
        path: The file; its suffix says in which language it is written.
        steps: The key, after what it is in.

    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return None
    if path.suffix == ".toml":
        from hostres.toml_places import line_of  # noqa: PLC0415 - only where something is wrong

        return line_of(text, steps)
    import yaml  # noqa: PLC0415 - slow, and JSON is nearly a part of it

    try:
        node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    line = None
    for step in steps:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            if step >= len(node.value):
                return None
            node = node.value[step]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == step), None)
            if pair is None:
                return None
            line, node = pair[0].start_mark.line + 1, pair[1]
        else:
            return None
    return line


def _of_model(model: type[BaseModel], given: JsonValue, at: tuple[str | int, ...]) -> Iterator[Unknown]:
    if not isinstance(given, dict) or any(name.startswith(REFERENCE) for name in given):
        return  # another fault, or a reference
    for name, value in given.items():
        if name not in model.model_fields:
            yield Unknown((*at, name), tuple(model.model_fields))
        else:
            yield from _of_annotation(_annotation(model, name), value, (*at, name))


def _annotation(model: type[BaseModel], name: str) -> Any:
    """Return what may stand in a field; the terms of a node are only checked with the whole node."""
    if model is Node and name in _TERMS:
        return Terms.model_fields[name].annotation
    if model is Node and name == "workspace":
        return GitWorkspace
    return model.model_fields[name].annotation


def _of_annotation(annotation: Any, value: JsonValue, at: tuple[str | int, ...]) -> Iterator[Unknown]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _of_model(annotation, value, at)
        return
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        for each in inner:
            yield from _of_annotation(each, value, at)
    elif origin in (list, tuple) and isinstance(value, list):
        for index, each in enumerate(value):
            yield from _of_annotation(inner[0], each, (*at, index))
