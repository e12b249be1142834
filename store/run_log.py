"""Reading the log of a run: its events in order, and the ones that answer something."""

from collections.abc import Iterator
from typing import Any, Final

from store import chain
from store.contracts import Event, EventKind
from store.database import reading
from store.faults import damaged
from store.row_ids import PLACES, of_run
from store.run_list import RunList, unknown_run

_EVENTS_AT_ONCE: Final = 500
_EVENTS_BEFORE: Final = (
    "SELECT seq, event, sha256 FROM events WHERE id >= ?1 << 32 AND id < (?1 << 32) + ?2 ORDER BY id DESC LIMIT ?3"
)
_LOG_CUT: Final = f'"kind":"{EventKind.LOG_CUT}"'.encode()
_CLEANUP_ERROR: Final = f'"kind":"{EventKind.CLEANUP_ERROR}"'.encode()
_RUN_CLAIMED: Final = f'"kind":"{EventKind.RUN_CLAIMED}"'.encode()
_ANSWERS: Final = frozenset({EventKind.REQUEST, EventKind.REQUEST_REFUSED})


class RunLog(RunList):
    """Reads the logs of runs, besides their list."""

    def answer(self, run_id: str, request_id: str) -> Event | None:
        """Return the event by which the owner of a run took a request up or refused it; None if it still waits.

        Raises:
            HostlerError: not-found; invalid-data, naming the event.

        """
        query = "SELECT 1 FROM requests WHERE run = ? AND request_id = ? AND consumed_generation IS NOT NULL"
        if not self._of_run(run_id, query, request_id):
            return None
        before = PLACES
        while rows := self._of_run(run_id, _EVENTS_BEFORE, before, _EVENTS_AT_ONCE):  # it is among the last ones
            for seq, data, sha256 in rows:
                event = chain.unseal(data, sha256, run_id=run_id, seq=seq, prev_sha256=None)
                if event.kind in _ANSWERS and event.data.get("request_id") == request_id:
                    return event
            before = rows[-1][0]
        return None

    def events(self, run_id: str, *, after: int = 0) -> Iterator[Event]:
        """Yield a run's log in order, each event's digest and place in the chain verified.

        Args:
            run_id: The run.
            after: Number of the last event already seen.

        Raises:
            HostlerError: not-found; invalid-data, naming the event.

        """
        prev = chain.GENESIS if after == 0 else None
        while True:  # in bites, so that a slow reader does not keep the write-ahead log from being checkpointed
            rows = self._of_run(
                run_id,
                of_run("seq, event, sha256", "events", only="id > (?1 << 32) + ?2") + " LIMIT ?3",
                after,
                _EVENTS_AT_ONCE,
            )
            for seq, data, sha256 in rows:
                if seq != after + 1:
                    raise damaged(f"event {after + 1} of run {run_id}", "it is missing")
                yield chain.unseal(data, sha256, run_id=run_id, seq=seq, prev_sha256=prev)
                after, prev = seq, sha256
            if len(rows) < _EVENTS_AT_ONCE:
                return

    def log_cuts(self, run_id: str) -> tuple[Event, ...]:
        """Return the events that tell of logs that the disk did not take whole, oldest first.

        Raises:
            HostlerError: not-found; invalid-data, naming the event.

        """
        return tuple(self._telling(run_id, EventKind.LOG_CUT, _LOG_CUT))

    def deferrals(self, run_id: str, *, owned: bool) -> dict[str, Event]:
        """Return the last events that tell that it could not be found out what an attempt did, by node.

        Args:
            run_id: The run.
            owned: Whether a host works on it: then only what that has said itself counts, as it asks anew.

        Raises:
            HostlerError: not-found; invalid-data, naming the event.

        """
        found = [event for event in self._cleanup_errors(run_id, "reconciling") if event.node is not None]
        if found and owned:
            claimed = self._last_claim(run_id)
            found = [event for event in found if event.seq > claimed]
        return {event.node or "": event for event in found}

    def given_up(self, run_id: str) -> str | None:
        """Return why the last host of a run gave it up, None if it did not.

        Raises:
            HostlerError: not-found; invalid-data, naming the event.

        """
        found = self._cleanup_errors(run_id, "given_up")
        if not found or found[-1].seq < self._last_claim(run_id):
            return None
        return str(found[-1].data["message"])

    def _cleanup_errors(self, run_id: str, about: str) -> list[Event]:
        errors = self._telling(run_id, EventKind.CLEANUP_ERROR, _CLEANUP_ERROR)
        return [event for event in errors if event.data.get(about) is True]

    def _last_claim(self, run_id: str) -> int:
        return max(event.seq for event in self._telling(run_id, EventKind.RUN_CLAIMED, _RUN_CLAIMED))

    def _telling(self, run_id: str, kind: EventKind, mark: bytes) -> Iterator[Event]:
        """Yield the events of a kind, oldest first."""
        query = of_run("seq, event, sha256", "events", only="instr(event, ?)")
        for seq, data, sha256 in self._of_run(run_id, query, mark):
            event = chain.unseal(data, sha256, run_id=run_id, seq=seq, prev_sha256=None)
            if event.kind is kind:
                yield event

    def _of_run(self, run_id: str, query: str, *values: object) -> list[Any]:
        if self._connection is None:
            raise unknown_run(run_id)
        with reading(self._connection, self.home.database):
            return self._connection.execute(query, (self._number(run_id), *values)).fetchall()

    def _number(self, run_id: str) -> int:
        assert self._connection is not None
        row = self._connection.execute("SELECT run FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        if row is None:
            raise unknown_run(run_id)
        number: int = row[0]
        return number
