"""Starting a program with nothing inherited but what it is given.

Blocked and ignored signals are inherited across exec (those of `nohup`, or of a shell's `&`), and nothing but code
in the child can undo that. Where there are any, a short Python program does it and then becomes the program;
running our code between fork and exec instead (`preexec_fn`) is unsafe in a program with threads.
"""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_PYTHON_IGNORES: Final = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Ignored by every Python; `subprocess` resets them."""

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


def spawn(
    words: list[str],
    program: str,
    environment: Mapping[str, str],
    cwd: Path | None,
    leases: tuple[int, ...],
    *,
    feed: bool,
) -> "subprocess.Popen[bytes]":
    """Start a program in a session of its own, with pipes for its outputs.

    Args:
        words: Its arguments, its own name first.
        program: Its path.
        environment: Its whole environment.
        cwd: Its working folder.
        leases: Descriptors that it inherits; no others.
        feed: Whether its input is a pipe; else there is none.

    Raises:
        OSError: It cannot be started.

    """
    if sys.executable and _signals_need_reset():
        words, program = [sys.executable, "-I", "-S", "-c", _RESET, program, *words], sys.executable
    return subprocess.Popen(
        words,
        executable=program,
        bufsize=0,
        stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=cwd,
        pass_fds=leases,
        start_new_session=True,
    )


def _signals_need_reset() -> bool:
    if signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return True
    return any(
        signal.getsignal(number) is signal.SIG_IGN for number in signal.valid_signals() if number not in _PYTHON_IGNORES
    )
