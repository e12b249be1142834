"""What `top` tells of the machine and its tickets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hostres.holders import Holder

ADMITTED: Final = "admitted"
WAITING: Final = "waiting"
REVOKED: Final = "revoked"
STATES: Final = (ADMITTED, WAITING, REVOKED)
"""In the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """One reason why a ticket waits.

    Attributes:
        resource: The resource, or "exclusive key".
        wanted: Units it asks for.
        free: Units that are left for it.
        tickets: Who has the rest: holders, and older waiters that go first.
        reserved_for: The ticket for which what is free is kept; None if that is not the reason.
        lacks_memory: It is not claims that take the rest, but what other programs really use.

    """

    resource: str
    wanted: int
    free: int
    tickets: tuple[int, ...]
    reserved_for: int | None = None
    lacks_memory: bool = False

    def __str__(self) -> str:
        if self.lacks_memory:
            return f"{self.resource}: wants {self.wanted}, {self.free} really available"
        others = [number for number in self.tickets if number != self.reserved_for]
        reasons = []
        if others or self.reserved_for is None:
            reasons.append(f"held by ticket {', '.join(map(str, others)) or 'nobody'}")
        if self.reserved_for is not None:
            reasons.append(f"kept for ticket {self.reserved_for}")
        return f"{self.resource}: wants {self.wanted}, {self.free} free, {', '.join(reasons)}"

    def to_json(self) -> dict[str, Any]:
        """Return it for `top --json`."""
        shape: dict[str, Any] = {"resource": self.resource, "wanted": self.wanted, "free": self.free}
        shape["tickets"] = list(self.tickets)
        if self.reserved_for is not None:
            shape["reserved_for"] = self.reserved_for
        if self.lacks_memory:
            shape["really_available"] = self.free
        return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One live ticket.

    Attributes:
        ticket: Its number.
        state: "admitted", "waiting" or "revoked".
        claims: Resource → units.
        name: For people.
        pid: Of the process that asked; it may be gone.
        processes: Who holds the ticket now, as far as one may see it.
        since: When it was admitted, asked for or revoked; RFC 3339 UTC.
        for_s: How many seconds ago that was.
        blocked_by: Why it waits.
        cpus: Numbers of the CPUs that are its own; None unless it was admitted with a claim of cpu.
        stopped: It waits, but its process does not move, so that others go past it.
        patient: It has waited for so long that what it needs is kept for it.
        owner: The number of the user whose it is.
        inside: The ticket of whose units these are a part, None for one on the machine itself.
        priority: From -10 to 10; the higher goes first.

    """

    ticket: int
    state: str
    claims: Mapping[str, int]
    name: str
    pid: int
    processes: tuple[Holder, ...]
    since: str
    for_s: float = 0.0
    blocked_by: tuple[Blocked, ...] = ()
    cpus: tuple[int, ...] | None = None
    stopped: bool = False
    patient: bool = False
    owner: int = 0
    inside: int | None = None
    priority: int = 0

    @property
    def turn(self) -> tuple[bool, int, int]:
        """What orders the waiters of a line: the patient one, then by priority, then by number."""
        return not self.patient, -self.priority, self.ticket

    def to_json(self) -> dict[str, Any]:
        """Return it for `top --json`."""
        row: dict[str, Any] = {
            "ticket": self.ticket,
            "state": self.state,
            "claims": dict(self.claims),
            "name": self.name,
            "pid": self.pid,
            "processes": [{"pid": process.pid, "command": process.command} for process in self.processes],
            "since": self.since,
        }
        if self.cpus is not None:
            row["cpus"] = list(self.cpus)
        if self.state == WAITING:
            row["blocked_by"] = [why.to_json() for why in self.blocked_by]
        if self.inside is not None:
            row["inside"] = self.inside
        for word, true in (("stopped", self.stopped), ("patient", self.patient)):
            if true:
                row[word] = True
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """The machine at one moment.

    Attributes:
        capacity: Resource → units, of the profile in force.
        used: Resource → units that are admitted.
        tickets: The admitted, then the waiting, then the revoked, each in order of their numbers.
        turnaround_s: Seconds from asking to release, on a moving average; None before the first.
        strange: Names in the folder that are nobody's.
        real_memory: Memory must really be available, not only be left of the claims.

    """

    capacity: Mapping[str, int]
    used: Mapping[str, int]
    tickets: tuple[Row, ...]
    turnaround_s: float | None = None
    strange: tuple[str, ...] = ()
    real_memory: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it for `top --json`."""
        return {
            "capacity": dict(self.capacity),
            "used": dict(self.used),
            "tickets": [row.to_json() for row in self.tickets],
        }
