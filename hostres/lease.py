"""A lease: capacity that is ours until the last copy of its descriptor is closed."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from hostres.affinity import of_name
from hostres.arguments import environment, seconds, words
from hostres.clock import boot_ns
from hostres.errors import Code, HostlerError
from hostres.nesting import LEASE, Parent
from hostres.ticket import Ticket

if TYPE_CHECKING:
    from hostres.exits import Exit
    from hostres.machine import Machine
    from hostres.niceness import Niceness
    from hostres.process import Supervised

GRACE_S: Final = 5.0
"""Seconds between TERM and KILL."""

THREADS: Final = (
    "HOSTLER_CPUS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
)
"""Variables that hold a tool to the CPUs it was given."""


class Lease:
    """Admitted capacity; a context manager inside which the code asks for parts of it, and which releases it.

    Attributes:
        ticket: Its number.
        claims: Resource → units.
        admitted_boot_ns: When it was admitted, on the boot-time clock.

    """

    def __init__(self, machine: "Machine", ticket: Ticket) -> None:
        self._machine = machine
        self._ticket = ticket
        self._mutex = threading.Lock()
        self._released_boot_ns: int | None = None
        self._outer: Token[Lease | None] | None = None
        """Of the context that has entered it."""
        self.ticket: Final = ticket.number
        self.claims: Final[Mapping[str, int]] = ticket.record.claims
        self.admitted_boot_ns: Final = ticket.admitted_boot_ns
        self._name: Final = f"{ticket.key}.{ticket.lock.fd}"

    @functools.cached_property
    def cpus(self) -> tuple[int, ...]:
        """Numbers of the CPUs that are its own; empty if it claims none, or too few were free."""
        return of_name(self.place.rpartition("/")[2])

    @functools.cached_property
    def environment(self) -> Mapping[str, str]:
        """What its processes must have in their environment."""
        threads = self.claims.get("cpu")
        return {LEASE: self._name, **({} if threads is None else dict.fromkeys(THREADS, str(threads)))}

    @property
    def fd(self) -> int:
        """The descriptor that holds the capacity; -1 once released. Pass it on with `pass_fds` only."""
        return self._ticket.lock.fd

    @property
    def niceness(self) -> "Niceness | None":
        """How far what runs under it stands behind others."""
        return self._machine.settings.niceness

    @property
    def as_parent(self) -> Parent:
        """What makes an ask one for a part of this lease."""
        return Parent(number=self.ticket, nonce=self._ticket.nonce, fd=self.fd)

    @property
    def place(self) -> str:
        """Where its ticket is: a FIFO whose lock is held as long as anybody has a copy of the descriptor."""
        return self._ticket.lock.place

    def assert_owned(self) -> None:
        """Check that the ticket still is ours: before each spawn and each publication.

        Raises:
            HostlerError: `ownership-lost`.

        """
        lock = self._ticket.lock
        if lock.fd < 0:
            why = "was released" if self._released_boot_ns is not None else "belongs to the process it was forked from"
            raise HostlerError(Code.OWNERSHIP_LOST, f"lease {self.ticket} {why}", "ask for a new one")
        if not lock.is_open():
            raise HostlerError(
                Code.OWNERSHIP_LOST,
                f"the descriptor {lock.fd} of lease {self.ticket} was closed by its number",
                "leave closing it to `release`, and ask for a new one",
            )
        if not lock.still_there():
            raise HostlerError(
                Code.OWNERSHIP_LOST,
                f"lease {self.ticket} was taken back, or its file {lock.place} replaced",
                "do the work again under a new one",
            )

    def popen(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: bytes | Path | None = None,
        stdout_log: Path | None = None,
        stderr_log: Path | None = None,
        on_stdout: Callable[[bytes], None] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> "Supervised":
        """Start a supervised process under this lease; see `Supervised.start`.

        Args:
            argv: The program and its arguments.
            env: Added to this process's environment.
            cwd: Its working folder.
            stdin: What it reads: bytes, or the file or device of a path; nothing by default.
            stdout_log: File that keeps its output, bounded.
            stderr_log: File that keeps its error output, bounded.
            on_stdout: Called with each piece of output; by default it goes to our own.
            on_stderr: Likewise.

        Raises:
            HostlerError: `ownership-lost`, `not-found`, `unavailable`, `invalid-data`, `conflict`.

        """
        from hostres.process import Supervised  # noqa: PLC0415  waiting for admission needs none of it

        self.assert_owned()
        return Supervised.start(
            argv,
            env={**os.environ, **environment(env), **self.environment},
            cwd=cwd,
            lease_fds=(self.fd,),
            cpus=self.cpus,
            niceness=self.niceness,
            stdin=stdin,
            stdout_log=stdout_log,
            stderr_log=stderr_log,
            on_stdout=on_stdout or (None if stdout_log else _forward(1)),
            on_stderr=on_stderr or (None if stderr_log else _forward(2)),
        )

    def run(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        timeout: float | None = None,
        check: bool = True,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: bytes | Path | None = None,
        on_stdout: Callable[[bytes], None] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> "Exit":
        """Run a program under this lease until it ends; then end what it has left running, and wait for that too.

        To leave something running, start the program with `popen`, and wait for that.

        Args:
            argv: The program and its arguments.
            timeout: Seconds after which it is ended.
            check: Raise if it fails.
            env: Added to this process's environment.
            cwd: Its working folder.
            stdin: What it reads: bytes, or the file or device of a path; nothing by default.
            on_stdout: Called with each piece of output; by default it goes to our own.
            on_stderr: Likewise.

        Raises:
            HostlerError: `ownership-lost`, `not-found`, `unavailable`, `invalid-data`; `conflict`: as for
                `Supervised.start`, or nobody has seen how it ended and *check* asks for that.
            subprocess.TimeoutExpired: It took too long.
            subprocess.CalledProcessError: It failed.

        """
        import subprocess  # noqa: PLC0415  likewise

        command, limit_s = words(argv), seconds(timeout, name="timeout")
        process = self.popen(command, env=env, cwd=cwd, stdin=stdin, on_stdout=on_stdout, on_stderr=on_stderr)
        reason = "interrupted"
        try:
            ended = process.wait(limit_s)
            if ended is None:
                reason = "timeout"
                raise subprocess.TimeoutExpired(command, limit_s or 0.0)
            reason = "cleanup"
        finally:
            process.end(grace_s=GRACE_S, reason=reason)
        if check and ended.unseen:
            what = f"nobody has seen how {command[0]} ended, as another part of this program has waited for it"
            raise HostlerError(Code.CONFLICT, what, "let that wait for the children only that it has started")
        if check and ended.code != 0:
            code = ended.code if ended.code is not None else -(ended.signal or 0)
            raise subprocess.CalledProcessError(code, command)
        return ended

    def release(self) -> int:
        """Give the capacity back; idempotent. What a child still holds stays taken until it exits.

        Returns:
            The boot-time clock, read just before.

        """
        with self._mutex:
            if self._released_boot_ns is None:
                now_ns = boot_ns()
                self._ticket.lock.close()
                os.sched_yield()  # whoever comes next may have been woken on this processor
                self._released_boot_ns = now_ns
                self._machine.released(self._ticket)
            return self._released_boot_ns

    def __enter__(self) -> Self:
        self.assert_owned()
        with self._mutex:
            if self._outer is not None:
                what = f"lease {self.ticket} is entered already, and leaving it once would give it back"
                raise HostlerError(Code.CONFLICT, what, "enter it once; inside, ask for parts of it")
            self._outer = current_lease.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outer, self._outer = self._outer, None
        if outer is not None:
            with contextlib.suppress(ValueError):  # left in another context, which was never inside
                current_lease.reset(outer)
        self.release()


current_lease: Final[ContextVar[Lease | None]] = ContextVar("current_lease", default=None)
"""The lease under which the code of this context works: what it asks for is a part of that.

The code inside `with lease:` works under it, and the work of a node under what a host has got for that.
"""


def _forward(fd: int) -> Callable[[bytes], None]:
    def write(piece: bytes) -> None:
        while piece:
            piece = piece[os.write(fd, piece) :]

    return write
