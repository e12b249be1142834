"""Reading a JSON, TOML or YAML file as one JSON value; duplicate keys and what JSON cannot hold are refused."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from hostler.reading import read_bounded
from hostler.refusals import about, invalid
from hostres.errors import HostlerError
from store.values import check, parse_json


def read_document(path: Path) -> JsonValue:
    """Return the value that a file holds.

    Args:
        path: Its suffix says in which language it is written.

    Raises:
        HostlerError: It cannot be read or parsed, or holds what JSON cannot (invalid-data with file and place).

    """
    data = read_bounded(path)
    if not data.strip():
        raise invalid(f"{path} is empty", "write a workflow in it, see docs/graph-files.md")
    try:
        return _PARSERS[path.suffix](data)
    except HostlerError as error:
        raise about(str(path), error) from error
    except UnicodeDecodeError as error:
        raise invalid(f"{path} is not UTF-8 at byte {error.start}", "save it as UTF-8") from error


def _toml(data: bytes) -> JsonValue:
    text = data.decode()
    try:
        value: JsonValue = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise invalid(f"it is not TOML: {error}", "mend that line") from error
    except (RecursionError, ValueError) as error:  # nested too deeply; a number too long to read
        raise invalid(f"it cannot be read as TOML: {error}", "use flatter values and shorter numbers") from error
    check(value)
    return value


def _yaml(data: bytes) -> JsonValue:
    from hostler.yaml_documents import parse_yaml  # noqa: PLC0415 (slow, and many files are in another language)

    return parse_yaml(data)


_PARSERS: Final[Mapping[str, Callable[[bytes], JsonValue]]] = MappingProxyType(
    {
        ".json": parse_json,
        ".toml": _toml,
        ".yaml": _yaml,
        ".yml": _yaml,
    }
)
