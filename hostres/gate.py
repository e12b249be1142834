"""The gate of a machine folder: the lock under which processes decide about tickets, one at a time.

A signal may be handled between any two steps of a program, and Ctrl-C then raises an exception there. So the gate is
not only given back by whoever leaves it: see `Gate.hold`.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, ParamSpec, Self, TypeVar

import fasteners

from hostres import descriptors
from hostres.errors import Code, HostlerError
from hostres.folders import MAX_BYTES, open_private
from hostres.locks import identity
from hostres.logger import LOG

P = ParamSpec("P")
T = TypeVar("T")


class Gate(fasteners.InterProcessLock):  # type: ignore[misc]  # fasteners has no type marker
    """The short decision lock: one per path and process, one thread at a time, its file kept open.

    Released by LOCK_UN, so that no copy of the descriptor can keep it; never held across anything slow.

    Attributes:
        place: Where its file is.
        fd: Its descriptor, -1 before it was first entered.

    """

    DELAY_S: Final = 0.00005
    MAX_DELAY_S: Final = 0.001
    SILENCE_S: Final = 2.0
    """After so long the process that holds it is named."""

    _gates: Final[dict[str, "Gate"]] = {}

    def __init__(self, path: str) -> None:
        super().__init__(path, sleep_func=self._pause)
        self.place = path
        self.fd = -1
        self.acquired: bool
        self._identity = (0, 0)
        self._thread = threading.RLock()
        """Whose turn it is; it knows whose, so that a thread that was interrupted cannot give back another's."""
        self._since = 0.0
        self._named = False
        self._until: float | None = None
        descriptors.forget_after_fork(self)

    @classmethod
    def at(cls, path: str) -> Self:
        """Return this process's gate at *path*."""
        with descriptors.guard:
            gate = cls._gates.get(path)
            if gate is None:
                gate = cls._gates[path] = cls(path)
        assert isinstance(gate, cls)
        return gate

    def hold(self, until: float | None, decide: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call *decide* with the gate held, which is given back whatever exception strikes when.

        Python handles signals as a function of its own begins, as a loop goes on, and after a call into C. None of
        these lies between taking a lock and the block that gives it back, nor in that block before it is given back.
        A context manager of ours cannot promise that, as entering and leaving it are functions themselves.

        Args:
            until: Monotonic second after which to give up.
            decide: What to call.
            args: Passed on.
            kwargs: Passed on.

        Raises:
            HostlerError: `wait-timeout` naming who holds it; `conflict`: this thread holds it; `unsafe-state`.

        """
        turn = self._thread
        try:
            if not turn.acquire(blocking=False):
                self._await_turn(until)
            if self.acquired:
                raise _again()
            try:
                self._lock(until)
                return decide(*args, **kwargs)
            finally:
                self.acquired = False
                if self.fd >= 0:
                    fcntl.flock(self.fd, fcntl.LOCK_UN)
        finally:
            try:  # noqa: SIM105  a function of ours would be interruptible
                turn.release()
            except RuntimeError:
                pass  # it never was ours

    def enter(self, *, until: float | None = None) -> None:
        """Take the gate, as a command does whose process ends with it; all others `hold` it.

        Args:
            until: Monotonic second after which to give up.

        Raises:
            HostlerError: As for `hold`.

        """
        if not self._thread.acquire(blocking=False):
            self._await_turn(until)
        if self.acquired:
            self._thread.release()
            raise _again()
        try:
            self._lock(until)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Give the gate back."""
        try:
            if self.fd >= 0:
                self.unlock()
        finally:
            self.acquired = False
            self._thread.release()

    def __enter__(self) -> Self:
        self.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def trylock(self) -> None:
        """Lock the open file description, or raise `BlockingIOError`."""
        fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def unlock(self) -> None:
        """Unlock it for every copy of the descriptor."""
        fcntl.flock(self.fd, fcntl.LOCK_UN)

    def _await_turn(self, until: float | None) -> None:
        if not self._thread.acquire(timeout=-1 if until is None else max(0.0, until - time.monotonic())):
            raise HostlerError(Code.WAIT_TIMEOUT, "another thread is deciding about tickets", "try again")

    def _lock(self, until: float | None) -> None:
        if self.fd < 0 or identity(self.place) != self._identity:
            self._open()
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._since, self._named, self._until = time.monotonic(), False, until
            self.acquire(delay=self.DELAY_S, max_delay=self.MAX_DELAY_S)
        self.acquired = True

    def _open(self) -> None:
        if self.fd >= 0:  # the folder was replaced: a gate that others do not share decides nothing
            fd, self.fd = self.fd, -1
            descriptors.close(fd)
        with descriptors.guard:
            self.fd = descriptors.keep(open_private(self.place, os.O_RDWR | os.O_CREAT))
        status = os.fstat(self.fd)
        self._identity = (status.st_dev, status.st_ino)
        if status.st_size > MAX_BYTES:
            raise HostlerError(Code.UNSAFE_STATE, f"{self.place} is no gate: it holds data", "move it away")

    def _do_open(self) -> None:
        """Nothing to open: `enter` has; called by fasteners."""

    def _pause(self, delay: float) -> None:
        now = time.monotonic()
        if now - self._since >= self.SILENCE_S and not self._named:
            self._named = True
            LOG.warning("waiting for %s, held by %s", self.place, self._holders())
        if self._until is not None and now >= self._until:
            raise HostlerError(
                Code.WAIT_TIMEOUT,
                f"{self.place} stayed closed, held by {self._holders()}",
                "continue or end that process, then try again",
            )
        time.sleep(delay)

    def _holders(self) -> str:
        from hostres.holders import holders_of  # noqa: PLC0415  the light path never needs it

        found = holders_of([os.fstat(self.fd)])
        names = [f"pid {one.pid} ({one.command})" for row in found.values() for one in row if one.pid != os.getpid()]
        return ", ".join(names) or "an unknown process"

    def forget(self) -> None:
        """Start anew; called in a forked child."""
        self.fd, self._thread, self.acquired = -1, threading.RLock(), False


def _again() -> HostlerError:
    return HostlerError(
        Code.CONFLICT,
        "this thread is deciding about tickets already",
        "let a signal handler ask for nothing, but tell a thread to",
    )
