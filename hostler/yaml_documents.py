"""Parsing YAML as one JSON value, without what in this language loses or changes what was written."""

from typing import Any, Final

import yaml
from pydantic import JsonValue

from hostler.refusals import invalid
from store.values import check

MAX_VALUES: Final = 2_000_000
"""Values of a YAML file once its aliases are expanded; a few lines can ask for more than any memory."""


def parse_yaml(data: bytes) -> JsonValue:
    """Return the value of a document.

    Args:
        data: The document, UTF-8.

    Raises:
        HostlerError: It is not YAML, or holds what JSON cannot (invalid-data with the line).
        UnicodeDecodeError: It is not UTF-8.

    """
    try:
        value: JsonValue = yaml.load(data.decode(), Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise invalid(f"it is not YAML: {error.problem or error.context}{line}", "mend that line") from error
    except yaml.YAMLError as error:
        raise invalid(f"it is not YAML: {error}", "mend it") from error
    except RecursionError as error:
        raise invalid("it is nested too deeply", "use flatter values") from error
    _bound(value)
    check(value)
    return value


def _bound(value: Any) -> None:
    """Refuse a value that aliases make too large, or endless, before anything walks through all of it."""
    left = MAX_VALUES
    waiting = [value]
    while waiting:
        each = waiting.pop()
        left -= 1
        if left < 0:
            raise invalid("its aliases make it too large", "write out what is meant, without aliases to aliases")
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, but without the surprises that lose or change what was written."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        seen: set[str] = set()
        for name, _ in node.value:
            line = name.start_mark.line + 1
            if name.tag == "tag:yaml.org,2002:merge":
                continue
            if name.tag != "tag:yaml.org,2002:str":
                raise invalid(f"the key {getattr(name, 'value', '')!r} at line {line} is no text", "put it in quotes")
            if name.value in seen:
                raise invalid(f"the key {name.value} stands twice, again at line {line}", "keep one of them")
            seen.add(name.value)
        return super().construct_mapping(node, deep)

    def construct_clock(self, node: yaml.ScalarNode) -> Any:
        """Refuse 1:30, which this language reads as 90; take other numbers."""
        if ":" in node.value:
            raise invalid(
                f"{node.value} at line {node.start_mark.line + 1} would be read as a number to the base of 60",
                "put it in quotes",
            )
        whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)

    def refuse_date(self, node: yaml.ScalarNode) -> Any:
        """Refuse a date, which JSON cannot hold."""
        raise invalid(f"{node.value} at line {node.start_mark.line + 1} would be read as a date", "put it in quotes")


_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_clock)
_StrictLoader.add_constructor("tag:yaml.org,2002:float", _StrictLoader.construct_clock)
_StrictLoader.add_constructor("tag:yaml.org,2002:timestamp", _StrictLoader.refuse_date)
