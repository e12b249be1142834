"""Keys as a terminal sends them: bytes in, names out. Pure."""

from collections.abc import Mapping
from typing import Final

ESCAPE: Final = "\x1b"

NAMES: Final[Mapping[str, str]] = {
    "A": "up",
    "B": "down",
    "H": "home",
    "F": "end",
    "1~": "home",
    "4~": "end",
    "5~": "page-up",
    "6~": "page-down",
}
"""What follows `ESC [` or `ESC O`, as xterm and the Linux console send it (console_codes(4), ctlseqs of xterm)."""


def keys_of(typed: bytes) -> list[str]:
    """Return the keys that were typed: letters as they are, others by name; what is unknown is left out.

    Args:
        typed: What one read of the terminal gave. A sequence that is cut counts as it stands: nothing waits for more.

    """
    text = typed.decode("utf-8", "ignore")
    keys = []
    while text:
        if text[:1] != ESCAPE:
            keys.append(text[0])
            text = text[1:]
        elif text[1:2] in ("[", "O") and len(text) > 2:
            end = next((at for at, letter in enumerate(text[2:], 2) if "@" <= letter <= "~"), len(text) - 1)
            name = NAMES.get(text[2 : end + 1])
            keys += [name] if name else []
            text = text[end + 1 :]
        else:
            keys.append("escape")
            text = text[1:]
    return keys
