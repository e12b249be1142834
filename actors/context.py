"""What an operation gets as `ctx`: its place, its processes, its way to the outside.

Everything here may be called from any thread of the operation. Work that was aborted leaves by `OperationAborted`,
which is not an `Exception`, so that an operation's own `except Exception` does not swallow it.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Final, Protocol

from actors.bounds import check_program, check_target
from actors.control import Control, OperationAborted
from actors.failures import OperationFailed
from actors.publication import is_special, publish_file
from hostres.masking import Mask
from hostres.niceness import Niceness
from store.policy import FailureCode

if TYPE_CHECKING:
    from hostres.lease import Lease
    from hostres.process import Ended
    from store.terms import Envelope

__all__ = ["Completed", "Context", "OperationAborted", "OperationFailed"]

TAIL_BYTES: Final = 64 * 1024
MESSAGE_LINES: Final = 3
CRASHES: Final = frozenset(
    {Signals.SIGILL, Signals.SIGTRAP, Signals.SIGABRT, Signals.SIGBUS, Signals.SIGFPE, Signals.SIGSEGV, Signals.SIGSYS}
)
LEFT_BEHIND_GRACE_S: Final = 2.0
"""What a program leaves in the background is ended with it: nothing of a node outlives its step."""

Argument = str | os.PathLike[str] | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A process that has ended.

    Attributes:
        code: Its exit code; 128 + signal where a signal ended it.
        stdout: The last 64 KiB of its standard output.
        stderr: Likewise of its standard error.

    """

    code: int
    stdout: bytes
    stderr: bytes


class Host(Protocol):
    """What a context asks of the host around it."""

    def allow_publication(self) -> None:
        """Return once the host has durably let this attempt through, else raise."""

    def progress(self, fraction: float | None, text: str, speed: float | None, left_s: float | None) -> None:
        """Pass on how far the work is."""

    def next_logs(self) -> tuple[Path, Path]:
        """Return the files for standard output and standard error of the next process."""

    def open_workspace(self) -> Path:
        """Return the private folder of this node and plan, empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Which attempt of which node this is.

    Attributes:
        folder: Where the run was created; relative paths resolve against it.
        niceness: How far its processes stand behind others.
        envelope: What it may do at most; None where nothing is kept from it.

    """

    run_id: str
    node: str
    attempt: int
    folder: Path
    niceness: Niceness | None = None
    envelope: "Envelope | None" = None

    @property
    def idempotency_key(self) -> str:
        """The key for services that can tell a repeated call."""
        return f"{self.run_id}:{self.node}:{self.attempt}"


class Context:
    """The host as one attempt of one node sees it.

    Attributes:
        lease: The admitted claims, None for a node that claims nothing.

    """

    def __init__(self, assignment: Assignment, *, control: Control, host: Host, lease: "Lease | None") -> None:
        self._assignment = assignment
        self._control = control
        self._host = host
        self._workspace: Path | None = None
        self._opening = threading.Lock()
        self._furthest = 0.0
        self.lease = lease

    @property
    def run_id(self) -> str:
        """The run."""
        return self._assignment.run_id

    @property
    def node(self) -> str:
        """The node's key."""
        return self._assignment.node

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._assignment.attempt

    @property
    def idempotency_key(self) -> str:
        """`run:node:attempt`, for services that can tell a repeated call."""
        return self._assignment.idempotency_key

    @property
    def workspace(self) -> Path:
        """The private folder of this node and plan, empty at the first look; work that never looks makes none."""
        with self._opening:
            if self._workspace is None:
                self._workspace = self._host.open_workspace()
            return self._workspace

    @property
    def folder(self) -> Path:
        """The folder where the run was created."""
        return self._assignment.folder

    @property
    def niceness(self) -> Niceness | None:
        """How far processes of this node stand behind others."""
        return self._assignment.niceness

    @property
    def envelope(self) -> "Envelope | None":
        """What this node may do at most; None where nothing is kept from it."""
        return self._assignment.envelope

    @property
    def cancelled(self) -> bool:
        """Whether this attempt was asked to stop."""
        return self._control.reason is not None

    def check_cancelled(self) -> None:
        """Leave by `OperationAborted` if this attempt was asked to stop."""
        self._control.check()

    def path(self, text: str | os.PathLike[str]) -> Path:
        """Return *text* as an absolute path, resolved against the run's folder."""
        return self.folder / text

    def environment(self) -> dict[str, str]:
        """Return the environment that processes of this node get."""
        lease = dict(self.lease.environment) if self.lease else {}
        return {**os.environ, **lease, "HOSTLER_RUN": self.run_id, "HOSTLER_NODE": self.node}

    def run(
        self,
        argv: Sequence[Argument],
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        on_stdout: Callable[[bytes], None] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
        check: bool = True,
        secrets: Sequence[str] = (),
    ) -> Completed:
        """Run a program to its end, as a tree that the host supervises.

        It inherits the lease, has its own session and no terminal, and is ended as a whole when this node is
        cancelled or runs out of time. What it leaves in the background is ended with it.

        Args:
            argv: Program and arguments; never a shell string.
            stdin: What it reads; None is /dev/null.
            env: Added to the environment.
            cwd: Where it runs; None is the workspace.
            on_stdout: Called with each chunk of its output, on a thread of its own.
            on_stderr: Likewise.
            check: Whether another exit code than 0 is a failure.
            secrets: Values that its logs and its failure must not show, besides those that `HOSTLER_SECRETS` marks.

        Returns:
            The exit code and the ends of both streams; both are kept whole, within a bound, in the node's logs.

        Raises:
            OperationFailed: It could not be started, or ended with another code than 0.
            OperationAborted: This attempt was asked to stop.

        """
        from hostres.process import Supervised  # noqa: PLC0415 - a worker process that runs no program needs none of it

        self._control.check()
        logs = self._host.next_logs()
        out, err = Tail(on_stdout), Tail(on_stderr)
        words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in argv]
        if self.envelope is not None:
            check_program(self.envelope, words[0])
        tree = Supervised.start(
            words,
            env={**self.environment(), **(env or {})},
            cwd=cwd or self.workspace,
            lease_fds=[self.lease.fd] if self.lease else [],
            cpus=self.lease.cpus if self.lease else (),
            niceness=self.niceness,
            stdin=stdin,
            stdout_log=logs[0],
            stderr_log=logs[1],
            on_stdout=out.feed,
            on_stderr=err.feed,
            mask=Mask.of(os.environ, secrets),
        )
        with self._control.supervising(tree):
            tree.wait()
            ended = tree.end(grace_s=LEFT_BEHIND_GRACE_S, reason="end of its program")
        self._control.check()
        if ended.left or ended.exit is None:
            raise left_behind(Path(words[0]).name, ended)
        code = ended.exit.code if ended.exit.code is not None else 128 + (ended.exit.signal or 0)
        if check and code != 0:
            raise process_failed(Path(words[0]).name, ended.exit.code, ended.exit.signal, err.data)
        return Completed(code=code, stdout=out.data, stderr=err.data)

    def before_publication(self) -> None:
        """Ask to be let through to a write outside the workspace; call it just before each.

        The deadline has not passed, the machine lease is owned, this host still owns the run, and nobody cancelled:
        when this returns, that was so, and the attempt is durably marked as let through.

        Raises:
            OperationFailed: One of these does not hold.
            OperationAborted: This attempt was asked to stop.

        """
        self._control.check()
        if self.lease is not None:
            self.lease.assert_owned()
        self._host.allow_publication()
        self._control.check()

    def publish(self, source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Path:
        """Give a finished file its final name, at once and whole.

        Args:
            source: A file. One of this node's workspace is moved; any other is copied, since its maker still owns it.
            target: Its final name; relative to the run's folder.

        Returns:
            The absolute final path.

        """
        start = self.workspace / source
        final = self.path(target)
        if is_special(final):
            raise OperationFailed(
                FailureCode.CONFLICT, f"{final} is a link, a folder or a device, not a file", "choose another target"
            )
        if self.envelope is not None:
            check_target(self.envelope, final, self.folder)
        self.before_publication()
        publish_file(start, final, keep=not start.resolve().is_relative_to(self.workspace.resolve()))
        return final

    def progress(
        self,
        fraction: float | None,
        text: str = "",
        *,
        speed: float | None = None,
        left_s: float | None = None,
    ) -> None:
        """Say how far the work is; advice for people, never a fault.

        Args:
            fraction: 0 to 1; None is unknown. It is clamped and never goes back.
            text: A few words.
            speed: Multiple of real time, where that makes sense.
            left_s: Time left, seconds.

        """
        if fraction is not None:
            if fraction != fraction:  # noqa: PLR0124 - NaN is the one value that differs from itself
                fraction = None
            else:
                self._furthest = fraction = max(self._furthest, min(1.0, max(0.0, fraction)))
        self._host.progress(fraction, text, speed, left_s)


class Tail:
    """The last bytes of a stream.

    Attributes:
        data: At most 64 KiB.

    """

    def __init__(self, pass_on: Callable[[bytes], None] | None) -> None:
        self.data = b""
        self._pass_on = pass_on

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.data = (self.data + chunk)[-TAIL_BYTES:]
        if self._pass_on is not None:
            self._pass_on(chunk)


def left_behind(name: str, ended: "Ended") -> OperationFailed:
    """Return the failure of a program some of whose processes could not be ended."""
    named = ", ".join(f"{each.command} (pid {each.pid})" for each in ended.left)
    return OperationFailed(FailureCode.CONFLICT, f"{name} left what could not be ended: {named}", "end it, then retry")


def process_failed(
    name: str, code: int | None, signal: int | None, stderr: bytes, *, too_early: str = ""
) -> OperationFailed:
    """Return the failure of a program that did not end well.

    Args:
        name: What it is called.
        code: Its exit code; None if a signal ended it.
        signal: That signal.
        stderr: The end of what it said.
        too_early: Added to its exit code, where it should not have ended at all yet.

    """
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    said = " / ".join(lines[-MESSAGE_LINES:])[-1000:]
    if code is None and signal in CRASHES:
        how = f"{name} crashed with {Signals(signal).name}"
        todo = "read its log with: hostler logs RUN NODE"
    elif code is None:
        how = f"{name} was killed from outside" + (f" by signal {signal}" if signal else "")
        todo = "look whether the machine ran out of memory, then run it again"
    else:
        how = f"{name} ended with exit code {code}{too_early}"
        todo = "read its log with: hostler logs RUN NODE"
    return OperationFailed(
        FailureCode.SUBPROCESS,
        f"{how}: {said}" if said else how,
        todo,
        retryable=code is None and signal not in CRASHES,
    )
