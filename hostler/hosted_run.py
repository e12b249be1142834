"""A run that a host of this program works on: what is heard of it, and where it stands."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue

from actors.actions import NodeChanged, RunChanged, RunLeft
from actors.host_messages import Report, RunLost
from actors.messages import Progress
from hostler.progress_notes import ProgressNotes
from hostres.arguments import seconds
from hostres.errors import Code, HostlerError
from store.lazy_dataclass import dataclass
from store.lifecycle import RUN_FINAL, RUN_RESTING, RunStatus

if TYPE_CHECKING:
    from hostler.host import Host

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Where a run stands when `wait` returns.

    Attributes:
        status: Of the run.
        counts: Its nodes under the seven headings of a summary.
        outputs: What a completed run gives back.
        final: Whether it has ended; otherwise it rests until a person acts, or was handed back.

    """

    run_id: str
    status: RunStatus
    counts: Mapping[str, int]
    outputs: JsonValue
    final: bool


class Delivery(threading.local):
    """What a thread that calls a listener of a host may not wait for: that host, or what it has to tell.

    The listener is called on a thread of the actors, or keeps one of them from going on; whatever they have to answer
    would never come.
    """

    under_way = False

    def to(self, listener: Callable[[Report], None], report: Report) -> None:
        """Call *listener*."""
        before, self.under_way = self.under_way, True
        try:
            listener(report)
        finally:
            self.under_way = before

    def refuse(self, what: str) -> None:
        """Refuse *what*, as "a listener cannot …", on a thread that calls a listener.

        Raises:
            HostlerError: conflict.

        """
        if self.under_way:
            raise HostlerError(
                Code.CONFLICT,
                f"a listener cannot {what}: that would wait for the thread that calls it",
                "put the report into a queue, and act on it on a thread of your own",
            )


class Run:
    """A run that this host works on.

    Attributes:
        accept_incompatible: Whether it was resumed to go on without nodes whose code is not here.
        entrusted: Whether it was taken up to be left to the background service.

    """

    def __init__(
        self,
        run_id: str,
        host: "Host",
        *,
        kept: bool,
        notes: ProgressNotes,
        accept_incompatible: bool = False,
        entrusted: bool = False,
    ) -> None:
        self.run_id = run_id
        self.accept_incompatible = accept_incompatible
        self.entrusted = entrusted
        self._notes = notes
        self._host = host
        self._kept = kept
        self._changed = threading.Condition()
        self._listeners: list[Callable[[Report], None]] = []
        self._history: list[Report] = []
        self._outcome: Outcome | None = None
        self._error: HostlerError | None = None
        self._left = False

    def wait(self, timeout: float | None = None) -> Outcome:
        """Wait until the run has ended, rests for a person, or was handed back.

        Args:
            timeout: Seconds; None waits without limit.

        Raises:
            TimeoutError: It still runs.
            HostlerError: This host could not go on with it; it stands in the store. invalid-data: *timeout* is no
                number. conflict: a listener would wait for what only it is told, or a process that was forked off for
                what only the other one is told.

        """
        seconds(timeout, name="timeout")
        if self._host.origin.is_elsewhere:
            if not self._stands():
                self._host.origin.refuse_elsewhere()
            return self._told()  # a lock that another thread held at the fork is never given back here
        with self._changed:
            if not self._stands() and (timeout is None or timeout > 0):
                self._host.delivery.refuse(f"wait for run {self.run_id}")
            if not self._changed.wait_for(self._stands, timeout):
                raise TimeoutError(f"{self.run_id} still runs after {timeout:g} s")
            return self._told()

    def cancel(self, reason: str = "") -> None:
        """Ask for the run to be cancelled; `wait` says when it is. One that has ended stays as it is.

        Raises:
            HostlerError: conflict, if this principal may not ask it, or in a process that was forked off; invalid-data.

        """
        self._host.origin.refuse_elsewhere()
        try:
            self._host.cancel(self.run_id, reason=reason)
        except HostlerError:
            if not self._host._has_ended(self.run_id):  # noqa: SLF001 - Host is the other half of this class
                raise

    def subscribe(self, listener: Callable[[Report], None]) -> None:
        """Call *listener* with every durable change so far and to come, and how far nodes are, on a thread of the host.

        Args:
            listener: Quick; one that raises hears no more, and what it raised is logged. It may ask for a cancel and
                for a resume; what waits for the host is refused there (conflict).

        Raises:
            HostlerError: conflict, in a process that was forked off.

        """
        self._host.origin.refuse_elsewhere()
        with self._changed:
            for report in (*self._history, *self._notes.latest):
                self._host.delivery.to(listener, report)
            self._listeners.append(listener)

    @property
    def left(self) -> bool:
        """Whether this host is done with the run."""
        return self._left

    @property
    def completed(self) -> bool:
        """Whether it has completed; what ended otherwise may have been reopened meanwhile."""
        return self._outcome is not None and self._outcome.status is RunStatus.COMPLETED

    @property
    def lost(self) -> bool:
        """Whether this host could not go on with it."""
        return self._error is not None

    def _hear(self, report: Report) -> None:
        with self._changed:
            match report:
                case NodeChanged(record=record):
                    self._history.append(report)
                    self._notes.node_changed(record)
                case RunChanged():
                    self._history.append(report)
                case Progress():
                    self._notes.note(report)
                case RunLeft() | RunLost():
                    self._history.append(report)  # who subscribes only now waits for it all the same
                    self._notes.close()
            match report:
                case RunLeft():
                    self._left = True
                    self._outcome = Outcome(
                        run_id=self.run_id,
                        status=report.status,
                        counts=report.counts,
                        outputs=report.outputs,
                        final=report.status in RUN_FINAL,
                    )
                case RunLost(error=error):
                    self._left = True
                    self._error = error
                case RunChanged():
                    # a host that hands the run back at rest says so with `RunLeft`
                    rests = self._kept and report.status in RUN_RESTING
                    self._outcome = self._resting(report) if rests else None
                case _:
                    pass
            if self._outcome is not None or self._error is not None:  # nobody waits for anything else
                self._changed.notify_all()
            for listener in list(self._listeners):
                try:
                    self._host.delivery.to(listener, report)
                except BaseException:  # a `sys.exit` there too would end not the program but the actors, with all runs
                    log.exception("a subscriber of %s failed", self.run_id)
                    self._listeners.remove(listener)

    def _stands(self) -> bool:
        """Say whether there is something that `wait` can tell."""
        return self._outcome is not None or self._error is not None

    def _told(self) -> Outcome:
        if self._error is not None:
            raise self._error
        if self._outcome is None:
            raise AssertionError
        return self._outcome

    def _resting(self, report: RunChanged) -> Outcome:
        return Outcome(run_id=self.run_id, status=report.status, counts=report.counts, outputs=None, final=False)
