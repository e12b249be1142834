"""A supervised process: its own session, drained to bounded logs, ended as a whole tree and reaped.

One thread attends to each: it feeds standard input, drains both outputs at any volume with flat memory, sees the
exit through a process descriptor and reaps. The process counts as ended once everything its first process wrote is
in the logs; what it left in the background may go on writing until `end`.
"""

import contextlib
import os
import select
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from hostres.affinity import pinned
from hostres.arguments import listener, of_type
from hostres.beginning import begin
from hostres.children import descriptor_of, kill, leader_of, most_resident_bytes, now_s, require_heard_ends
from hostres.command import checked_command, identity_of
from hostres.errors import unavailable
from hostres.exits import Ended, Exit, Left, unseen
from hostres.logs import KEEP_BYTES, BoundedLog, Cut
from hostres.masking import Mask, MaskedLog, Sink
from hostres.niceness import Niceness, born_nice, lower_session
from hostres.procfs import Process, command_of
from hostres.reaping import reaper
from hostres.spawning import Child, spawn
from hostres.streams import OutputStream
from hostres.trees import Patience, Tree, end_processes

_PIECE: Final = 1 << 18


class Supervised:
    """A running process and all it starts.

    Attributes:
        pid: The number of its first process.
        start_time: Seconds from boot to its start.
        program: Path of the program that it was started with, as it was found.

    """

    def __init__(
        self,
        child: Child,
        tree: Tree,
        streams: list[OutputStream],
        stdin: bytes,
        logs: Sequence[BoundedLog] = (),
        program: str = "",
    ) -> None:
        self.pid: Final = child.pid
        self.program: Final = program
        self.start_time: Final = tree.leader.start_time
        self._child = child
        self._tree = tree
        self._streams = streams
        self._logs = tuple(logs)
        self._input = memoryview(stdin)
        self._ours_bytes = most_resident_bytes()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            self._pidfd = descriptor_of(child, tree.leader)
        except OSError:
            os.close(self._bell)
            raise
        self._mutex = threading.Lock()
        self._ending = threading.Lock()
        self._asked_by: str | None = None
        self._patience: Patience | None = None
        self._ended_for = ""
        self._exit = None if self._pidfd >= 0 else unseen()
        self._ended: Ended | None = None
        self._done = threading.Event()
        reaper.watch(child.pid)
        self._thread = threading.Thread(target=self._attend, name=f"hostres-process-{child.pid}", daemon=True)
        try:
            begin(self._thread)
        except OSError:
            reaper.forget(child.pid)
            os.close(self._bell)
            if self._pidfd >= 0:
                os.close(self._pidfd)
            raise

    @classmethod
    def start(  # noqa: PLR0913  all by name
        cls,
        argv: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None = None,
        lease_fds: Sequence[int] = (),
        cpus: Sequence[int] = (),
        niceness: Niceness | None = None,
        stdin: bytes | Path | None = None,
        stdout_log: Path | None = None,
        stderr_log: Path | None = None,
        on_stdout: Callable[[bytes], None] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
        keep_bytes: int = KEEP_BYTES,
        mask: Mask | None = None,
    ) -> Self:
        """Start a program.

        Args:
            argv: The program and its arguments; no shell.
            env: Its whole environment.
            cwd: Its working folder; this process's by default.
            lease_fds: Descriptors of leases that it inherits, and all it starts with them.
            cpus: Numbers of the only CPUs it may use, and all it starts with it; any by default.
            niceness: How far it stands behind others, and all it starts with it; None leaves it beside this process.
            stdin: What it reads: bytes, or the file or device of a path; nothing by default. A pipe is refused.
            stdout_log: File that keeps its output, bounded.
            stderr_log: File that keeps its error output, bounded.
            on_stdout: Called with each piece of output, on the thread that attends to it.
            on_stderr: Likewise for the error output.
            keep_bytes: How much of each stream a log keeps.
            mask: Takes secrets out of what the logs keep; the callbacks get all of it.

        Raises:
            HostlerError: `not-found`: no such program or folder; `unavailable`: it cannot be executed, or the system
                has no room for it; `invalid-data`: more than 16 descriptors, a NUL in an argument or a variable, or an
                argument of a wrong type;
                `ownership-lost`: a descriptor of a lease is closed; `conflict`: this process ignores SIGCHLD.

        """
        require_heard_ends()
        for path, name in ((stdout_log, "stdout_log"), (stderr_log, "stderr_log")):
            of_type(path, Path, name=name, todo="give the Path of a file")
        listener(on_stdout, name="on_stdout")
        listener(on_stderr, name="on_stderr")
        command = checked_command(argv, env=env, cwd=cwd, lease_fds=lease_fds, stdin=stdin)
        logs: list[Sink | None] = []
        bounded: list[BoundedLog] = []
        try:
            logs.extend(_log(path, keep_bytes, mask, bounded) for path in (stdout_log, stderr_log))

            def start() -> Child:
                with pinned(cpus):
                    return spawn(command)

            started_s = now_s()
            child = born_nice(niceness, start)
        except BaseException as error:
            for log in logs:
                if log is not None:
                    log.close()
            if isinstance(error, OSError):
                raise unavailable(f"{command.words[0]} cannot be started", error) from error
            raise
        streams = [OutputStream(child.stdout, logs[0], on_stdout), OutputStream(child.stderr, logs[1], on_stderr)]
        try:
            lower_session(child.pid, niceness)
            leader = leader_of(child.pid, started_s)
            files = command.files | {identity_of(stream.fd) for stream in streams}
            tree = Tree(leader=leader, token=command.token.encode(), files=files)
            return cls(child, tree, streams, command.fed or b"", bounded, command.program)
        except OSError as error:
            child.returncode = kill(child.pid)
            if child.stdin is not None:
                child.stdin.close()
            for stream in streams:
                stream.close()
            raise unavailable(f"{command.words[0]} cannot be attended to", error) from error

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """What its logs lack because the disk did not take it; final after `end`."""
        return tuple(log.cut for log in self._logs if log.cut is not None)

    def wait(self, timeout: float | None = None) -> Exit | None:
        """Wait until its first process has ended and all it wrote is logged.

        Args:
            timeout: Seconds; None waits as long as it takes.

        Returns:
            How it ended; None if it has not.

        """
        self._done.wait(timeout)
        return self._exit if self._done.is_set() else None

    def end(self, *, grace_s: float, reason: str) -> Ended:
        """End the whole tree: one TERM to each process, the grace, KILL; any thread, any number of times.

        Args:
            grace_s: Seconds between TERM and KILL; a shorter one, for the same reason, counts also while it is being
                ended.
            reason: Who asks, for `Exit.asked_by`; the first one counts, and only if it has not ended by itself.

        """
        with self._mutex:
            if self._exit is None and self._asked_by is None:
                self._asked_by = reason
            if self._patience is None:
                self._patience, self._ended_for = Patience(grace_s), reason
            elif reason == self._ended_for:
                self._patience.shorten(grace_s)
        with self._ending:
            if self._ended is None:
                left = end_processes(self._members, self._patience)
                if not any(process.pid == self.pid for process in left):
                    self._done.wait()
                self._stop_attending()
                named = tuple(Left(pid=process.pid, command=command_of(process.pid)) for process in left)
                self._ended = Ended(exit=self._exit, left=named)
            return self._ended

    def _members(self) -> list[Process]:
        members = self._tree.members()
        reaper.note(members)
        return members

    def _stop_attending(self) -> None:
        with self._mutex:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)
        self._thread.join()

    def _attend(self) -> None:
        streams = {stream.fd: stream for stream in self._streams}
        poll = select.poll()
        for fd in (*streams, self._pidfd, self._bell):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        stdin = self._child.stdin.fileno() if self._child.stdin else -1
        if stdin >= 0:
            os.set_blocking(stdin, False)
            poll.register(stdin, select.POLLOUT)
        if self._exit is not None:  # it had ended, unseen, before anybody attended to it
            for stream in tuple(streams.values()):
                stream.read_all()
            reaper.forget(self.pid)
            self._done.set()
        try:
            while streams or self._exit is None:
                for fd, _ in poll.poll():
                    if fd == self._bell:
                        return
                    if fd == self._pidfd:
                        poll.unregister(fd)
                        for stream in tuple(streams.values()):
                            stream.read_all()
                        self._reap()
                        self._done.set()
                    elif fd == stdin:
                        if not self._feed(stdin):
                            poll.unregister(fd)
                    elif fd in streams and streams[fd].fd >= 0:
                        streams[fd].read()
                for fd in [fd for fd, stream in streams.items() if stream.fd < 0]:
                    del streams[fd]
                    with contextlib.suppress(KeyError):
                        poll.unregister(fd)
        finally:
            self._close(tuple(streams.values()))

    def _close(self, streams: Sequence[OutputStream]) -> None:
        for stream in streams:
            if stream.fd >= 0:
                stream.read_all()
            stream.close()
        if self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.close()
        with self._mutex:
            os.close(self._bell)
            self._bell = -1
        if self._pidfd >= 0:
            os.close(self._pidfd)
        self._done.set()

    def _feed(self, fd: int) -> bool:
        """Write the next of the input; False once that is over."""
        try:
            while self._input:
                self._input = self._input[os.write(fd, self._input[:_PIECE]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self._input = memoryview(b"")  # it does not want the rest
        assert self._child.stdin is not None
        self._child.stdin.close()
        return False

    def _reap(self) -> None:
        try:
            _, status, usage = os.wait4(self.pid, 0)
        except ChildProcessError:  # the program that embeds us reaps strangers
            self._child.returncode = 0
            seen = unseen()
        else:
            ended = os.waitstatus_to_exitcode(status)
            self._child.returncode = ended
            peak_bytes = usage.ru_maxrss * 1024
            seen = Exit(
                code=ended if ended >= 0 else None,
                signal=None if ended >= 0 else -ended,
                asked_by=None,
                cpu_seconds=usage.ru_utime + usage.ru_stime,
                peak_bytes=peak_bytes if peak_bytes > self._ours_bytes else None,
            )
        reaper.forget(self.pid)
        with self._mutex:
            self._exit = replace(seen, asked_by=self._asked_by)


def _log(path: Path | None, keep_bytes: int, mask: Mask | None, bounded: list[BoundedLog]) -> Sink | None:
    if path is None:
        return None
    log = BoundedLog(path, keep_bytes)
    bounded.append(log)
    return log if mask is None else MaskedLog(log, mask)
