"""The list of examples, from their own first lines."""

import ast
from itertools import takewhile
from pathlib import Path
from typing import Final

from scripts.reference.tables import table

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


def examples_part() -> str:
    """Return a table of all of them."""
    rows = [(f"`{path.name}`", summary(path), f"`{typed(path)}`") for path in examples()]
    return table("file", "shows", "type", rows=rows)


def examples() -> list[Path]:
    """Return the examples that can say what they are: JSON has no comments, its twins say it."""
    return sorted(path for path in EXAMPLES.iterdir() if path.suffix in {".py", ".toml", ".yaml"})


def words(path: Path) -> str:
    """Return what stands at the top of an example: its docstring, or its first comment without the marks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text), clean=False) or ""
    comment = takewhile(lambda line: line.startswith("#"), text.splitlines())
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in comment)


def summary(path: Path) -> str:
    """Return its first paragraph, as a sentence."""
    first = " ".join(words(path).partition("\n\n")[0].split())
    return f"{first.rstrip(':.')}."


def typed(path: Path) -> str:
    """Return the first line to type, with those that go on from it, without what is said of it."""
    lines = [line for line in words(path).splitlines() if line.startswith("    ")]
    goes_on = lines[0].rstrip().endswith(("|", "\\"))
    return " ".join(line.partition("  # ")[0].strip() for line in lines[: 2 if goes_on else 1])
