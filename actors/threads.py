"""Reused daemon threads for blocking work.

A `ThreadPoolExecutor` joins its threads when the interpreter ends, so one callback that hangs would keep the process
from leaving; these are daemons. A thread that has ended its work waits a while for more before it goes.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

IDLE_S: Final = 30.0

Work = Callable[[], None]


class WorkThreads:
    """As many daemon threads as there is work at once; each piece of work starts at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idled = threading.Condition(self._lock)
        self._idle: list[SimpleQueue[Work]] = []
        self._busy = 0

    @property
    def busy(self) -> int:
        """How many pieces of work are under way."""
        return self._busy

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until no work is under way, at most *timeout_s* seconds; say whether that is so."""
        with self._idled:
            return self._idled.wait_for(lambda: self._busy == 0, timeout_s)

    def start(self, work: Work) -> None:
        """Run *work* on a thread of its own, now; it must not raise."""
        with self._lock:
            self._busy += 1
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True).start()
        inbox.put(work)

    def _serve(self, inbox: SimpleQueue[Work]) -> None:
        while True:
            try:
                work = inbox.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if inbox not in self._idle:  # taken meanwhile: its work is on the way
                        continue
                    self._idle.remove(inbox)
                return
            try:
                work()
            finally:
                del work  # what it refers to must not live as long as the thread
                with self._lock:
                    self._busy -= 1
                    self._idle.append(inbox)
                    if self._busy == 0:
                        self._idled.notify_all()
