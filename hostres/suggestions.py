"""What somebody probably meant who typed a name that does not exist."""

from collections.abc import Iterable

CUTOFF = 0.6
"""How alike two names must be, from 0 to 1, for one to be a slip of the other."""


def nearest(word: str, known: Iterable[str], *, cutoff: float = CUTOFF) -> str | None:
    """Return the known name that is most like *word*, None if none is like it.

    Args:
        word: What was typed; what is longer than any name is like none.
        known: The names that there are.
        cutoff: How alike they must be, from 0 to 1.

    """
    if not 0 < len(word) <= 255:
        return None
    from difflib import get_close_matches  # noqa: PLC0415  only where something is wrong

    found = get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return what to do about an unknown name: the one that was meant, if that can be guessed, then *otherwise*."""
    found = nearest(word, known)
    return otherwise if found is None else f"did you mean {found}? {otherwise}"
