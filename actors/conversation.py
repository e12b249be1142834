"""What a host and one worker process say to each other, until the worker has answered or ended."""

import contextlib
import os
import select
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from actors.assignment import Host
from actors.context import Context
from actors.control import OperationAborted
from actors.failures import OperationFailed, fault_of
from actors.frames import Channel, FrameError
from actors.inherited_lease import lease_at
from actors.outcomes import Failed, Value
from actors.worker_messages import (
    Advanced,
    Answer,
    Asked,
    Beaten,
    Broke,
    Bundle,
    Calling,
    Gave,
    Shown,
    Start,
    Unlogged,
    frame_of,
    from_worker,
)
from hostres.errors import HostlerError
from hostres.logs import Cut
from hostres.process import Supervised
from store.plans import NodePlan
from store.terms import EvidenceType
from store.values import Domain, canonical, digest_bytes, parse_json

ENDS_WITHIN_S: Final = 2.0
"""How long a worker that has answered may take to end by itself."""


class Conversation:
    """What is said, and what it has come to.

    Attributes:
        calling: Whether the node's own code was reached.
        answer: What it has come to, by its own word.
        trace: The traceback of an exception, if there is one.

    """

    def __init__(self, tree: Supervised, channel: Channel, plan: NodePlan, *, context: Context, host: Host) -> None:
        self._tree = tree
        self._channel = channel
        self._plan = plan
        self._context = context
        self._host = host
        self.calling = False
        self.answer: Value | Failed | None = None
        self.trace: str | None = None

    def open(self, code: dict[str, JsonValue], bundle: bytes | None) -> None:
        """Send the work. A worker that has gone already is found by `listen`.

        Args:
            code: What to call and where it is, for whoever loads it.
            bundle: The stored code, if there is any.

        """
        lease, context = self._context.lease, self._context
        start = Start(
            run_id=context.run_id,
            node=context.node,
            attempt=context.attempt,
            folder=str(context.folder),
            code=code,
            bundled=bundle is not None,
            max_output_bytes=self._plan.policy.max_output_bytes,
            lease=lease_at(lease) if lease is not None else None,
            beats=self._plan.policy.heartbeat is not None,
            envelope=None if context.envelope is None else context.envelope.model_dump(mode="json"),
            kept=tuple(str(each) for each in context.kept),
        )
        with contextlib.suppress(OSError):
            self._channel.send(frame_of(start, canonical(self._plan.input)))
            if bundle is not None:
                self._channel.send(frame_of(Bundle(), bundle))

    def listen(self) -> None:
        """Take what the worker says until it has answered and ended, or ended without an answer.

        The channel alone does not tell its end: a process that the worker forked may hold it open.

        Raises:
            FrameError: It broke the rules.

        """
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        with _watching(self._tree) as exit_fd:
            if exit_fd is not None:
                poll.register(exit_fd, select.POLLIN)
            while exit_fd is not None and self.answer is None:
                events = dict(poll.poll())
                if self._channel.fileno() in events:
                    if not self._take():
                        poll.unregister(self._channel.fileno())  # it closed its end; its exit will tell
                elif exit_fd in events:
                    break
            while self.answer is None and self._has_more() and self._take():
                pass
        self._tree.wait(ENDS_WITHIN_S)

    def _has_more(self) -> bool:
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def _take(self) -> bool:
        """Take what has come; False at the end of the channel."""
        frames = self._channel.receive()
        for frame in frames or ():
            if self.answer is not None:
                raise FrameError("something after its answer")
            match from_worker(frame):
                case Calling():
                    self.calling = True
                case Advanced(fraction=fraction, text=text, speed=speed, left_s=left_s):
                    self._context.progress(fraction, text, speed=speed, left_s=left_s)
                case Beaten():
                    self._host.beat()
                case Unlogged(stream=stream, missing=missing, why=why):
                    self._host.log_cut(Cut(stream, missing, why))
                case Asked() as asked:
                    self._answer(asked)
                case Shown(id=name, type=kind):
                    self._show(name, kind)
                case Gave():
                    self.answer = self._value(frame.blob)
                case Broke() as broke:
                    self.trace = frame.blob.decode("utf-8", "replace") if frame.blob else None
                    self.answer = Failed(
                        code=broke.code,
                        message=broke.message,
                        todo=broke.todo,
                        retryable=broke.retryable,
                        after_s=broke.after_s,
                        dispatched=self.calling,
                    )
        return frames is not None

    def _value(self, data: bytes) -> Value:
        """Return the value that the worker gave, if it is one."""
        if not self.calling:
            raise FrameError("a result of a function that it never called")
        if len(data) > self._plan.policy.max_output_bytes:
            raise FrameError(f"a result of {len(data)} bytes, over the limit that it was told")
        try:
            value = parse_json(data)
            same = canonical(value) == data
        except HostlerError as error:
            raise FrameError(f"a result that is no JSON: {error.what}") from None
        if not same:
            raise FrameError("a result that is not in the one canonical form")
        sha256 = digest_bytes(Domain.OUTPUT, data)
        return Value(value=value, data=data, sha256=sha256, evidence=self._context.brought)

    def _show(self, name: str, kind: EvidenceType) -> None:
        try:
            self._context.evidence(name, kind)
        except OperationFailed as error:
            raise FrameError(f"what is no evidence: {error.message}") from None

    def _answer(self, asked: Asked) -> None:
        try:
            answer = Answer(id=asked.id, paths=tuple(str(path) for path in self._given(asked)))
        except OperationAborted:
            answer = Answer(id=asked.id, aborted=True)
        except (OperationFailed, HostlerError, OSError) as error:
            fault = fault_of(error)
            answer = Answer(id=asked.id, refusal=(fault.code, fault.message, fault.todo))
        with contextlib.suppress(OSError):
            self._channel.send(frame_of(answer))

    def _given(self, asked: Asked) -> tuple[Path, ...]:
        match asked.what:
            case "publication":
                self._context.before_publication()
                return ()
            case "workspace":
                return (self._context.workspace,)
            case "logs":
                return self._host.next_logs()
            case "spending":
                self._context.spend(tokens=asked.tokens, cost=asked.cost)
                return ()


@contextlib.contextmanager
def _watching(tree: Supervised) -> Iterator[int | None]:
    """Give a descriptor that tells the exit of a process, None if it has been seen already."""
    try:
        fd = os.pidfd_open(tree.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        # whoever reaps it says so before the number can be another's
        yield None if tree.wait(0) is not None else fd
    finally:
        os.close(fd)
