"""What the machine does right now: read without the gate, and without trusting names.

State comes from a ticket's name, life from its lock, holders from the open files of all processes.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hostres import descriptors
from hostres.claims import default_capacity
from hostres.clock import boot_id, boot_ns
from hostres.errors import HostlerError
from hostres.folders import private_folder
from hostres.holders import Holder, holders_of
from hostres.queue import KEY, Shortage, explain
from hostres.state import DamagedStateError, StateFile
from hostres.tickets import HOLDING, Entry, Record, TicketFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """One reason why a ticket waits.

    Attributes:
        resource: The resource, or "exclusive key".
        wanted: Units it asks for.
        free: Units that are left for it.
        tickets: Who has the rest: holders, and older waiters that go first.

    """

    resource: str
    wanted: int
    free: int
    tickets: tuple[int, ...]

    def __str__(self) -> str:
        who = ", ".join(str(number) for number in self.tickets) or "nobody"
        return f"{self.resource}: wants {self.wanted}, {self.free} free, held by ticket {who}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One live ticket.

    Attributes:
        ticket: Its number.
        state: "admitted" or "waiting".
        claims: Resource → units.
        name: For people.
        pid: Of the process that asked; it may be gone.
        processes: Who holds the ticket now.
        since: When it was admitted, or asked for; RFC 3339 UTC.
        blocked_by: Why it waits.

    """

    ticket: int
    state: str
    claims: Mapping[str, int]
    name: str
    pid: int
    processes: tuple[Holder, ...]
    since: str
    blocked_by: tuple[Blocked, ...] = ()

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
        if self.state == "waiting":
            row["blocked_by"] = [
                {"resource": why.resource, "wanted": why.wanted, "free": why.free, "tickets": list(why.tickets)}
                for why in self.blocked_by
            ]
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """The machine at one moment.

    Attributes:
        capacity: Resource → units, of the profile in force.
        used: Resource → units that are admitted.
        tickets: The admitted, then the waiting, each in order of their numbers.
        turnaround_s: Seconds from asking to release, on a moving average; None before the first.
        strange: Names in the folder that are nobody's.

    """

    capacity: Mapping[str, int]
    used: Mapping[str, int]
    tickets: tuple[Row, ...]
    turnaround_s: float | None = None
    strange: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it for `top --json`."""
        return {
            "capacity": dict(self.capacity),
            "used": dict(self.used),
            "tickets": [row.to_json() for row in self.tickets],
        }


def snapshot(folder: Path) -> Top:
    """Read the machine folder.

    Args:
        folder: The machine folder; a missing one is an idle machine.

    Raises:
        HostlerError: `unsafe-state`.

    """
    try:
        os.lstat(folder)
    except FileNotFoundError:
        return _idle(default_capacity())
    folder = private_folder(folder, create=False)
    state = None
    with contextlib.suppress(DamagedStateError):
        state = StateFile(str(folder)).read()
    capacity = state.capacity if state and state.boot == boot_id() else default_capacity()
    tickets = TicketFolder(str(folder / "t"))
    try:
        listing = tickets.scan()
    except FileNotFoundError:
        return _idle(capacity)
    live = [seen for entry in (*listing.holding, *listing.waiting) if (seen := _look_at(tickets, entry))]
    processes = holders_of(status for _, _, status in live)
    now_boot_ns = boot_ns()
    holding = [record.demand(entry.number) for entry, record, _ in live if entry.state == HOLDING]
    waiting = [record.demand(entry.number) for entry, record, _ in live if entry.state != HOLDING]
    waits = {wait.number: wait for wait in explain(holding, waiting, capacity, now_boot_ns=now_boot_ns)}
    rows = tuple(
        Row(
            ticket=entry.number,
            state="admitted" if entry.state == HOLDING else "waiting",
            claims=record.claims,
            name=record.name,
            pid=record.pid,
            processes=processes[(status.st_dev, status.st_ino)],
            since=_since(entry, record, status, now_boot_ns),
            blocked_by=tuple(_blocked(short) for short in waits[entry.number].short) if entry.number in waits else (),
        )
        for entry, record, status in live
    )
    used = dict.fromkeys(capacity, 0)
    for row in rows:
        if row.state == "admitted":
            for resource, units in row.claims.items():
                used[resource] = used.get(resource, 0) + units
    return Top(
        capacity=dict(sorted(capacity.items())),
        used=dict(sorted(used.items())),
        tickets=rows,
        turnaround_s=state.turnaround_ns / 1e9 if state and state.turnaround_ns else None,
        strange=tuple(sorted(listing.strange)),
    )


def _idle(capacity: Mapping[str, int]) -> Top:
    return Top(capacity=dict(sorted(capacity.items())), used=dict.fromkeys(sorted(capacity), 0), tickets=())


def _look_at(tickets: TicketFolder, entry: Entry) -> tuple[Entry, Record, os.stat_result] | None:
    fd = tickets.watch(entry)
    if fd is None:
        return None
    try:
        status = os.fstat(fd)
    finally:
        descriptors.close(fd)
    try:
        return entry, tickets.read(entry.number), status
    except HostlerError:
        if tickets.is_live(entry):
            raise
        return None  # it went while we looked


def _since(entry: Entry, record: Record, status: os.stat_result, now_boot_ns: int) -> str:
    if entry.state == HOLDING:
        unix_s = status.st_ctime  # the rename that admitted it
    else:
        unix_s = time.time() - (now_boot_ns - record.asked_boot_ns) / 1e9
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _blocked(short: Shortage) -> Blocked:
    resource = "exclusive key" if short.resource.startswith(KEY) else short.resource
    return Blocked(resource=resource, wanted=short.wanted, free=short.free, tickets=short.held_by)
