"""Starting a program with nothing inherited but what it is given.

Blocked and ignored signals are inherited across exec (those of `nohup`, or of a shell's `&`), and nothing but code
in the child can undo that. Where there are any, the C library's `posix_spawn` does it; where that cannot, a short
Python program does, and then becomes the program. Running our code between fork and exec instead (`preexec_fn`) is
unsafe in a program with threads.
"""

import contextlib
import os
import signal
import subprocess
import sys
from typing import IO, Final, Protocol

from hostres import descriptors, posix_spawn
from hostres.command import Command
from hostres.regular_files import open_source

_PYTHON_IGNORES: Final = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Ignored by every Python; `subprocess` resets them."""

_SIGNALS: Final = tuple(signal.valid_signals() - _PYTHON_IGNORES)

_RESET: Final = """
import os, signal, sys
for number in signal.valid_signals():
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
with open("/proc/self/environ", "rb") as file:
    pairs = [pair.split(b"=", 1) for pair in file.read().split(b"\\0") if b"=" in pair]
try:
    os.execve(sys.argv[1], sys.argv[2:], dict(pairs))
except OSError as error:
    os.write(2, f"{sys.argv[1]}: {error.strerror}\\n".encode())
    os._exit(126)
"""
"""Undoes what a child inherits of blocked and ignored signals, then becomes the program."""


class Child(Protocol):
    """A process of ours that was started, and our ends of its streams.

    Attributes:
        pid: Its number.
        returncode: Set by whoever reaps it.

    """

    pid: int
    returncode: int | None

    @property
    def stdin(self) -> IO[bytes] | None:
        """What it reads; None if that is not ours to write."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """What it writes."""

    @property
    def stderr(self) -> IO[bytes] | None:
        """What it writes as errors."""


def spawn(command: Command) -> Child:
    """Start a program in a session of its own, with pipes for its outputs.

    Raises:
        HostlerError: What it is to read is a pipe or a folder (invalid-data).
        OSError: It cannot be started.

    """
    with (
        open(os.devnull, "rb", buffering=0) if command.source is None else open_source(command.source) as file,  # noqa: PTH123
        descriptors.starting,
    ):
        child = _spawned(command, file.fileno())
        descriptors.hide_all(child.stdin, child.stdout, child.stderr)
        return child


def _spawned(command: Command, source: int) -> Child:
    words, program = command.words, command.program
    fed = command.fed is not None
    if signals_need_reset():
        if posix_spawn.library() is not None and all(fd > 2 for fd in command.leases):
            return _Spawned(command, None if fed else source)
        if sys.executable:
            words, program = [sys.executable, "-I", "-S", "-c", _RESET, program, *words], sys.executable
    return subprocess.Popen(
        words,
        executable=program,
        bufsize=0,
        stdin=subprocess.PIPE if fed else source,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=command.environment,
        cwd=command.cwd,
        pass_fds=command.leases,
        start_new_session=True,
    )


def signals_need_reset() -> bool:
    """Return whether a child of this thread would inherit blocked or ignored signals."""
    if signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return True
    return any(signal.getsignal(number) is signal.SIG_IGN for number in _SIGNALS)


class _Spawned:
    """A child started by `posix_spawn`; see `Child`."""

    def __init__(self, command: Command, source: int | None) -> None:
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            if source is None:
                reads, self.stdin = self._pipe("wb", ours, theirs)
            else:
                reads = _above_streams(source, theirs)
            writes, self.stdout = self._pipe("rb", ours, theirs)
            complains, self.stderr = self._pipe("rb", ours, theirs)
            streams = (reads, writes, complains)
            self.pid = posix_spawn.posix_spawn(
                command.program,
                command.words,
                command.environment,
                cwd=command.cwd,
                streams=streams,
                keep=command.leases,
            )
            ours.pop_all()

    @staticmethod
    def _pipe(mode: str, ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, IO[bytes]]:
        """Return the child's end of a new pipe, and ours."""
        reading, writing = os.pipe()
        far, near = (writing, reading) if mode == "rb" else (reading, writing)
        theirs.callback(os.close, far)
        file: IO[bytes] = ours.enter_context(os.fdopen(near, mode, buffering=0))
        return _above_streams(far, theirs), file


def _above_streams(fd: int, theirs: contextlib.ExitStack) -> int:
    """Return a descriptor for the same that is above 2, so that none is overwritten before it is copied."""
    if fd > 2:
        return fd
    import fcntl  # noqa: PLC0415  only where somebody has closed our own streams

    higher = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    theirs.callback(os.close, higher)
    return higher
