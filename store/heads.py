"""The part of a run's row that every write reads and most change: its claim, its counts, the end of its log."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from hostres.errors import Code, HostlerError
from store import chain
from store.clock import Stamp
from store.faults import damaged
from store.lifecycle import RunStatus, Status
from store.limits import Limits
from store.row_ids import row_id
from store.run_list import unknown_run
from store.transactions import NewEvent

_SELECT: Final = """
    SELECT run, run_id, status, started_at, generation, host_id, token, counts, event_seq, event_sha256,
        imported_sha256 IS NOT NULL
    FROM runs WHERE run_id = ?
"""


@dataclass(slots=True, kw_only=True)
class Head:
    """That part, as it is in the running transaction.

    Attributes:
        run: The run's number in this file.
        counts: Its nodes by status.
        event_seq: Number of its last event.
        event_sha256: Digest of its last event.
        imported: Whether it is a mere record, brought in from an archive.

    """

    run: int
    run_id: str
    status: RunStatus
    started_at: str | None
    generation: int
    host_id: str | None
    token: str | None
    counts: dict[Status, int]
    event_seq: int
    event_sha256: str
    imported: bool = False


def read_head(connection: sqlite3.Connection, run_id: str) -> Head:
    """Return the head of that run.

    Raises:
        HostlerError: not-found; invalid-data, for a row that is damaged.

    """
    row = connection.execute(_SELECT, (run_id,)).fetchone()
    if row is None:
        raise unknown_run(run_id)
    run, run_id, status, started_at, generation, host_id, token, counts, event_seq, event_sha256, imported = row
    try:
        return Head(
            run=run,
            run_id=run_id,
            status=RunStatus(status),
            started_at=started_at,
            generation=generation,
            host_id=host_id,
            token=token,
            counts=_counts(counts),
            event_seq=event_seq,
            event_sha256=event_sha256,
            imported=bool(imported),
        )
    except (ValueError, TypeError, AttributeError):
        raise damaged(f"row of run {run_id}", "its columns hold what was never written there") from None


def _counts(text: str) -> dict[Status, int]:
    counts = {Status(name): number for name, number in orjson.loads(text).items()}
    if not all(type(number) is int and number >= 0 for number in counts.values()):
        raise ValueError(text)
    return counts


def refuse_if_imported(run_id: str, *, imported: bool) -> None:
    """Refuse to go on with, or to ask anything of, a run that is a mere record.

    Raises:
        HostlerError: conflict.

    """
    if imported:
        raise HostlerError(
            Code.CONFLICT,
            f"run {run_id} was imported; it is a record of what was done elsewhere",
            f"look at it with `hostler show {run_id}`; to do the work again start a new run",
        )


def counts_text(counts: Mapping[Status, int]) -> str:
    """Write counts as their column holds them."""
    present = {status._value_: number for status, number in counts.items() if number}
    return orjson.dumps(present, option=orjson.OPT_SORT_KEYS).decode()


INSERT_EVENT: Final = "INSERT INTO events (id, event, sha256) VALUES (?, ?, ?)"


def seal_events(head: Head, stamp: Stamp, events: Iterable[NewEvent], limits: Limits) -> list[tuple[int, bytes, str]]:
    """Move the head on by *events* and return their rows for `INSERT_EVENT`; the caller stores both.

    Raises:
        HostlerError: invalid-data, for an event that is too large or holds what is no JSON value.

    """
    rows = []
    for event in events:
        seq = head.event_seq + 1
        data, sha256 = chain.seal(event, run_id=head.run_id, seq=seq, stamp=stamp, prev_sha256=head.event_sha256)
        if len(data) > limits.entry_bytes:
            what = f"event {event.kind} of run {head.run_id} has {len(data)} bytes, {limits.entry_bytes} are allowed"
            raise HostlerError(Code.INVALID_DATA, what, "put what is large into a file and name that")
        rows.append((row_id(head.run, seq), data, sha256))
        head.event_seq, head.event_sha256 = seq, sha256
    return rows


def append_events(
    connection: sqlite3.Connection, head: Head, stamp: Stamp, events: Iterable[NewEvent], limits: Limits
) -> None:
    """Append to the run's log and move the head on; the caller stores the head.

    Raises:
        HostlerError: invalid-data, for an event that is too large or holds what is no JSON value.

    """
    connection.executemany(INSERT_EVENT, seal_events(head, stamp, events, limits))
