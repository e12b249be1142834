"""How much the store takes; checked before anything is written."""

from typing import Final

from store.lazy_dataclass import dataclass

KIB: Final = 1 << 10
MIB: Final = 1 << 20

VALUE_BYTES: Final = 32 * MIB
"""Canonical bytes of a plan or an output at most."""

INLINE_BYTES: Final = 256 * KIB
"""What is larger lies in a file beside the database, by its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of what is stored.

    Attributes:
        events: Events of a run.
        events_kept: Of these, how many only transactions that end something may use, besides two a node.
        entry_bytes: Canonical bytes of one event.
        value_bytes: Canonical bytes of a plan or an output.
        bundle_bytes: Bytes of a code bundle.

    """

    events: int = 1_000_000
    events_kept: int = 64
    entry_bytes: int = 256 * KIB
    value_bytes: int = VALUE_BYTES
    bundle_bytes: int = 16 * MIB
