"""How the live view fits a terminal: what is left out first when it is narrow, and the node's key last of all."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from store.lazy_dataclass import dataclass

TIME: Final = len("59 m 59 s")
PERCENT: Final = len("100 %")
SPEED: Final = len("99.9×")
LEFT: Final = len("59 m 59 s left")
CPU: Final = len("2.5 cpu")
MEMORY: Final = len("12.5 GB")
BAR: Final = 24
SHORT_BAR: Final = 10
NARROW: Final = 100
"""Below so many columns the bar is short."""
MARK: Final = 2  # the mark and the space after it
GAP: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What a row shows, and how wide; 0 or False is left out.

    Attributes:
        key: Columns for the key, and the branches in front of it.
        tree: Whether these are shown.
        status: Columns for the status in words; without them a row that has no bar tells it in its place.
        time: Whether it is shown how long a node has run.
        bar: Columns for the progress bar.
        percent: Whether progress is shown as a number.
        left: Whether the time left is shown.
        speed: Whether the speed is shown.
        usage: Whether it is shown what the processes of a node use.
        runs: Whether it is shown what a node runs.
        rest: Columns that are left for what is told after the time.

    """

    key: int
    status: int
    tree: bool = True
    time: bool = True
    bar: int = BAR
    percent: bool = True
    left: bool = True
    speed: bool = True
    usage: bool = True
    runs: bool = True
    rest: int = 0

    @property
    def progress(self) -> int:
        """Columns that the bar and all that is told beside it take."""
        parts = [
            self.bar,
            PERCENT if self.percent else 0,
            SPEED if self.speed else 0,
            LEFT if self.left else 0,
        ]
        return sum(part + GAP for part in parts if part) - GAP if any(parts) else 0


def fit(
    width: int, *, key: int, status: int, runs: int, name: int = 0, usage: bool = False, measured: bool = True
) -> Columns:
    """Return the most that fits.

    Args:
        width: Of the terminal, columns.
        key: Of the longest key, characters.
        status: Of the longest status.
        runs: Of the longest text that says what a node runs.
        name: Of the longest key with the branches in front of it.
        usage: Whether there are processes that use anything.
        measured: Whether there is a node that tells how far it is.

    """
    full = Columns(key=max(key, name), status=status, bar=BAR if width >= NARROW else SHORT_BAR, usage=usage)
    if not measured:
        full = replace(full, bar=0, percent=False, speed=False, left=False)
    poorer = list(_poorer_and_poorer(full, key))
    last = poorer[-1]
    chosen = next(
        (columns for columns in poorer if _needed(columns, runs) <= width),
        replace(last, key=max(width - MARK, 1)),
    )
    return replace(chosen, rest=max(width - _before_rest(chosen) - GAP, 0))


def _poorer_and_poorer(columns: Columns, key: int) -> Iterator[Columns]:
    yield columns
    yield (columns := replace(columns, runs=False))
    yield (columns := replace(columns, bar=min(columns.bar, SHORT_BAR)))
    yield (columns := replace(columns, status=0))
    yield (columns := replace(columns, speed=False))
    yield (columns := replace(columns, usage=False))
    yield (columns := replace(columns, left=False))
    yield (columns := replace(columns, time=False))
    yield (columns := replace(columns, tree=False, key=key))
    yield (columns := replace(columns, bar=0))
    yield replace(columns, percent=False)


def _before_rest(columns: Columns) -> int:
    parts = [columns.status, TIME if columns.time else 0]
    return MARK + columns.key + sum(GAP + part for part in parts if part)


def _needed(columns: Columns, runs: int) -> int:
    parts = [columns.progress, CPU + GAP + MEMORY if columns.usage else 0]
    told = sum(GAP + part for part in parts if part)
    return _before_rest(columns) + max(told, GAP + runs if columns.runs and runs else 0)


def shortened(keys: Iterable[str], width: int) -> Mapping[str, str]:
    """Return key → the key in at most *width* characters, shortened in the middle, no two of them alike.

    Args:
        keys: All keys of a run.
        width: At least 1.

    """
    every = list(keys)
    short = {key: _middle(key, width, width // 2) for key in every}
    for head in range(width - 1, -1, -1):
        alike = _alike(short)
        if not alike:
            return short
        group = [key for key in every if short[key] in alike]
        tried = {**short, **{key: _middle(key, width, head) for key in group}}
        if len(_alike(tried)) < len(alike):
            short = tried
    for index, key in enumerate(every):  # nothing tells them apart but where they stand
        if short[key] in _alike(short):
            number = f"…{index + 1}"
            short[key] = (key[: max(width - len(number), 0)] + number)[-width:]
    return short


def _alike(short: Mapping[str, str]) -> set[str]:
    return {text for text, count in Counter(short.values()).items() if count > 1}


def _middle(text: str, width: int, head: int) -> str:
    if len(text) <= width:
        return text
    head = min(head, width - 1)
    tail = width - 1 - head
    return f"{text[:head]}…{text[len(text) - tail :]}"
