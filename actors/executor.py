"""One executor a dispatched node: it supervises the work and answers for it, so that a stop reaches it at once."""

import itertools
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from actors.actions import (
    Abort,
    Address,
    PublicationAllowed,
    PublicationRefused,
    SpendingRecorded,
    SpendingRefused,
)
from actors.context import LEFT_BEHIND_GRACE_S
from actors.control import Control
from actors.failures import MAX_MESSAGE, OperationFailed
from actors.host_messages import Died
from actors.messages import LogCut, Progress, PublicationWanted, Returned, SpendingReported
from actors.outcomes import Failed, Outcome, Release, storable
from actors.pace import Pace
from actors.pulse import Pulse
from actors.scheduling.outcomes import check_storable
from actors.secrets import masked
from actors.shell import hand_over, tell
from actors.threads import WorkThreads
from actors.work import Job, perform
from hostres.errors import describe, unavailable
from hostres.lease import Lease, current_lease
from hostres.logs import Cut
from hostres.masking import own_mask
from store.amounts import Usage
from store.policy import FailureCode

log = logging.getLogger(__name__)

NOT_OURS: Final = "this host no longer works on the run"
MAX_PROGRESS: Final = 1000
"""Characters of what is told of progress."""
UNRECORDED: Final = "what was spent is not recorded; tell whoever keeps the budget"

LogPaths = Callable[[str], Path]
"""From the name of a stream to its file."""


class Executor:
    """Runs one attempt on a helper thread and gives its lease back when the work has really ended.

    It has no thread of its own: all that it can be told is to stop, and most never are.

    Attributes:
        urn: Names it among those of its scheduler.

    """

    def __init__(
        self,
        *,
        job: Job,
        control: Control,
        lease: Lease | None,
        threads: WorkThreads,
        scheduler: Address,
        node: str,
        attempt: int,
    ) -> None:
        self._job = job
        self._control = control
        self._lease = lease
        self._threads = threads
        self._scheduler = scheduler
        self._node = node
        self._attempt = attempt
        self._running = threading.Lock()
        self._running.acquire()
        self.urn = f"executor {node} {attempt} {job.previous is not None}"

    def start(self) -> None:
        """Start the work; where the system has no room for a thread, it has failed."""
        try:
            self._threads.start(self._work)
        except OSError as error:
            refused = unavailable("it cannot be started", error)
            failure = Failed(code=FailureCode.UNAVAILABLE, message=refused.what, todo=refused.todo)
            tell(self._scheduler, self._returned(failure))

    def tell(self, message: Abort) -> None:
        """Have the work stop; whoever says so does not wait for its end."""
        self._threads.start_or_do(lambda: self._stop(message))

    def wait(self, timeout_s: float) -> bool:
        """Wait until the work has ended, at most *timeout_s* seconds; say whether it has."""
        ended = self._running.acquire(timeout=timeout_s)
        if ended:
            self._running.release()
        return ended

    def _stop(self, message: Abort) -> None:
        try:
            self._control.abort(message.reason, grace_s=message.grace_s)
        except BaseException as error:
            log.exception("the work of %s cannot be stopped", self._node)
            tell(self._scheduler, Died(name=f"executor {self._node}", urn=self.urn, error=error))

    def _work(self) -> None:
        outcome = self._outcome()
        try:
            self._control.finish(grace_s=LEFT_BEHIND_GRACE_S)  # before the lease is given back
            self._ended(outcome)
        except BaseException as error:  # nobody waits for an answer for ever
            log.exception("the end of the work of %s cannot be told", self._node)
            tell(self._scheduler, Died(name=f"executor {self._node}", urn=self.urn, error=error))

    def _outcome(self) -> Outcome:
        """Do the work; what comes of it can be stored, whatever the node's own code has made of it."""
        # what the node's own code asks of the machine is a part of what the node holds
        outer = current_lease.set(self._lease)
        try:
            outcome = masked(perform(self._job, self._control), self._job.mask())
            check_storable(outcome)
        except BaseException as error:
            log.exception("the work of %s broke", self._node)
            message = storable(f"its work broke: {describe(error)}", MAX_MESSAGE)
            return Failed(code=FailureCode.INTERNAL, message=message, todo="report this")
        else:
            return outcome
        finally:
            current_lease.reset(outer)

    def _ended(self, outcome: Outcome) -> None:
        returned = self._returned(outcome)
        self._threads.end_here()
        if self._threads.behind:  # this thread has other work to do; what ends meanwhile is decided about together
            tell(self._scheduler, returned)
        else:
            hand_over(self._scheduler, returned)

    def _returned(self, outcome: Outcome) -> Returned:
        release = None
        try:
            if self._lease is not None:
                release = Release(ticket=self._lease.ticket, released_boot_ns=self._lease.release())
        finally:
            self._running.release()
        return Returned(
            node=self._node,
            attempt=self._attempt,
            outcome=outcome,
            release=release,
            reconciling=self._job.previous is not None,
        )


class Port:
    """What the context of an attempt asks of its host."""

    def __init__(
        self,
        *,
        node: str,
        attempt: int,
        scheduler: Address,
        control: Control,
        logs: LogPaths,
        workspace: Callable[[], Path],
        reconciling: bool,
        pulse: Pulse | None = None,
    ) -> None:
        self._node = node
        self._attempt = attempt
        self._scheduler = scheduler
        self._control = control
        self._logs = logs
        self._workspace = workspace
        self._reconciling = reconciling
        self._pulse = pulse
        self._pace = Pace()
        self._processes = itertools.count(1)
        self._asking = threading.Lock()

    def next_logs(self) -> tuple[Path, Path]:
        """Return the files for both streams of the next process."""
        number = next(self._processes)
        suffix = "" if number == 1 else f".{number}"
        return self._logs(f"stdout{suffix}"), self._logs(f"stderr{suffix}")

    def log_cut(self, cut: Cut) -> None:
        """Have it recorded that a log lacks what the disk did not take; before the attempt returns."""
        stream = cut.stream.partition(".")[2] or cut.stream
        tell(
            self._scheduler,
            LogCut(node=self._node, attempt=self._attempt, stream=stream, missing=cut.missing, why=cut.why),
        )

    def open_workspace(self) -> Path:
        """Return the workspace, without what an earlier attempt left in it; a reconciliation wants just that."""
        self._control.check_over()  # by now it may be that of another attempt
        return self._workspace()

    def progress(self, fraction: float | None, text: str, speed: float | None, left_s: float | None) -> None:
        """Pass progress on, as often as is any use; it is a sign of life as well."""
        if self._control.over:
            return
        self.beat()
        if self._pace.due(fraction):
            shown = storable(own_mask().text(text), MAX_PROGRESS)
            tell(
                self._scheduler,
                Progress(
                    node=self._node, attempt=self._attempt, fraction=fraction, text=shown, speed=speed, left_s=left_s
                ),
            )

    def beat(self) -> None:
        """Take note of a sign of life, where one is wanted."""
        if self._pulse is not None:
            self._pulse.beat()

    def allow_publication(self) -> None:
        """Wait until this attempt is durably let through."""
        answer = _Answer()
        wanted = PublicationWanted(
            node=self._node, attempt=self._attempt, reply_to=answer, reconciling=self._reconciling
        )
        self._ask(wanted, answer, unheard="nothing was published")
        self._control.check()
        match answer.message:
            case PublicationRefused() as refused:
                raise OperationFailed(refused.code, refused.message, refused.todo)
            case PublicationAllowed():
                return
            case other:
                raise AssertionError(other)

    def spend(self, usage: Usage) -> None:
        """Wait until what this attempt has spent is durably recorded; one that is stopped may still say so."""
        self._control.check_over()
        answer = _Answer()
        said = SpendingReported(node=self._node, attempt=self._attempt, usage=usage, reply_to=answer)
        self._ask(said, answer, unheard=UNRECORDED)
        match answer.message:
            case SpendingRecorded():
                return
            case SpendingRefused():
                raise OperationFailed(FailureCode.CONFLICT, NOT_OURS, UNRECORDED)
            case _:
                self._control.check()

    def _ask(self, wanted: PublicationWanted | SpendingReported, answer: "_Answer", *, unheard: str) -> None:
        """Ask the scheduler and wait for its answer or a stop; one thread of the work asks at a time."""
        with self._asking:
            if not tell(self._scheduler, wanted):
                raise OperationFailed(FailureCode.CONFLICT, NOT_OURS, unheard)
            self._control.wait(answer.given)


class _Answer:
    """An address for one answer, waited for by a helper thread."""

    def __init__(self) -> None:
        self.given = threading.Event()
        self.message: PublicationAllowed | PublicationRefused | SpendingRecorded | SpendingRefused | None = None

    def tell(self, message: Any) -> None:
        self.message = message
        self.given.set()
