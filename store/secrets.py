"""Secret material in texts: found by the shapes of well-known tokens and by values known to be secret. Pure.

A text that is masked holds none of it any more. What looks like a secret only sometimes (a long hexadecimal number, a
word behind `password`) is left alone: masking must not eat digests and ids.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

MASK: Final = "[secret]"
SHORTEST: Final = 8
"""A shorter value is no secret worth its name, and masking it would eat ordinary words."""

_SHAPES: Final = re.compile(
    r"""
      -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|rk|pk)[-_](?:live|test|ant|proj|svcacct|or)[-_][A-Za-z0-9_-]{12,}
    | \bsk-[A-Za-z0-9]{20,}
    | \bgh[pousr]_[A-Za-z0-9]{30,}
    | \bgithub_pat_[A-Za-z0-9_]{22,}
    | \bglpat-[A-Za-z0-9_-]{18,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bAIza[0-9A-Za-z_-]{35}
    | \bhf_[A-Za-z0-9]{30,}
    | \bnpm_[A-Za-z0-9]{36}
    | \bpypi-[A-Za-z0-9_-]{40,}
    | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}
    | \b[Bb]earer\ [A-Za-z0-9._~+/-]{20,}=*
    | (?<=://)[^\s/:@"']{1,256}:[^\s/@"']{1,256}(?=@)
    """,
    re.VERBOSE | re.DOTALL,
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
        secrets: Values known to be secret.

    """
    for secret in sorted(secrets, key=len, reverse=True):  # one may hold another
        if len(secret) >= SHORTEST:
            text = text.replace(secret, MASK)
    return _SHAPES.sub(MASK, text)


def holds_secret(value: object, secrets: Iterable[str] = ()) -> bool:
    """Say whether any text in a JSON value, or a text itself, holds secret material."""
    known = tuple(secrets)
    return any(mask(text, known) != text for text in _texts(value))


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
