"""The one thing that an executor and the work it supervises share: whether to stop, and what to end then."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from hostres.beginning import begin

if TYPE_CHECKING:
    from hostres.exits import Ended


class Endable(Protocol):
    """Processes that can be ended as a whole."""

    def end(self, *, grace_s: float, reason: str) -> "Ended":
        """End them all: TERM, the grace, KILL."""


OVER: Final = "the attempt has ended"
"""Why what is still asked in the name of one is refused."""


class OperationAborted(BaseException):
    """This attempt was asked to stop. Not an `Exception`: an operation is not meant to catch it."""


class Control:
    """Stop signal and process trees of one attempt; every method may be called from any thread.

    Attributes:
        reason: Why it was asked to stop, None while it was not.
        left: What of its processes could not be ended, for people.
        over: Whether the work has ended: a thread that it left has nothing more to say.

    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: threading.Condition | None = None  # made by who first waits for it, as nobody does for most
        self._ending = 0
        self._trees: set[Endable] = set()
        self._grace_s = 0.0
        self._waiting: threading.Event | None = None
        self.reason: str | None = None
        self.left: list[str] = []
        self.over = False

    def check(self) -> None:
        """Raise `OperationAborted` if the attempt was asked to stop."""
        if self.reason is not None:
            raise OperationAborted(self.reason)

    def check_over(self) -> None:
        """Raise `OperationAborted` if the work has ended; one that was only asked to stop may still say something."""
        if self.over:
            raise OperationAborted(OVER)

    def wait(self, event: threading.Event) -> None:
        """Wait for *event*; an abort sets it too, so look at `reason` afterwards."""
        with self._lock:
            waits = self.reason is None
            if waits:
                self._waiting = event
        if waits:
            event.wait()

    @contextmanager
    def supervising(self, tree: Endable) -> Iterator[None]:
        """Keep *tree* where an abort finds it, while it runs; an abort that is ending it is waited for."""
        with self._lock:
            self._trees.add(tree)
            late = self.reason
        if late is not None:  # the abort came between the start and this line
            self._end([tree], late)
        try:
            yield
        finally:
            with self._lock:
                self._trees.discard(tree)
                if self._ending:
                    self._ended = self._ended or threading.Condition(self._lock)
                    self._ended.wait_for(lambda: not self._ending)  # `left` is complete only now

    def abort(self, reason: str, *, grace_s: float) -> None:
        """Ask the attempt to stop and end its process trees, all at once; returns when they have ended.

        Args:
            reason: Who asked: cancel, timeout, drain; the first one counts.
            grace_s: Between TERM and KILL, seconds; a shorter one, for the same reason, counts also while they are
                being ended.

        """
        self.note(reason, grace_s=grace_s)
        with self._lock:
            trees = tuple(self._trees)
        self._end(trees, reason)

    def finish(self, *, grace_s: float) -> None:
        """Take note that the work has ended: whatever a thread that it left still runs is ended, the rest refused.

        Args:
            grace_s: Between TERM and KILL, seconds.

        """
        self.over = True
        self.note(OVER, grace_s=grace_s)
        with self._lock:
            trees = tuple(self._trees)
        if trees:
            self._end(trees, OVER)

    def note(self, reason: str, *, grace_s: float = 0.0) -> None:
        """Let the attempt know that it is to stop, and end nothing; the first reason counts."""
        with self._lock:
            if self.reason is None:
                self.reason = reason
                self._grace_s = grace_s
            self._grace_s = min(self._grace_s, grace_s)
            waiting = self._waiting
        if waiting is not None:
            waiting.set()

    def _end(self, trees: Iterable[Endable], reason: str) -> None:
        with self._lock:
            self._ending += 1
        try:
            others = []
            for tree in trees:
                each = threading.Thread(target=self._end_one, args=(tree, reason), daemon=True)
                try:
                    begin(each)
                except OSError:  # no room for a thread: then one after the other
                    self._end_one(tree, reason)
                else:
                    others.append(each)
            for each in others:
                each.join()
        finally:
            with self._lock:
                self._ending -= 1
                if self._ended is not None:
                    self._ended.notify_all()

    def _end_one(self, tree: Endable, reason: str) -> None:
        ended = tree.end(grace_s=self._grace_s, reason=reason)
        with self._lock:
            for name in (f"{process.command} (pid {process.pid})" for process in ended.left):
                if name not in self.left:
                    self.left.append(name)
