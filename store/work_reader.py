"""Looking for work as a worker does: what it has, what could be had, and what became of what it asked."""

from typing import Final

from store import chain
from store.contracts import Event, EventKind, NodeRecord, Request
from store.database import reading
from store.reader import Reader
from store.requests import decode_request
from store.row_ids import of_run
from store.work import TakenWork, runs_with_work, taken_work

ANSWERS: Final = frozenset({EventKind.REQUEST, EventKind.REQUEST_REFUSED})


class WorkReader(Reader):
    """A reader that also knows leases and answers."""

    def leases(
        self, *, run_id: str | None = None, worker: str | None = None, node: str | None = None
    ) -> list[TakenWork]:
        """Return work that workers have taken, also if the lease has expired; each argument narrows that."""
        if self._connection is None:
            return []
        with reading(self._connection, self.home.database):
            return taken_work(self._connection, run_id=run_id, worker=worker, node=node)

    def runs_with_work(self) -> list[str]:
        """Return the runs that have a ready node or work that is taken, oldest first."""
        if self._connection is None:
            return []
        with reading(self._connection, self.home.database):
            return runs_with_work(self._connection)

    def nodes_by_key(self, run_id: str) -> dict[str, NodeRecord]:
        """Return the nodes of a run."""
        return {record.key: record for record in self.nodes(run_id)}

    def request(self, run_id: str, request_id: str) -> Request | None:
        """Return a request of a run, None if there is none of that id."""
        rows = self._of_run(
            run_id, "SELECT record, sha256, request_id FROM requests WHERE run = ? AND request_id = ?", request_id
        )
        return decode_request(*rows[0]) if rows else None

    def answer(self, run_id: str, request_id: str) -> Event | None:
        """Return the event that answers a request, None if nobody has answered it yet.

        Args:
            run_id: The run.
            request_id: ASCII, so that it stands in the event as it is.

        """
        rows = self._of_run(
            run_id,
            of_run("event, sha256, seq", "events", only="instr(event, ?) > 0"),
            request_id.encode(),
        )
        for data, sha256, seq in rows:
            event = chain.unseal(data, sha256, run_id=run_id, seq=seq, prev_sha256=None)
            if event.kind in ANSWERS and event.data.get("request_id") == request_id:
                return event
        return None
