"""Reused daemon threads for blocking work.

A `ThreadPoolExecutor` joins its threads when the interpreter ends, so one callback that hangs would keep the process
from leaving; these are daemons. A thread that has ended its work waits a while for more before it goes.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from hostres.beginning import begin

IDLE_S: Final = 30.0

Work = Callable[[], None]

log = logging.getLogger(__name__)


class WorkThreads:
    """As many daemon threads as there is work at once; no piece of work waits for the end of another.

    For what waits one thread at a time is on its way. Before it does what it takes it sends for the next one, if more
    waits: so much short work needs few threads, and as few switches between them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._here = _Here()
        self._lock = threading.Lock()
        self._idled = threading.Condition(self._lock)
        self._waiting: deque[Work] = deque()
        self._sent_for = False
        self._idle: list[SimpleQueue[None]] = []
        self._retired = False
        self._busy = 0

    @property
    def busy(self) -> int:
        """How many pieces of work are under way."""
        return self._busy

    @property
    def behind(self) -> bool:
        """Whether work waits for a thread that is on its way."""
        return bool(self._waiting)

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until no work is under way, at most *timeout_s* seconds; say whether that is so."""
        with self._idled:
            return self._idled.wait_for(lambda: self._busy == 0, timeout_s)

    def start(self, work: Work) -> None:
        """Run *work* on a thread of its own, now; it must not raise.

        Raises:
            OSError: The system has no room for another thread; the work was not started.

        """
        here = self._here
        if here.ends and here.next is None:
            here.next = work
            with self._lock:
                self._busy += 1
            return
        with self._lock:
            self._busy += 1
            self._waiting.append(work)
        try:
            self._send_for_one()
        except OSError:
            with self._lock:
                if work not in self._waiting:  # one that has ended its own has taken it
                    return
                self._waiting.remove(work)
                self._busy -= 1
            raise

    def start_or_do(self, work: Work) -> None:
        """Run *work*, which must be done: on a thread of its own, or here if the system has no room for one."""
        try:
            self.start(work)
        except OSError:
            work()

    def retire(self) -> None:
        """Let threads go as soon as they have nothing to do; work that comes all the same is done."""
        with self._lock:
            self._retired = True
            idle, self._idle = self._idle, []
        for bell in idle:
            bell.put(None)

    def end_here(self) -> None:
        """Let what the work on this thread starts from now on follow on it: it has ended, but for handing that on."""
        self._here.ends = True

    def _send_for_one(self) -> None:
        """See to it that a thread is on its way, if anything waits."""
        with self._lock:
            if self._sent_for or not self._waiting:
                return
            self._sent_for = True
            bell = self._idle.pop() if self._idle else None
        if bell is None:
            bell = SimpleQueue()
            try:
                begin(threading.Thread(target=self._serve, args=(bell,), name=self._name, daemon=True))
            except OSError:
                self._sent_for = False
                raise
        bell.put(None)  # a new thread waits for it too, so that who sends for one has done so before work begins

    def _serve(self, bell: SimpleQueue[None]) -> None:
        bell.get()
        while True:
            self._sent_for = False
            self._work_off()
            if not self._rest(bell):
                return

    def _work_off(self) -> None:
        """Do what waits, and what follows on it."""
        while True:
            with self._lock:
                if not self._waiting:
                    return
                work: Work | None = self._waiting.popleft()
            try:
                self._send_for_one()
            except OSError:  # what waits is taken by who ends first
                log.warning("the system has no room for another thread", exc_info=True)
            while work is not None:  # what it refers to must not live as long as the thread
                work = self._done(work)

    def _rest(self, bell: SimpleQueue[None]) -> bool:
        """Wait to be sent for; say whether that was so, within a while."""
        with self._lock:
            if self._waiting:
                return True
            if self._retired:
                return False
            self._idle.append(bell)
        try:
            bell.get(timeout=IDLE_S)
        except Empty:
            with self._lock:
                if bell in self._idle:
                    self._idle.remove(bell)
                    return False
            bell.get()  # sent for meanwhile
        return True

    def _done(self, work: Work) -> Work | None:
        """Do *work* and return what follows on this thread."""
        here = self._here
        try:
            work()
        except BaseException:
            log.exception("what a helper thread did broke")  # what follows on it, or waits for it, is done all the same
        finally:
            following, here.next, here.ends = here.next, None, False
            with self._lock:
                self._busy -= 1
                if self._busy == 0:
                    self._idled.notify_all()
        return following


class _Here(threading.local):
    """Of one thread: whether its work has ended, and what follows on it."""

    ends = False
    next: Work | None = None
