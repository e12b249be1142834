"""What the shapes of several commands have in common."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON
from typing import Literal

from typing_extensions import TypedDict

from store.fields import Sha256
from store.terms import EvidenceType

Units = dict[str, int]
Number = int | str
"""Money and seconds are texts, since they are exact."""
Usage = dict[str, Number]


class Versioned(TypedDict):
    format_version: Literal[1]


class Owner(TypedDict):
    host: str
    alive: bool


class Imported(TypedDict):
    sha256: Sha256


class Left(TypedDict):
    limit: Number
    left: Number


Budget = dict[Literal["tokens", "cost", "seconds", "tasks", "retries"], Left]


class Piece(TypedDict):
    id: str
    type: EvidenceType
