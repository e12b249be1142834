"""A node's code in a process of its own: started, listened to, asked to stop, and ended as a whole tree.

The host believes nothing that it can check: every frame is bounded and of a known form, a value is JSON within its
limit, and what breaks the rules fails its node alone. Only the end of the process ends the attempt: a value that a
worker gave counts once nothing of it runs any more.
"""

import contextlib
import socket
from collections.abc import Iterator
from typing import Final

from actors.assignment import Host
from actors.context import Context
from actors.control import Control
from actors.conversation import Conversation
from actors.failures import MAX_TRACEBACK_BYTES, Fault, failed_by, fault_of
from actors.frames import Channel, FrameError
from actors.operations import Entry
from actors.outcomes import Aborted, Outcome, Value
from actors.program import Tail, left_behind, process_failed
from actors.worker_messages import MAX_WORDS_OF_WORKER, Stop, frame_of
from hostres import descriptors
from hostres.exits import Ended
from hostres.masking import own_mask
from hostres.process import Supervised
from store.plans import NodePlan
from store.policy import FailureCode

LEFT_BEHIND_GRACE_S: Final = 2.0
"""Between TERM and KILL of what a worker leaves behind."""

NAME: Final = "its worker process"


class Worker:
    """A worker process and our end of the channel to it."""

    def __init__(self, tree: Supervised, channel: Channel) -> None:
        self.tree: Final = tree
        self.channel: Final = channel

    def end(self, *, grace_s: float, reason: str) -> Ended:
        """Ask it to stop, then end it with all it has started."""
        with contextlib.suppress(OSError):
            self.channel.send(frame_of(Stop(reason=reason)), patient=False)
        return self.tree.end(grace_s=grace_s, reason=reason)


def perform_in_worker(
    plan: NodePlan, entry: Entry, *, context: Context, host: Host, control: Control
) -> tuple[Outcome, str | None]:
    """Do an attempt in a fresh process.

    Args:
        plan: The exact plan.
        entry: What to start.
        context: The attempt as the host sees it; what the worker asks for is asked of it.
        host: Names the logs of the attempt's processes.
        control: Says whether it was asked to stop meanwhile.

    Returns:
        The outcome, and the traceback of an exception that its code did not mean to raise.

    Raises:
        HostlerError: It could not be started.

    """
    if control.reason is not None:
        return Aborted(reason=control.reason, dispatched=False), None
    errors = Tail(None)
    with _started(entry, plan, context=context, host=host, errors=errors) as worker, control.supervising(worker):
        talk = Conversation(worker.tree, worker.channel, plan, context=context, host=host)
        broken = None
        try:
            talk.open(entry.code, entry.bundle)
            talk.listen()
        except FrameError as error:
            broken = str(error)
        ended = worker.tree.end(
            grace_s=0.0 if broken else LEFT_BEHIND_GRACE_S, reason="broken protocol" if broken else "end of its work"
        )
    outcome = _outcome(talk, ended, control, broken=broken, errors=errors.data)
    return outcome, talk.trace


def _outcome(talk: Conversation, ended: Ended, control: Control, *, broken: str | None, errors: bytes) -> Outcome:
    """Say what an attempt has come to, now that its process has ended; first match wins."""
    answered = talk.answer is not None and broken is None
    if control.reason is not None and not (isinstance(talk.answer, Value) and answered and control.reason != "timeout"):
        return Aborted(reason=control.reason, left=tuple(control.left), dispatched=talk.calling)
    if ended.left or ended.exit is None:
        return failed_by(fault_of(left_behind(NAME, ended)), dispatched=True)
    if broken is not None:
        fault = Fault(
            code=FailureCode.MALFORMED_OUTPUT,
            message=f"{NAME} sent {broken}",
            todo="mend the code that writes to descriptors it did not open",
        )
        return failed_by(fault, dispatched=True)
    if talk.answer is not None:
        return talk.answer
    if ended.exit.unseen:
        return failed_by(fault_of(left_behind(NAME, ended)), dispatched=talk.calling)
    error = process_failed(NAME, ended.exit.code, ended.exit.signal, errors, too_early=" before it gave a result")
    return failed_by(fault_of(error), dispatched=talk.calling)


@contextlib.contextmanager
def _started(entry: Entry, plan: NodePlan, *, context: Context, host: Host, errors: Tail) -> Iterator[Worker]:
    with descriptors.guard:
        ours, theirs = socket.socketpair()
        descriptors.hide_all(ours, theirs)
    with contextlib.closing(ours):
        with contextlib.closing(theirs):
            out, err = host.next_logs()
            lease = context.lease
            if lease is not None:
                lease.assert_owned()
            tree = Supervised.start(
                [*entry.argv, str(theirs.fileno())],
                env=context.environment(),
                cwd=context.folder,
                lease_fds=[theirs.fileno(), *([lease.fd] if lease is not None else [])],
                cpus=lease.cpus if lease is not None else (),
                stdout_log=out,
                stderr_log=err,
                on_stderr=errors.feed,
                mask=own_mask(),
                niceness=context.niceness,
            )
        limit = max(plan.policy.max_output_bytes, MAX_TRACEBACK_BYTES)
        try:
            yield Worker(tree, Channel(ours, max_words=MAX_WORDS_OF_WORKER, max_blob=limit))
        finally:  # also where this host itself fails in between
            tree.end(grace_s=0.0, reason="cleanup")
            for cut in tree.cuts:
                host.log_cut(cut)
