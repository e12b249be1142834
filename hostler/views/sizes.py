"""Numbers of bytes for people."""

from typing import Final

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_NEXT: Final = 1000


def bytes_text(number: float) -> str:
    """Return a number of bytes in the largest unit that leaves at least one of it: `0 bytes`, `3.2 MB`, `76 GB`."""
    step = 0
    while number >= _NEXT and step < len(_UNITS) - 1:
        number, step = number / _NEXT, step + 1
    digits = 1 if step and number < 10 else 0
    return f"{number:.{digits}f} {_UNITS[step]}"
