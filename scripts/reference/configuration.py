"""The table of all keys of the configuration, from the one that checks the file."""

from hostler.configuration_keys import KEYS, key_row
from scripts.reference.tables import table


def keys_part() -> str:
    """Return a row for each key."""
    return table("key", "right is", "default", "meaning", rows=map(key_row, KEYS))
