"""The host as its worker process sees it: questions and answers on a channel, and the end of everything with it."""

import contextlib
import itertools
import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Final, Literal

from actors.control import Control, OperationAborted
from actors.failures import OperationFailed
from actors.frames import Channel, Frame, FrameError
from actors.pace import Pace
from actors.worker_messages import Advanced, Answer, Asked, Beaten, Stop, Unlogged, frame_of, from_host
from hostres.logs import Cut
from store.amounts import Usage, decimal_text
from store.fields import MAX_SAFE_INTEGER
from store.policy import FailureCode

BEATS_EVERY_S: Final = 0.02
"""Far less than any interval of a heartbeat."""
HOST_GONE: Final = 70
"""Exit code of a worker whose host has died; nobody is there to read it."""


class RemoteHost:
    """What the context of an attempt asks of its host, from another process.

    Once the host is gone this process ends at once, as a thread of the host would have: what it started and what
    holds the lease goes on, and the next owner of the run finds it.
    """

    def __init__(self, channel: Channel, control: Control) -> None:
        self._channel = channel
        self._control = control
        self._pace = Pace()
        self._beats = Pace(BEATS_EVERY_S)
        self._speaking = threading.Lock()
        self._silent = False
        self._ids = itertools.count()
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[threading.Event, list[Answer]]] = {}

    def listen(self) -> None:
        """Hear answers, the wish to stop, and the end of the host, on a thread of its own."""
        threading.Thread(target=self._listen, name="hostler-host", daemon=True).start()

    def allow_publication(self) -> None:
        """Return once the host has durably let this attempt through."""
        self._ask("publication")

    def spend(self, usage: Usage) -> None:
        """Return once what this attempt has spent is durably recorded."""
        self._ask("spending", tokens=usage.tokens, cost=decimal_text(usage.cost))

    def next_logs(self) -> tuple[Path, Path]:
        """Return the files for both streams of the next process."""
        out, err = self._ask("logs")
        return out, err

    def open_workspace(self) -> Path:
        """Return the private folder of this node and plan, empty."""
        (workspace,) = self._ask("workspace")
        return workspace

    def progress(self, fraction: float | None, text: str, speed: float | None, left_s: float | None) -> None:
        """Pass on how far the work is; advice, so what cannot be passed on is dropped."""
        if self._pace.due(fraction):
            words = text.encode("utf-8", "replace").decode()[:1000]
            self._tell(Advanced(fraction=fraction, text=words, speed=speed, left_s=left_s))

    def log_cut(self, cut: Cut) -> None:
        """Pass on what a log lacks because the disk did not take it."""
        self._tell(Unlogged(stream=cut.stream[-64:], missing=min(cut.missing, MAX_SAFE_INTEGER), why=cut.why[:1000]))

    def beat(self) -> None:
        """Pass on that the work lives; many beats at once are one."""
        if self._beats.due(None):
            self._tell(Beaten())

    def fall_silent(self) -> None:
        """Tell nothing more on the way: the answer comes next, and nothing may come after it.

        Work that is over may have left a thread that goes on beating.
        """
        with self._speaking:
            self._silent = True

    def _tell(self, message: Advanced | Beaten | Unlogged) -> None:
        with self._speaking:
            if not self._silent:
                with contextlib.suppress(OSError):
                    self._channel.send(frame_of(message))

    def _ask(
        self, what: Literal["publication", "workspace", "logs", "spending"], *, tokens: int = 0, cost: str = "0"
    ) -> tuple[Path, ...]:
        event, answers = threading.Event(), list[Answer]()
        with self._lock:
            number = next(self._ids)
            self._waiting[number] = event, answers
        try:
            self._channel.send(frame_of(Asked(id=number, what=what, tokens=tokens, cost=cost)))
        except OSError as error:
            raise OperationFailed(
                FailureCode.CONFLICT, f"the host cannot be asked: {error}", "ask it from the process it started"
            ) from error
        event.wait()
        (answer,) = answers
        if answer.aborted:
            self._control.note(self._control.reason or "cancel")
            raise OperationAborted(self._control.reason)
        if answer.refusal is not None:
            raise OperationFailed(*answer.refusal)
        return tuple(Path(path) for path in answer.paths)

    def _listen(self) -> None:
        try:
            while (frames := self._channel.receive()) is not None:
                for frame in frames:
                    self._hear(frame)
        except (FrameError, OSError):
            pass
        os._exit(HOST_GONE)

    def _hear(self, frame: Frame) -> None:
        match from_host(frame):
            case Answer() as answer:
                with self._lock:
                    event, answers = self._waiting.pop(answer.id)
                answers.append(answer)
                event.set()
            case Stop(reason=reason):
                self._control.note(reason)
            case other:
                raise FrameError(f"a {type(other).__name__} after the start")


def stop_by_signal(control: Control) -> None:
    """Let SIGTERM raise `OperationAborted` where this process's main thread is, whatever it waits for."""

    def abort(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        control.note("cancel")
        raise OperationAborted("SIGTERM")

    masks = threading.local()

    def hold_back() -> None:
        masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def let_come() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.before)

    def leave() -> None:
        if signal.getsignal(signal.SIGTERM) is abort:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        let_come()

    signal.signal(signal.SIGTERM, abort)
    # what it forks off ends by that, as any process, however early it comes: a pool may end before all of it has begun
    os.register_at_fork(before=hold_back, after_in_parent=let_come, after_in_child=leave)


def end_at_stop() -> None:
    """Let SIGTERM end this process again: what it had to say is said."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_by_signal() -> None:
    """End as SIGTERM ends a process, so that whoever sent it sees that."""
    end_at_stop()
    signal.raise_signal(signal.SIGTERM)
