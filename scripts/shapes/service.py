"""What `service` and `ui` tell of what keeps running."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON
from typing import NotRequired

from scripts.shapes.common import Versioned
from store.fields import Instant


class UnitInstalled(Versioned):
    manager: str
    path: str
    unit: str
    next: list[str]


class UnitRemoved(Versioned):
    manager: str
    removed: str | None
    next: list[str]


class ServiceStatus(Versioned):
    running: bool
    home: str
    manager: str
    pid: NotRequired[int]
    since: NotRequired[Instant]
    version: NotRequired[str]
    unit: str | None


class Address(Versioned):
    url: str
    port: int
