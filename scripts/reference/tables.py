"""Tables in Markdown."""

from collections.abc import Iterable


def table(*head: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a table; what is in its cells cannot end them."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
