"""Ctrl-C and SIGTERM as messages, for a main thread that waits on a queue."""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from types import FrameType
from typing import Any, Final, Self

from hostres.beginning import begin
from store.lazy_dataclass import dataclass

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """Somebody wants this process to stop.

    Attributes:
        times: The how manyeth time.

    """

    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """Somebody wants the configuration to be read anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """This process goes on, perhaps after it was stopped for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    """Somebody wants this process to stop for a while, as with Ctrl-Z; it puts its terminal in order and does so."""


class Interrupts:
    """While entered, each such signal puts an `Interrupted` into the queue instead of ending the process.

    And each SIGCONT puts a `Continued`: much may have happened while this process was stopped.

    Python runs a handler only when the main thread comes back to its own code. One that arrives just as that thread
    begins to wait would be heard when something else ends the wait, an hour later perhaps. So the interpreter's own
    handler writes the signal's number into a pipe, at once, and a thread of ours reads it.
    """

    def __init__(self, inbox: "SimpleQueue[Any]", *, reloads: bool = False, shows: bool = False) -> None:
        """Prepare it.

        Args:
            inbox: The queue.
            reloads: SIGHUP puts a `Reloaded` instead: this process outlives its terminal.
            shows: It shows something on a terminal: Ctrl-Z puts a `Suspended`.

        """
        self._inbox = inbox
        self._reloads = reloads
        self._heard_too = (signal.SIGCONT, signal.SIGTSTP) if shows else (signal.SIGCONT,)
        self._before: dict[int, Any] = {}
        self._wakeup_before = -1
        self._reading = self._writing = -1
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._wakeup_before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in (*SIGNALS, *self._heard_too):
            # What a caller (nohup) has set to be ignored stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, _heard)
        reader = threading.Thread(target=self._read, name="interrupts", daemon=True)
        begin(reader)
        self._reader = reader
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._writing)
        if self._reader is not None:
            self._reader.join()
        os.close(self._reading)

    def _read(self) -> None:
        times = 0
        while numbers := os.read(self._reading, 64):
            for number in numbers:
                if number in MESSAGES:
                    self._inbox.put(MESSAGES[number]())
                elif number == signal.SIGHUP and self._reloads:
                    self._inbox.put(Reloaded())
                elif number in self._before:
                    times += 1
                    self._inbox.put(Interrupted(times=times))


MESSAGES: Final[Mapping[int, Callable[[], Any]]] = {
    signal.SIGCONT: Continued,
    signal.SIGTSTP: Suspended,
}


def _heard(_number: int, _frame: FrameType | None) -> None:
    """Keep the signal from its default action; the pipe tells of it."""
