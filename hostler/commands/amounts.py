"""Amounts as they are typed: cost=5, tokens=1000."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Final

from hostres.errors import Code, HostlerError

_DECIMALS: Final = ("cost", "seconds")

Pair = tuple[str, int | str]


def amount(names: Sequence[str], check: Callable[[dict[str, Any]], object]) -> Callable[[str], Pair]:
    """Return the type of an argument NAME=AMOUNT.

    Args:
        names: What may be named.
        check: Raises ValueError for what is no such amount.

    """

    def read(text: str) -> Pair:
        name, _, number = text.partition("=")
        try:
            pair = name, number if name in _DECIMALS else int(number)
            check(dict([pair]))
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text[:60]!r} is no amount of {', '.join(names)}; write it like {names[0]}=5"
            ) from None
        return pair

    return read


def amounts_of(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return what was typed as the data of a request.

    Raises:
        HostlerError: One was given twice (invalid-data).

    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1)
        raise HostlerError(Code.INVALID_DATA, f"{twice} is given twice", "give each once")
    return found
