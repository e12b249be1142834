"""Who makes the worktree of a node: one at a time, and only the holder of the exact claim may say that it is ready.

A claim is taken over when its host is dead, when it is older than the grace, or for a later attempt; what its old
holder says after that changes nothing. Each step is one short transaction of its own, compared and swapped.
"""

import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Final

from hostres.errors import Code, HostlerError
from store.clock import Clock, unix_ms
from store.database import open_reader, opened_writer, reading, writing
from store.home import Home
from store.hosts import host_alive
from store.lazy_dataclass import dataclass
from store.records import decode, encode, verified
from store.run_list import unknown_run
from store.schema import SCHEMA_VERSION, check_version
from store.values import Domain, digest_bytes
from store.workspace import WorkspaceRecord

GRACE_MS: Final = 60_000
"""How long the maker of a worktree is left alone while its host lives."""
_CLAIM_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    """The caller makes the worktree.

    Attributes:
        record: Its claim.
        before: What stood there, which is to be removed.

    """

    record: WorkspaceRecord
    before: WorkspaceRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The worktree of this attempt is made."""

    record: WorkspaceRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Somebody else makes it.

    Attributes:
        left_ms: How long they are left alone yet, milliseconds.

    """

    left_ms: int


class WorkspaceClaims:
    """The claims on worktrees, as one host sees them.

    Args:
        home: The store.
        host_id: This host.
        clock: Says which moment it is.
        grace_ms: How long a maker is left alone, milliseconds.
        alive: Says whether a host lives.

    """

    def __init__(
        self,
        home: Home,
        host_id: str,
        *,
        clock: Clock,
        grace_ms: int = GRACE_MS,
        alive: Callable[[Home, str], bool] = host_alive,
    ) -> None:
        self._home = home
        self._host_id = host_id
        self._clock = clock
        self._grace_ms = grace_ms
        self._alive = alive

    def claim(self, run_id: str, node: str, plan_sha256: str, attempt: int) -> Mine | Ready | Busy:
        """Claim the making of the worktree of an attempt.

        Raises:
            HostlerError: conflict, if a later attempt has one already; not-found; unavailable.

        """
        now = self._clock.now().at
        mine = WorkspaceRecord(
            attempt=attempt,
            claim=secrets.token_hex(_CLAIM_BYTES),
            claimed_at=now,
            host_id=self._host_id,
            node=node,
            plan_sha256=plan_sha256,
        )
        with (
            opened_writer(self._home.database, SCHEMA_VERSION, create=False) as connection,
            writing(connection, self._home.database),
        ):
            check_version(connection, self._home.database)
            run = _run(connection, run_id)
            before = _find(connection, run, node)
            if before is not None:
                answer = self._of_another(before, mine)
                if answer is not None:
                    return answer
            _put(connection, run, mine)
        return Mine(record=mine, before=before)

    def _of_another(self, before: WorkspaceRecord, mine: WorkspaceRecord) -> Ready | Busy | None:
        """Say why *mine* may not take the place of *before*, None if it may."""
        if before.attempt > mine.attempt:
            raise superseded(mine)
        if before.ready:
            return Ready(record=before) if before.attempt == mine.attempt else None
        age_ms = max(0, unix_ms(mine.claimed_at) - unix_ms(before.claimed_at))  # a clock may have been set back
        left_ms = self._grace_ms - age_ms
        return Busy(left_ms=left_ms) if left_ms > 0 and self._alive(self._home, before.host_id) else None

    def publish(self, run_id: str, ready: WorkspaceRecord) -> None:
        """Say that the worktree of a claim is made.

        Args:
            run_id: The run.
            ready: The claim, with all that is known of what was made.

        Raises:
            HostlerError: conflict, if somebody else holds the claim by now; unavailable.

        """
        with (
            opened_writer(self._home.database, SCHEMA_VERSION, create=False) as connection,
            writing(connection, self._home.database),
        ):
            run = _run(connection, run_id)
            stands = _find(connection, run, ready.node)
            if stands is None or stands.ready or stands.claim != ready.claim:
                raise superseded(ready)
            _put(connection, run, ready)

    def abandon(self, run_id: str, record: WorkspaceRecord) -> None:
        """Give a claim back whose worktree could not be made, or that is there no more; another one is left alone."""
        with (
            opened_writer(self._home.database, SCHEMA_VERSION, create=False) as connection,
            writing(connection, self._home.database),
        ):
            run = _run(connection, run_id)
            stands = _find(connection, run, record.node)
            if stands is not None and stands.claim == record.claim:
                connection.execute("DELETE FROM workspaces WHERE run = ? AND node = ?", (run, record.node))

    def find(self, run_id: str, node: str) -> WorkspaceRecord | None:
        """Return what is known of the worktree of a node.

        Raises:
            HostlerError: not-found; invalid-data, for a damaged row; unavailable.

        """
        connection = open_reader(self._home.database, SCHEMA_VERSION)
        if connection is None:
            raise unknown_run(run_id)
        with closing(connection), reading(connection, self._home.database):
            return _find(connection, _run(connection, run_id), node)


def superseded(record: WorkspaceRecord) -> HostlerError:
    """Return the refusal of whoever no longer holds the claim on a worktree."""
    return HostlerError(
        Code.CONFLICT,
        f"the worktree of {record.node} for attempt {record.attempt} is somebody else's by now",
        "nothing was changed; see how the run stands with: hostler show RUN",
    )


def _run(connection: sqlite3.Connection, run_id: str) -> int:
    row = connection.execute("SELECT run FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        raise unknown_run(run_id)
    run: int = row[0]
    return run


def _find(connection: sqlite3.Connection, run: int, node: str) -> WorkspaceRecord | None:
    row = connection.execute("SELECT record, sha256 FROM workspaces WHERE run = ? AND node = ?", (run, node)).fetchone()
    if row is None:
        return None
    what = f"worktree of node {node}"
    return decode(WorkspaceRecord, verified(Domain.RECORD, row[0], row[1], what), what)


def _put(connection: sqlite3.Connection, run: int, record: WorkspaceRecord) -> None:
    data = encode(record)
    connection.execute(
        "INSERT INTO workspaces (run, node, record, sha256) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (run, node) DO UPDATE SET record = excluded.record, sha256 = excluded.sha256",
        (run, record.node, data, digest_bytes(Domain.RECORD, data)),
    )
