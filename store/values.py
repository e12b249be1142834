"""JSON values: what may be stored, their one canonical form (RFC 8785), and their digests.

A value is null, a boolean, a string without lone surrogates, an integer within ±(2^53 - 1), a finite float, a
list, or a dict with string keys. Whatever is accepted here can be read back; whatever is not is refused with
the path of the first thing that is wrong.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

import orjson
from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store.fields import MAX_SAFE_INTEGER

MAX_DEPTH: Final = 200
"""Levels of nesting of a value. orjson writes 254; the difference is room for the record around it."""

_LONGEST_STEP: Final = 80
_ENVELOPE_DEPTH: Final = 240
_INTEGER_DIGITS: Final = 17
_TODO: Final = (
    "use finite numbers, integers within ±(2^53 - 1), strings without lone surrogates, unique string keys, "
    f"lists, true, false or null, at most {MAX_DEPTH} levels deep"
)

_PLAIN: Final = 0
_WHOLE_FLOATS: Final = 1  # a float such as 600.0, which RFC 8785 writes as 600
_EXOTIC: Final = 2  # a number or a key order that orjson writes differently


class Domain(StrEnum):
    """What a digest is of; equal values of different kinds have different digests."""

    GRAPH_PLAN = "hostler.graph-plan.1"
    NODE_PLAN = "hostler.node-plan.1"
    INPUT = "hostler.input.1"
    OUTPUT = "hostler.output.1"
    EVENT = "hostler.event.1"
    BUNDLE = "hostler.bundle.1"
    SCHEMA = "hostler.schema.1"
    RECORD = "hostler.record.1"


_BLOCK: Final = 4096
_PREFIXES: Final = {domain: domain.encode() + b"\0" for domain in Domain}


class _UnfitError(Exception):
    """Something that is not a JSON value; the path to it is collected on the way up, innermost step first."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.steps: list[object] = []

    def refusal(self) -> HostlerError:
        return HostlerError(Code.INVALID_DATA, f"{path_text(*reversed(self.steps))}: {self.why}", _TODO)


class _Rejected:
    """Stands in a parsed document for what the parser would not take, until the walk finds its path."""

    def __init__(self, why: str) -> None:
        self.why = why


def path_text(*steps: object) -> str:
    """Write a path for people: `$.a[2]["odd key"]`."""
    text = "$"
    for step in steps:
        if isinstance(step, str) and len(step) > _LONGEST_STEP:
            text += f"[{json.dumps(step[:_LONGEST_STEP])}…]"
        elif isinstance(step, int):
            text += f"[{step}]"
        elif isinstance(step, str) and step.isascii() and step.isidentifier():
            text += f".{step}"
        else:
            text += f"[{json.dumps(step) if isinstance(step, str) else repr(step)}]"
    return text


def _check_string(value: str) -> None:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            why = "a string with a lone surrogate"
            raise _UnfitError(why) from None


def _scan_float(value: float) -> int:
    if not math.isfinite(value):
        raise _UnfitError(f"{value} is not a finite number")
    size = abs(value)
    if value.is_integer() and size < 1e21:  # RFC 8785 writes these as integers, so they must be readable as such
        if size > MAX_SAFE_INTEGER:
            why = "a number written as an integer beyond ±(2^53 - 1)"
            raise _UnfitError(why)
        return _WHOLE_FLOATS
    return _PLAIN if 1e-4 < size < 1e15 else _EXOTIC


def _scan_dict(value: dict[Any, Any], depth: int, largest: int) -> int:
    found = _PLAIN
    key: Any = None
    try:
        for key, item in value.items():
            if not isinstance(key, str):
                raise _UnfitError(f"a key of type {type(key).__name__}")  # noqa: TRY301 - it takes its path here
            if type(key) is not str:
                found |= _EXOTIC  # the text of a StrEnum, which orjson does not take as a key
            if not key.isascii():
                _check_string(key)
                if max(key) >= "\ud800":  # from here on UTF-16 and UTF-8 sort differently
                    found |= _EXOTIC
            kind = type(item)  # most are one of these; a call for each would cost more
            if item is None or kind is bool or (kind is str and item.isascii()):
                continue
            if kind is int and -largest <= item <= largest:
                continue
            found |= _scan(item, depth, largest)
    except _UnfitError as unfit:
        unfit.steps.append(key)
        raise
    return found


def _scan_list(value: list[Any], depth: int, largest: int) -> int:
    found = _PLAIN
    index = 0
    try:
        for index, item in enumerate(value):  # noqa: B007 - the error names it
            found |= _scan(item, depth, largest)
    except _UnfitError as unfit:
        unfit.steps.append(index)
        raise
    return found


def _scan(value: object, depth: int, largest: int = MAX_SAFE_INTEGER) -> int:
    """Check *value* and say what keeps orjson from writing its canonical form."""
    kind = type(value)
    if kind is str:
        _check_string(value)  # type: ignore[arg-type]
        return _PLAIN
    if value is None or kind is bool:
        return _PLAIN
    if kind is int:
        if -largest <= value <= largest:  # type: ignore[operator]
            return _PLAIN
        why = "an integer beyond ±(2^53 - 1)"
        raise _UnfitError(why)
    if kind is float:
        return _scan_float(value)  # type: ignore[arg-type]
    if kind is dict or kind is list:
        if depth <= 0:
            why = "nested too deeply"
            raise _UnfitError(why)
        scan: Any = _scan_dict if kind is dict else _scan_list
        found: int = scan(value, depth - 1, largest)
        return found
    if isinstance(value, str):  # the text of a StrEnum
        _check_string(value)
        return _PLAIN
    raise _UnfitError(value.why if isinstance(value, _Rejected) else f"a {kind.__name__} is not a JSON value")


def check(value: object) -> None:
    """Refuse what is not a JSON value.

    Raises:
        HostlerError: invalid-data, naming the path of the first thing that is wrong.

    """
    try:
        _scan(value, MAX_DEPTH)
    except _UnfitError as unfit:
        raise unfit.refusal() from None


def _whole(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return {key: _whole(item) for key, item in value.items()}
    if kind is list:
        return [_whole(item) for item in value]
    if kind is float and value.is_integer():
        return int(value)
    return value


def _number_text(value: float) -> str:
    """Write a finite float as ECMAScript's Number::toString does (RFC 8785, 3.2.2.3)."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    before, _, after = mantissa.partition(".")
    digits = (before + after).lstrip("0")
    point = len(before) + int(exponent or 0) - (len(before + after) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"


def _render(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        yield b"{"
        for index, key in enumerate(sorted(value, key=lambda text: text.encode("utf-16-be"))):
            yield (b"," if index else b"") + orjson.dumps(str(key)) + b":"
            yield from _render(value[key])
        yield b"}"
    elif isinstance(value, list):
        yield b"["
        for index, item in enumerate(value):
            if index:
                yield b","
            yield from _render(item)
        yield b"]"
    elif isinstance(value, float):
        yield _number_text(value).encode()
    else:
        yield orjson.dumps(value)


def is_plain(value: object, *, largest: int, inside: int) -> bool:
    """Say whether *value* is a JSON value whose canonical bytes orjson writes, with sorted keys.

    Args:
        value: Anything.
        largest: The largest integer that is taken.
        inside: In how many levels of another value it stands.

    """
    try:
        return _scan(value, _ENVELOPE_DEPTH - inside, largest) == _PLAIN
    except _UnfitError:
        return False


def canonical(value: object, *, largest: int = MAX_SAFE_INTEGER) -> bytes:
    """Return the canonical bytes of *value* (RFC 8785).

    Args:
        value: The JSON value.
        largest: The largest integer that is taken. Only events raise it: a boot time in nanoseconds exceeds
            2^53 after 104 days.

    Raises:
        HostlerError: invalid-data, naming the path of what is not a JSON value.

    """
    try:
        found = _scan(value, _ENVELOPE_DEPTH, largest)
    except _UnfitError as unfit:
        raise unfit.refusal() from None
    if found & _EXOTIC:
        return b"".join(_render(value))
    return sorted_json(_whole(value) if found else value)


def sorted_json(value: Any) -> bytes:
    """Return a value that has nothing exotic in it as JSON with sorted keys, in no more memory than that takes.

    orjson (3.13) gives it in a block of 4 KiB, however little it is; much of what is written here is kept.
    """
    data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return data if len(data) >= _BLOCK else b"".join((data, b""))


def digest_bytes(domain: Domain, data: bytes) -> str:
    """Return the SHA-256, in hex, of the domain, NUL and *data*."""
    return hashlib.sha256(_PREFIXES[domain] + data).hexdigest()


def digest(domain: Domain, value: object) -> str:
    """Return the digest of the canonical bytes of *value*.

    Raises:
        HostlerError: invalid-data, naming the path of what is not a JSON value.

    """
    return digest_bytes(domain, canonical(value))


def _take_integer(text: str) -> object:
    return int(text) if len(text) <= _INTEGER_DIGITS else _Rejected("an integer beyond ±(2^53 - 1)")


def _take_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    taken = dict(pairs)
    if len(taken) < len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                return {key: _Rejected("a duplicate key")}
            seen.add(key)
    return taken


def parse_json(data: bytes | str) -> JsonValue:
    """Parse a document strictly: one JSON value, nothing after it, no duplicate keys.

    Args:
        data: The document; bytes are UTF-8.

    Raises:
        HostlerError: invalid-data, naming the path of what is wrong, or the line and column.

    """
    try:
        text = data.decode() if isinstance(data, bytes) else data
        value: JsonValue = json.loads(
            text,
            object_pairs_hook=_take_object,
            parse_int=_take_integer,
            parse_constant=lambda name: _Rejected(f"{name} is not a finite number"),
        )
    except UnicodeDecodeError as error:
        raise HostlerError(Code.INVALID_DATA, f"$: not UTF-8 at byte {error.start}", _TODO) from None
    except json.JSONDecodeError as error:
        what = f"$: not JSON: {error.msg} at line {error.lineno} column {error.colno}"
        raise HostlerError(Code.INVALID_DATA, what, _TODO) from None
    except RecursionError:
        raise HostlerError(Code.INVALID_DATA, "$: nested too deeply", _TODO) from None
    check(value)
    return value
