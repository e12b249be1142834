"""Secrets taken out of what is kept or shown: values that are marked as secret, and tokens of known shapes.

Marked is the value of each environment variable that `HOSTLER_SECRETS` names, and what the caller adds. What stands for
one is `MASKED`; nothing tells how long it was.
"""

import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, Protocol

MARKED: Final = "HOSTLER_SECRETS"
"""Names of environment variables whose values are secret, with commas between."""
MASKED: Final = b"[secret]"
SHORTEST: Final = 6
"""A marked value of fewer characters would be found in any text, and is left."""
SHORT_BYTES: Final = 1024
HELD_BYTES: Final = 16_384
"""So much of a stream at most is held back, while it may be the beginning of a secret."""

_SHAPES: Final[Mapping[bytes, bytes]] = {
    b"ghp_": rb"[A-Za-z0-9]{30,}",
    b"gho_": rb"[A-Za-z0-9]{30,}",
    b"ghu_": rb"[A-Za-z0-9]{30,}",
    b"ghs_": rb"[A-Za-z0-9]{30,}",
    b"ghr_": rb"[A-Za-z0-9]{30,}",
    b"github_pat_": rb"[A-Za-z0-9_]{22,}",
    b"glpat-": rb"[A-Za-z0-9_-]{18,}",
    b"sk-": rb"[A-Za-z0-9_-]{20,}",
    b"sk_live_": rb"[A-Za-z0-9]{16,}",
    b"rk_live_": rb"[A-Za-z0-9]{16,}",
    b"sk_test_": rb"[A-Za-z0-9]{16,}",
    b"rk_test_": rb"[A-Za-z0-9]{16,}",
    b"xoxb-": rb"[A-Za-z0-9-]{10,}",
    b"xoxp-": rb"[A-Za-z0-9-]{10,}",
    b"xoxa-": rb"[A-Za-z0-9-]{10,}",
    b"xoxe-": rb"[A-Za-z0-9-]{10,}",
    b"xoxr-": rb"[A-Za-z0-9-]{10,}",
    b"xoxs-": rb"[A-Za-z0-9-]{10,}",
    b"AKIA": rb"[0-9A-Z]{16}",
    b"ASIA": rb"[0-9A-Z]{16}",
    b"AIza": rb"[A-Za-z0-9_-]{35}",
    b"hf_": rb"[A-Za-z0-9]{30,}",
    b"npm_": rb"[A-Za-z0-9]{36}",
    b"pypi-": rb"[A-Za-z0-9_-]{40,}",
    b"eyJ": rb"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    b"-----BEGIN ": rb"[A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
}
"""How tokens of well-known services begin → how they go on."""
_KEY_END: Final = re.compile(rb"-----END [A-Z ]*PRIVATE KEY-----")
_WORD: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
"""What a token may consist of."""


class Sink(Protocol):
    """Where a stream is kept."""

    def write(self, piece: bytes) -> None:
        """Take the next bytes."""

    def close(self) -> None:
        """Take no more."""


@cache
def _shapes() -> re.Pattern[bytes]:
    shapes = b"|".join(re.escape(begin) + rest for begin, rest in _SHAPES.items())
    return re.compile(rb"(?<![A-Za-z0-9])(?:" + shapes + rb")", re.DOTALL)


@cache
def _any_begin() -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, _SHAPES)))


def _begins(data: bytes) -> bool:
    """Say whether something in *data* begins like a token; short texts, of which there are many, in one go."""
    if len(data) < SHORT_BYTES:
        return _any_begin().search(data) is not None
    return any(begin in data for begin in _SHAPES)


class Mask:
    """Takes secrets out.

    Args:
        values: What is secret besides tokens of known shapes.

    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        marked = {value.encode("utf-8", "surrogateescape") for value in values if len(value) >= SHORTEST}
        marked |= {line for value in marked for line in value.split(b"\n") if len(line) >= SHORTEST}
        self._values = sorted(marked, key=len, reverse=True)
        self._begins = [*self._values, *_SHAPES]

    @classmethod
    def of(cls, environ: Mapping[str, str], values: Iterable[str] = ()) -> "Mask":
        """Return the mask of what an environment marks as secret.

        Args:
            environ: The environment.
            values: What is secret besides.

        """
        names = environ.get(MARKED, "").split(",")
        return cls([*values, *(environ[name.strip()] for name in names if name.strip() in environ)])

    def finds(self, data: bytes) -> bool:
        """Say whether there is a secret in *data*."""
        if self._values and any(value in data for value in self._values):
            return True
        return _begins(data) and _shapes().search(data) is not None

    def data(self, data: bytes) -> bytes:
        """Return *data* without its secrets."""
        for value in self._values:
            data = data.replace(value, MASKED)
        if _begins(data):
            data = _shapes().sub(MASKED, data)
        return data

    def text(self, text: str) -> str:
        """Return *text* without its secrets."""
        data = text.encode("utf-8", "surrogatepass")
        return self.data(data).decode("utf-8", "surrogatepass") if self.finds(data) else text

    def held(self, data: bytes) -> int:
        """Return how many bytes at the end of *data* may be a part of a secret that is not there whole."""
        window = data[-HELD_BYTES:]
        start = len(window.rstrip(_WORD))  # a pattern with \Z would try each place of each long word before it
        tail = window[start:]
        if not _begins(tail):
            start = len(window)
        for begin in self._begins:
            for length in range(min(len(begin) - 1, len(window)), 0, -1):
                if window.endswith(begin[:length]):
                    start = min(start, len(window) - length)
                    break
        opened = window.rfind(b"-----BEGIN ")
        if opened >= 0 and _KEY_END.search(window, opened) is None:
            start = min(start, opened)
        return len(window) - self._before_a_secret(window, start)

    def _before_a_secret(self, window: bytes, cut: int) -> int:
        """Return *cut*, or the place before it where the secret begins that it would cut in two."""
        found = [match.span() for match in _shapes().finditer(window)] if cut < len(window) else []
        for value in self._values:
            place = window.find(value, max(0, cut - len(value)))
            found += [(place, place + len(value))] if place >= 0 else []
        return min([cut, *(begin for begin, end in found if begin < cut < end)])


class MaskedLog:
    """A log that gets a stream without its secrets, also of those that come in pieces."""

    def __init__(self, log: Sink, mask: Mask) -> None:
        self._log = log
        self._mask = mask
        self._held = b""

    def write(self, piece: bytes) -> None:
        """Take the next bytes; what may be the beginning of a secret waits for what follows it."""
        data = self._held + piece
        held = self._mask.held(data)
        cut = len(data) - held
        self._held = data[cut:]
        if cut:
            self._log.write(self._mask.data(data[:cut]))

    def close(self) -> None:
        """Write what waits, and close the log; idempotent."""
        held, self._held = self._held, b""
        if held:
            self._log.write(self._mask.data(held))
        self._log.close()


def own_mask() -> Mask:
    """Return the mask of this process's own environment."""
    return Mask.of(os.environ)
