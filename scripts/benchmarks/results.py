"""What a benchmark found: rows with a value, and a goal that it meets or not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a value should be.

    Attributes:
        limit: The worst value that still meets it.
        at_least: Whether a larger value is better; by default a smaller one is.

    """

    limit: float
    at_least: bool = False

    def __str__(self) -> str:
        """Return it for people."""
        return f"{'>=' if self.at_least else '<='} {self.limit:g}"

    def met_by(self, value: float) -> bool:
        """Return whether *value* meets it."""
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure.

    Attributes:
        name: What was measured.
        value: The figure; None if it could not be measured.
        unit: Its unit; "×" for a ratio.
        goal: What it should be; None for a figure that only informs.
        met: Whether it is; None where there is no goal or no figure.
        note: What a reader should know, such as why there is no figure.

    """

    name: str
    value: float | None
    unit: str
    goal: str | None = None
    met: bool | None = None
    note: str = ""


def judged(name: str, value: float, unit: str, goal: Goal, note: str = "") -> Row:
    """Return the row of a figure that has a goal."""
    return Row(name=name, value=_rounded(value), unit=unit, goal=str(goal), met=goal.met_by(value), note=note)


def ratio(name: str, ours: float, theirs: float, goal: Goal, note: str = "") -> Row:
    """Return the row of *ours* as a multiple of *theirs*."""
    if theirs <= 0:
        return unmeasured(name, "×", goal, "the peer's figure is 0")
    return judged(name, ours / theirs, "×", goal, note)


def informing(name: str, value: float, unit: str, note: str = "") -> Row:
    """Return the row of a figure that has no goal."""
    return Row(name=name, value=_rounded(value), unit=unit, note=note)


def unmeasured(name: str, unit: str, goal: Goal, why: str) -> Row:
    """Return the row of a figure that this machine cannot give."""
    return Row(name=name, value=None, unit=unit, goal=str(goal), note=f"not measured: {why}")


def document(area: str, machine: Mapping[str, Any], rows: Iterable[Row]) -> dict[str, Any]:
    """Return what `--json` prints."""
    return {"area": area, "machine": dict(machine), "results": [asdict(row) for row in rows]}


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows for people, one line each."""
    width = max(len(row.name) for row in rows)
    lines = [f"{'measured':{width}}  {'value':>10} {'unit':4}  {'goal':>8}  met"]
    for row in rows:
        value = "–" if row.value is None else f"{row.value:g}"
        met = {True: "yes", False: "NO", None: "–"}[row.met]
        note = f"  ({row.note})" if row.note else ""
        lines.append(f"{row.name:{width}}  {value:>10} {row.unit:4}  {row.goal or '–':>8}  {met}{note}".rstrip())
    return lines


def verdict(rows: Sequence[Row]) -> str:
    """Return one sentence about all goals."""
    met = sum(row.met is True for row in rows)
    goals = sum(row.met is not None for row in rows)
    open_goals = sum(row.goal is not None and row.met is None for row in rows)
    return f"{met} of {goals} goals met" + (f", {open_goals} not measured" if open_goals else "")


def _rounded(value: float) -> float:
    return float(f"{value:.3g}") if abs(value) < 1000 else round(value)
