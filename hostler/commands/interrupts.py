"""Ctrl-C and SIGTERM as messages, for a main thread that waits on a queue."""

import signal
from dataclasses import dataclass
from queue import SimpleQueue
from types import FrameType
from typing import Any, Final, Self

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """Somebody wants this process to stop.

    Attributes:
        times: The how manyeth time.

    """

    times: int


class Interrupts:
    """While entered, each such signal puts an `Interrupted` into the queue instead of ending the process."""

    def __init__(self, inbox: "SimpleQueue[Any]") -> None:
        self._inbox = inbox
        self._times = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            # What a caller (nohup) has set to be ignored stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, _number: int, _frame: FrameType | None) -> None:
        self._times += 1
        self._inbox.put(Interrupted(times=self._times))  # SimpleQueue.put may be called from a handler
