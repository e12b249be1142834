"""Inputs of a workflow from a command line: `-i KEY=VALUE` and `--input FILE`."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from hostler.reading import read_json
from hostler.refusals import invalid
from hostler.workflows import Input, Workflow
from hostres.errors import HostlerError
from store.values import parse_json


def read_inputs(
    workflow: Workflow, pairs: Sequence[str], file: Path | str | None, *, folder: Path | None = None
) -> dict[str, JsonValue]:
    """Return the inputs that a command line gives.

    Args:
        workflow: Whose inputs they are.
        pairs: `KEY=VALUE` each; VALUE is taken verbatim for inputs of type string, else as JSON.
        file: A JSON file with an object of inputs; pairs win over it.
        folder: What a relative path of the file is relative to; the current folder by default.

    Returns:
        The values by name, not yet checked against their types.

    Raises:
        HostlerError: A name is unknown or missing, or a value is not JSON (invalid-data, with the list of inputs).

    """
    values = {} if file is None else _from_file((folder or Path()) / file)
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise invalid(f"input {pair!r} is not KEY=VALUE", "write it as -i KEY=VALUE")
        declared = workflow.inputs.get(name)
        values[name] = text if declared is None or declared.text else _parsed(name, text, declared)
    workflow.check_names(values)
    return values


def _parsed(name: str, text: str, declared: Input) -> JsonValue:
    try:
        return parse_json(text)
    except HostlerError as error:
        kind = declared.schema.get("type")
        wanted = f"its type is {kind}, so" if isinstance(kind, str) else "it is not of type string, so"
        raise invalid(
            f"input {name}: {error.what.removeprefix('$: ')}",
            f"{wanted} write JSON: 3, true, [1, 2], or '\"text\"' with its quotes",
        ) from error


def _from_file(path: Path) -> dict[str, JsonValue]:
    values = read_json(path, what="input file ")
    if not isinstance(values, dict):
        raise invalid(f"input file {path} is not an object of inputs", 'write {"name": value, …}')
    return values
