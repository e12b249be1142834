"""What may stand in a configuration: keys, the values that are right for each, and the first thing that is wrong. Pure.

A table of `Key`s says it once. The same table checks a file, is what the documentation is compared with, and is what
`hostler doctor` goes through.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

ANY: Final = "*"
"""Stands in a path for any name."""
EACH: Final = "[]"
"""Stands in a path for each table of an array of tables."""
MOST: Final = 2**53 - 1
_LONGEST: Final = 60
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")

Step = str | int
"""A name, or a place in an array from 0."""


class Kind(Protocol):
    """Which values are right."""

    def fits(self, value: Any) -> bool:
        """Return whether a value, as TOML gives it, is right."""

    @property
    def right(self) -> str:
        """What is right, in words."""


class Whole(NamedTuple):
    """A whole number within bounds."""

    least: int
    most: int = MOST

    def fits(self, value: Any) -> bool:
        """Return whether it is one."""
        return isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most

    @property
    def right(self) -> str:
        """What is right, in words."""
        return f"a whole number {_bounds(self.least, self.most)}"


class Number(NamedTuple):
    """A number within bounds."""

    least: float
    most: float = MOST

    def fits(self, value: Any) -> bool:
        """Return whether it is one."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and math.isfinite(value) and self.least <= value <= self.most

    @property
    def right(self) -> str:
        """What is right, in words."""
        return f"a number {_bounds(self.least, self.most)}"


class Words(NamedTuple):
    """One of some words."""

    words: tuple[str, ...]

    def fits(self, value: Any) -> bool:
        """Return whether it is one of them."""
        return isinstance(value, str) and value in self.words

    @property
    def right(self) -> str:
        """What is right, in words."""
        *others, last = (f'"{word}"' for word in self.words)
        return f"{', '.join(others)} or {last}" if others else last


class Text(NamedTuple):
    """A text of a form, not empty.

    Attributes:
        form: What it is, in words.
        pattern: What it must look like, whole.
        most: Characters at most.

    """

    form: str
    pattern: str = r"(?s:.+)"
    most: int = 1024

    def fits(self, value: Any) -> bool:
        """Return whether it is one."""
        return isinstance(value, str) and len(value) <= self.most and re.fullmatch(self.pattern, value) is not None

    @property
    def right(self) -> str:
        """What is right, in words."""
        return self.form


class Several(NamedTuple):
    """An array of at least one."""

    each: Kind

    def fits(self, value: Any) -> bool:
        """Return whether it is one."""
        return isinstance(value, list) and bool(value) and all(map(self.each.fits, value))

    @property
    def right(self) -> str:
        """What is right, in words."""
        return f"an array [ … ] of {self.each.right}"


class Table(NamedTuple):
    """A table that is looked at elsewhere."""

    def fits(self, value: Any) -> bool:
        """Return whether it is one."""
        return isinstance(value, dict)

    @property
    def right(self) -> str:
        """What is right, in words."""
        return "a table"


class Either(NamedTuple):
    """One kind or another."""

    kinds: tuple[Kind, ...]

    def fits(self, value: Any) -> bool:
        """Return whether it is of one of them."""
        return any(kind.fits(value) for kind in self.kinds)

    @property
    def right(self) -> str:
        """What is right, in words."""
        return ", or ".join(kind.right for kind in self.kinds)


class Key(NamedTuple):
    """One key of the configuration.

    Attributes:
        path: Its tables and its name, with dots between; see `ANY` and `EACH`.
        kind: Which values are right.
        meaning: What it is for, a few words.
        default: What holds without it, as it is written; "" where nothing does.
        unit: Of its number, "" where it has none.
        required: Whether its table must have it.
        names: Where its name is `ANY`: which ones there are on every machine.
        form: Where its name is `ANY`: what such a name looks like.
        example: Of a table within a table: how a line of it is written.

    """

    path: str
    kind: Kind
    meaning: str
    default: str = ""
    unit: str = ""
    required: bool = False
    names: tuple[str, ...] = ()
    form: Text | None = None
    example: str = ""

    @property
    def steps(self) -> tuple[str, ...]:
        """Its path, step by step."""
        return tuple(self.path.replace(EACH, f".{EACH}").split("."))

    @property
    def right(self) -> str:
        """What is right for it, in words."""
        return f"{self.kind.right} ({self.unit})" if self.unit else self.kind.right


class Problem(NamedTuple):
    """The first thing that is wrong.

    Attributes:
        place: Where, step by step.
        what: What is wrong.
        todo: What is right.
        unknown: Whether it is a key that nobody knows.

    """

    place: tuple[Step, ...]
    what: str
    todo: str
    unknown: bool = False


def first_problem(settings: Mapping[str, Any], keys: Sequence[Key]) -> Problem | None:
    """Return the first thing that is wrong with a configuration, in the order in which it is written.

    Args:
        settings: The content of the file.
        keys: All that may stand there.

    """
    return next(_Check(keys).table((), (), settings), None)


def written(value: Any) -> str:
    """Return a value of a configuration as it is written there, of bounded length."""
    match value:
        case bool():
            text = str(value).lower()
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            shown = "".join(each if each.isprintable() else f"\\u{ord(each):04X}" for each in escaped)
            text = f'"{shown}"'
        case list():
            text = f"[{', '.join(map(written, value))}]"
        case dict():
            text = f"{{ {', '.join(f'{name_of((name,))} = {written(one)}' for name, one in value.items())} }}"
        case _:
            text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def name_of(place: Iterable[Step]) -> str:
    """Return a place in a configuration as people write it, `authority.rule[0].id`."""
    text = ""
    for step in place:
        if isinstance(step, int) or step == EACH:
            text += f"[{step}]" if isinstance(step, int) else step
        else:
            name = step if _BARE.fullmatch(step) or step == ANY else written(step)
            text += f".{name}" if text else name
    return text


class _Check:
    """One look through a configuration."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = {key.steps: key for key in keys}
        self._inside: dict[tuple[str, ...], dict[str, None]] = {}
        for steps in self._keys:
            for depth, step in enumerate(steps):
                self._inside.setdefault(steps[:depth], {})[step] = None

    def table(self, path: tuple[str, ...], place: tuple[Step, ...], given: Mapping[str, Any]) -> Iterator[Problem]:
        inside = self._inside[path]
        for name, value in given.items():
            step = name if name in inside else ANY
            here = (*path, step)
            if step not in inside or name in (ANY, EACH):
                yield self._unknown(path, (*place, name))
            elif step == ANY and (odd := self._odd_name(here, name)) is not None:
                yield Problem((*place, name), f"{name_of((*place, name))} is no such name", f"write {odd}")
            else:
                yield from self._value(here, (*place, name), value)
        for step in inside:
            key = self._keys.get((*path, step))
            if key is not None and key.required and step not in given:
                yield Problem(place, f"{name_of(place)} has no {step}", f"give it one: {key.right}")

    def _value(self, path: tuple[str, ...], place: tuple[Step, ...], value: Any) -> Iterator[Problem]:
        key, inside = self._keys.get(path), self._inside.get(path, {})
        if EACH in inside:
            if not (isinstance(value, list) and all(isinstance(each, dict) for each in value)):
                what = f"{name_of(place)} is not an array of tables"
                yield Problem(place, what, f"write [[{name_of(place)}]] before each of them")
                return
            for number, each in enumerate(value):
                yield from self.table((*path, EACH), (*place, number), each)
        elif inside and isinstance(value, dict):
            yield from self.table(path, place, value)
        elif key is None:
            yield Problem(place, f"{name_of(place)} is not a table", self._as_table(path, place))
        elif not key.kind.fits(value):
            right = f"{key.right}, or {self._example(path)}" if inside else key.right
            yield Problem(place, f"{name_of(place)} = {written(value)} is not right", f"write {right}")

    def _as_table(self, path: tuple[str, ...], place: tuple[Step, ...]) -> str:
        example = self._example(path)
        if not example:
            return f"write [{name_of(place)}] and its keys below: {', '.join(self._inside[path])}"
        if path[-1] == ANY:
            return f"write {place[-1]} = {example}"
        return f"write [{name_of(place)}] and below it lines as {self._line(path)}"

    def _line(self, path: tuple[str, ...]) -> str:
        """Return how a line of a table is written."""
        return next(
            (key.example for steps, key in self._keys.items() if steps[: len(path)] == path and key.example), ""
        )

    def _example(self, path: tuple[str, ...]) -> str:
        """Return how the value of such a line is written."""
        return self._line(path).partition(" = ")[2]

    def _odd_name(self, path: tuple[str, ...], name: str) -> str | None:
        forms = (key.form for steps, key in self._keys.items() if steps[: len(path)] == path)
        form = next((form for form in forms if form is not None), None)
        return form.right if form is not None and not form.fits(name) else None

    def _unknown(self, path: tuple[str, ...], place: tuple[Step, ...]) -> Problem:
        meant = self._meant(path, place)
        if meant is None:
            todo = f"take it out; here may stand {', '.join(self._inside[path])}"
        else:
            todo = f"did you mean {meant}?"
        return Problem(place, f"there is no key {name_of(place)}", todo, unknown=True)

    def _meant(self, path: tuple[str, ...], place: tuple[Step, ...]) -> str | None:
        """Return the key that was probably meant: near by its name here, or of that name elsewhere."""
        from hostres.suggestions import CUTOFF, nearest  # noqa: PLC0415  only where something is wrong

        name = str(place[-1])
        here = {step: name_of((*place[:-1], step)) for step in self._inside[path] if step not in (ANY, EACH)}
        elsewhere: dict[str, str] = {}
        for steps, key in self._keys.items():
            for depth, step in enumerate(steps):
                for each in key.names if step == ANY and depth == len(steps) - 1 else (step,):
                    elsewhere.setdefault(each, name_of((*steps[:depth], each)).replace(EACH, ""))
        for known, near in ((elsewhere, 1.0), (here, CUTOFF), (elsewhere, CUTOFF)):
            found = nearest(name, [each for each in known if each not in (ANY, EACH)], cutoff=near)
            if found is not None:
                return known[found]
        return None


def _bounds(least: float, most: float) -> str:
    return f"of at least {least:,}" if most >= MOST else f"from {least:,} to {most:,}"
