"""Names of runs and hosts: random, and sortable by the time they were made (ULID)."""

from typing import Final

ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
RANDOM_BYTES: Final = 10
_TIME_LIMIT_MS: Final = 1 << 48
_CHARACTERS: Final = 26


def _ulid(now_ms: int, random_bytes: bytes) -> str:
    if len(random_bytes) != RANDOM_BYTES or not 0 <= now_ms < _TIME_LIMIT_MS:
        raise ValueError(now_ms, random_bytes)
    number = now_ms << 80 | int.from_bytes(random_bytes, "big")
    return "".join(ALPHABET[number >> 5 * place & 31] for place in reversed(range(_CHARACTERS)))


def new_run_id(now_ms: int, random_bytes: bytes) -> str:
    """Return `run_` and 26 characters of lower-case Crockford base 32.

    Args:
        now_ms: Unix time, milliseconds.
        random_bytes: 10 random bytes.

    """
    return f"run_{_ulid(now_ms, random_bytes)}"


def new_host_id(now_ms: int, random_bytes: bytes) -> str:
    """Return `host_` and 26 characters; never used again by another host.

    Args:
        now_ms: Unix time, milliseconds.
        random_bytes: 10 random bytes.

    """
    return f"host_{_ulid(now_ms, random_bytes)}"
