"""The text of a configuration: changing `[machine.capacity]` and leaving every other letter as it is.

There are many ways to write a key in TOML. So each place where a change might belong is tried, and the first text
counts that reads as exactly the old settings with the change.
"""

import copy
import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

from hostres.errors import Code, HostlerError

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_PART: Final = r"""["']?{}["']?"""
_MACHINE: Final = _PART.format("machine")
_CAPACITY: Final = _PART.format("capacity")
_TABLE: Final = re.compile(rf"\s*\[\s*{_MACHINE}\s*\.\s*{_CAPACITY}\s*\]")
_PARENT: Final = re.compile(rf"\s*\[\s*{_MACHINE}\s*\]")
_INLINE: Final = re.compile(rf"{_CAPACITY}\s*=\s*\{{")


def with_capacity(text: str, name: str, units: int | None) -> str:
    """Return *text* with one capacity set or taken out.

    Args:
        text: A configuration that can be read.
        name: The resource.
        units: Its capacity; None takes the key out.

    Raises:
        HostlerError: `invalid-data`: it is written in a way that cannot be changed here.

    """
    before = tomllib.loads(text)
    wanted = _changed(before, name, units)
    if wanted == _pruned(before):
        return text
    for candidate in _candidates(text, name, units):
        try:
            found = tomllib.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if _pruned(found) == wanted:
            return candidate
    what = f"take {name} out" if units is None else f"write {name} = {units}"
    raise HostlerError(
        Code.INVALID_DATA,
        f"the configuration is written in a way in which {name} cannot be changed",
        f"{what} under [machine.capacity] by hand",
    )


def _changed(settings: dict[str, Any], name: str, units: int | None) -> dict[str, Any]:
    wanted = copy.deepcopy(settings)
    capacity = wanted.setdefault("machine", {}).setdefault("capacity", {})
    if units is None:
        capacity.pop(name, None)
    else:
        capacity[name] = units
    return _pruned(wanted)


def _pruned(settings: dict[str, Any]) -> dict[str, Any]:
    """Return *settings* without tables that say nothing."""
    pruned = dict(settings)
    machine = pruned.get("machine")
    if isinstance(machine, dict):
        machine = dict(machine)
        if machine.get("capacity") == {}:
            del machine["capacity"]
        pruned["machine"] = machine
        if not machine:
            del pruned["machine"]
    return pruned


def _candidates(text: str, name: str, units: int | None) -> Iterator[str]:
    key = rf"(?:[\w\"'-]+\s*\.\s*)*{_PART.format(re.escape(name))}\s*=\s*"
    for found in re.finditer(rf"(?<![\w.-])({key})([^\s,}}#]+)", text):
        if units is not None:
            yield text[: found.start(2)] + str(units) + text[found.end(2) :]
        else:
            yield from _without(text, found.start(), found.end())
    if units is not None:
        yield from _with_line(text, name if _BARE.fullmatch(name) else f'"{name}"', units)


def _without(text: str, start: int, end: int) -> Iterator[str]:
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end) + 1 or len(text)
    yield text[:line_start] + text[line_end:]
    after = re.compile(r"\s*,[ \t]*").match(text, end)
    if after:
        yield text[:start] + text[after.end() :]
    before = re.search(r"\s*,\s*$", text[:start])
    if before:
        yield text[: before.start()] + text[end:]
    yield text[:start].rstrip(" ") + text[end:]


def _with_line(text: str, key: str, units: int) -> Iterator[str]:
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end_of_line

    def inserted(place: int, line: str) -> str:
        return "".join([*lines[:place], line, end_of_line, *lines[place:]])

    for number, line in enumerate(lines):
        for header, prefix in ((_TABLE, ""), (_PARENT, "capacity.")):
            if header.match(line):
                yield inserted(_end_of_table(lines, number), f"{prefix}{key} = {units}")
                yield inserted(number + 1, f"{prefix}{key} = {units}")
    for found in _INLINE.finditer(text):
        yield f"{text[: found.end()]} {key} = {units},{text[found.end() :]}"
        yield f"{text[: found.end()]} {key} = {units} {text[found.end() :].lstrip()}"
    gap = end_of_line if lines else ""
    yield inserted(len(lines), f"{gap}[machine.capacity]{end_of_line}{key} = {units}")
    yield inserted(0, f"machine.capacity.{key} = {units}")


def _end_of_table(lines: list[str], header: int) -> int:
    end = next((n for n in range(header + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    while not lines[end - 1].strip():
        end -= 1
    return end
