"""Output compared as a reader would: what is shown must be there, `...` stands for what is left out."""

import re
from typing import Final

LEFT_OUT: Final = re.compile(r"\.\.\.|…")


def matches(shown: list[str], printed: str) -> bool:
    """Return whether *printed* is what *shown* shows.

    Args:
        shown: Lines; `...` in one is any text of a line, a line of `...` alone is any lines. Spaces count as one.
        printed: What came out.

    """
    lines = [plain(line) for line in printed.strip("\n").splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line.strip() in {"...", "…"} else f"{_pattern(line)}\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def plain(line: str) -> str:
    """Return a line with its spaces counted as one."""
    return " ".join(line.split())


def _pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in LEFT_OUT.split(plain(line)))
