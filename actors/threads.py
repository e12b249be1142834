"""Reused daemon threads for blocking work.

A `ThreadPoolExecutor` joins its threads when the interpreter ends, so one callback that hangs would keep the process
from leaving; these are daemons. A thread that has ended its work waits a while for more before it goes.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from hostres.beginning import begin

IDLE_S: Final = 30.0

Work = Callable[[], None]


class WorkThreads:
    """As many daemon threads as there is work at once; each piece of work starts at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._here = _Here()
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
        """Run *work* on a thread of its own, now; it must not raise.

        Raises:
            OSError: The system has no room for another thread; nothing was started.

        """
        here = self._here
        if here.ends and here.next is None:
            here.next = work
            with self._lock:
                self._busy += 1
            return
        with self._lock:
            self._busy += 1
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            try:
                begin(threading.Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True))
            except OSError:
                with self._lock:
                    self._busy -= 1
                raise
        inbox.put(work)

    def start_or_do(self, work: Work) -> None:
        """Run *work*, which must be done: on a thread of its own, or here if the system has no room for one."""
        try:
            self.start(work)
        except OSError:
            work()

    def end_here(self) -> None:
        """Let what the work on this thread starts from now on follow on it: it has ended, but for handing that on."""
        self._here.ends = True

    def _serve(self, inbox: SimpleQueue[Work]) -> None:
        while True:
            work: Work | None
            try:
                work = inbox.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if inbox not in self._idle:  # taken meanwhile: its work is on the way
                        continue
                    self._idle.remove(inbox)
                return
            while work is not None:  # what it refers to must not live as long as the thread
                work = self._done(work, inbox)

    def _done(self, work: Work, inbox: SimpleQueue[Work]) -> Work | None:
        """Do *work* and return what follows on it; if nothing does, its thread is idle."""
        here = self._here
        try:
            work()
        finally:
            following, here.next, here.ends = here.next, None, False
            with self._lock:
                self._busy -= 1
                if following is None:
                    self._idle.append(inbox)
                if self._busy == 0:
                    self._idled.notify_all()
        return following


class _Here(threading.local):
    """Of one thread: whether its work has ended, and what follows on it."""

    ends = False
    next: Work | None = None
