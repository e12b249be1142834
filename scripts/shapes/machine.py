"""What `doctor`, `machine` and `top` tell of the machine."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON
from typing import Literal, NotRequired

from pydantic import JsonValue
from typing_extensions import TypedDict

from hostres.rows import ADMITTED, REVOKED, WAITING
from scripts.shapes.common import Number, Units, Versioned
from store.fields import Instant


class Finding(TypedDict):
    name: str
    state: Literal["ok", "note", "wrong"]
    said: str
    todo: NotRequired[str]
    facts: NotRequired[dict[str, JsonValue]]


class Setting(TypedDict):
    key: str
    value: str
    source: Literal["file", "environment", "machine", "default"]
    line: NotRequired[int]


class Findings(Versioned):
    ok: bool
    settings: list[Setting]
    findings: list[Finding]


class Capacity(TypedDict):
    units: int
    used: int
    source: Literal["configuration", "decision", "default", "program"]
    configured: int | None


class Machine(Versioned):
    profile: str
    turnaround_s: float | None
    folder: str
    configuration: str
    capacity: dict[str, Capacity]
    claims: dict[str, dict[str, Number]]
    memory: Literal["claimed", "available"]
    available_mb: int | None
    nice: int
    ionice: str | None


class Holder(TypedDict):
    pid: int
    command: str


class Blocked(TypedDict):
    resource: str
    wanted: int
    free: int
    tickets: list[int]
    reserved_for: NotRequired[int]
    really_available: NotRequired[int]


class Ticket(TypedDict):
    ticket: int
    state: Literal["admitted", "waiting", "revoked"]
    claims: Units
    name: str
    pid: int
    processes: list[Holder]
    since: Instant
    cpus: NotRequired[list[int]]
    blocked_by: NotRequired[list[Blocked]]
    inside: NotRequired[int]
    stopped: NotRequired[Literal[True]]
    patient: NotRequired[Literal[True]]


assert {ADMITTED, WAITING, REVOKED} == {"admitted", "waiting", "revoked"}


class TicketRevoked(Ticket, Versioned):
    pass


class TicketGone(Versioned):
    ticket: int
    state: Literal["revoked"]
    processes: list[Holder]


class Top(Versioned):
    capacity: Units
    used: Units
    tickets: list[Ticket]
