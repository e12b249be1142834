"""Secret material in what others say: in JSON values and texts, by shape and by value. Pure.

What tokens look like is known in one place, `hostres.masking`. Here come the names of variables that say that their
value is secret, what follows `Bearer`, and credentials inside a URL.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hostres.masking import MASKED, Mask

MASK: Final = MASKED.decode()
SHORTEST: Final = 8
"""A shorter value is no secret worth its name, and masking it would eat ordinary words."""

_BY_PLACE: Final = re.compile(
    r"""
      \b[Bb]earer\ [A-Za-z0-9._~+/-]{20,}=*
    | (?<=://)[^\s/:@"']{1,256}:[^\s/@"']{1,256}(?=@)
    """,
    re.VERBOSE,
)
_NAMES_A_SECRET: Final = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET_KEY|CREDENTIALS?)(?:$|_)",
    re.IGNORECASE,
)


def secrets_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of an environment whose names say that they are secret."""
    values = {value for name, value in environ.items() if _NAMES_A_SECRET.search(name) and len(value) >= SHORTEST}
    return tuple(sorted(values))


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """Return *text* with a mark in the place of every secret.

    Args:
        text: Any text; a secret that is cut off at its end may not be known as one, so mask first and cut then.
        secrets: Values known to be secret; those of fewer than eight characters are left.

    """
    return _masked(text, _of(secrets))


def holds_secret(value: object, secrets: Iterable[str] = ()) -> bool:
    """Say whether any text in a JSON value, or a text itself, holds secret material."""
    known = _of(secrets)
    return any(_masked(text, known) != text for text in _texts(value))


def _of(secrets: Iterable[str]) -> Mask:
    return Mask(secret for secret in secrets if len(secret) >= SHORTEST)


def _masked(text: str, known: Mask) -> str:
    return _BY_PLACE.sub(MASK, known.text(text))


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for name, inner in value.items():
                yield str(name)
                yield from _texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)
        case _:
            pass
