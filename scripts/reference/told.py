"""What is said of the words of the code: of each of them, and of nothing else."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

Word = TypeVar("Word", bound=str)


def rows_of(words: Iterable[Word], said: Mapping[Word, str | tuple[str, ...]], *, where: str) -> list[tuple[str, ...]]:
    """Return a row for each word, in the order of the code: the word, and what is said of it.

    Args:
        words: All there are.
        said: What each means, in one cell or several.
        where: The table that says it, for whoever adds a word: its name and its file.

    Raises:
        ValueError: Of some nothing is said, or something is said of what there is not.

    """
    words = list(words)
    missing = [str(word) for word in words if word not in said]
    if missing:
        raise ValueError(f"nobody says what {', '.join(missing)} means; add a line to {where}")
    gone = [str(word) for word in said if word not in words]
    if gone:
        raise ValueError(f"{where} says something of {', '.join(gone)}, which is not there any more; take it out")
    return [(f"`{word}`", *([cells] if isinstance(cells := said[word], str) else cells)) for word in words]
