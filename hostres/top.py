"""What the machine does right now, and which processes do it.

Holders come from the open files of all processes: so it can name what still holds a dead program's ticket.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from hostres.affinity import CPU, of_name
from hostres.claims import default_capacity
from hostres.holders import holders_of
from hostres.listing import DOZING, HOLDING
from hostres.queue import KEY, Shortage
from hostres.revocation import FOLDER
from hostres.rows import ADMITTED, REVOKED, STATES, WAITING, Blocked, Row, Top
from hostres.survey import Seen, Survey, read_tickets, survey
from hostres.tickets import Record

__all__ = ["ADMITTED", "REVOKED", "WAITING", "Blocked", "Row", "Top", "snapshot"]


def snapshot(folder: Path, records: dict[str, Record] | None = None) -> Top:
    """Read the machine folder.

    Args:
        folder: The machine folder; a missing one is an idle machine.
        records: As for `read_tickets`, for who looks again and again.

    Raises:
        HostlerError: `unsafe-state`.

    """
    found = survey(folder, records)
    if found is None:
        capacity = dict(sorted(default_capacity().items()))
        return Top(capacity=capacity, used=dict.fromkeys(capacity, 0), tickets=())
    rows = _rows(found, list(read_tickets(folder / FOLDER)[1].values()))
    return Top(
        capacity=dict(sorted(found.capacity.items())),
        used=dict(sorted(_used(rows, found.capacity).items())),
        tickets=tuple(sorted(rows, key=lambda row: (STATES.index(row.state), row.ticket))),
        turnaround_s=found.turnaround_ns / 1e9 if found.turnaround_ns else None,
        strange=tuple(sorted(found.listing.strange)),
        real_memory=found.available_mb is not None,
    )


def _rows(found: Survey, revoked: list[Seen]) -> list[Row]:
    waits = found.waits()
    processes = holders_of(seen.status for seen in (*found.live.values(), *revoked))

    def row(seen: Seen, state: str) -> Row:
        entry, record = seen.entry, seen.record
        for_s = _for_s(seen, state, found.boot_ns)
        wait = waits.get(entry.key)
        host = found.listing.host(entry) if state != REVOKED else None
        return Row(
            ticket=entry.number,
            state=state,
            claims=record.claims,
            name=record.name,
            pid=record.pid,
            processes=processes[(seen.status.st_dev, seen.status.st_ino)],
            since=_stamp(time.time() - for_s),
            for_s=for_s,
            blocked_by=tuple(_blocked(short, found) for short in wait.short) if wait else (),
            cpus=of_name(entry.name) if state == ADMITTED and CPU in record.claims else None,
            stopped=entry.state == DOZING,
            patient=wait is not None and wait.patient,
            owner=seen.status.st_uid,
            inside=host.number if host else None,
            priority=record.priority,
        )

    rows = [row(seen, ADMITTED if seen.entry.state == HOLDING else WAITING) for seen in found.live.values()]
    return rows + [row(seen, REVOKED) for seen in revoked]


def _used(rows: list[Row], capacity: Mapping[str, int]) -> dict[str, int]:
    used = dict.fromkeys(capacity, 0)
    for row in rows:
        if row.state == ADMITTED and row.inside is None:
            for resource, units in row.claims.items():
                used[resource] = used.get(resource, 0) + units
    return used


def _for_s(seen: Seen, state: str, now_boot_ns: int) -> float:
    if state == WAITING:
        return max(0.0, (now_boot_ns - seen.record.asked_boot_ns) / 1e9)
    return max(0.0, time.time() - seen.status.st_ctime)  # of the rename that admitted or revoked it


def _stamp(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _blocked(short: Shortage, found: Survey) -> Blocked:
    return Blocked(
        resource="exclusive key" if short.resource.startswith(KEY) else short.resource,
        wanted=short.wanted,
        free=short.free,
        tickets=short.held_by,
        reserved_for=short.reserved_for,
        lacks_memory=found.lacks_memory(short),
    )
