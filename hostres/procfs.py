"""What `/proc` says about processes.

Each answer may be old the moment it is given, and its number another's: a start time tells.
"""

# Many small files of every process: plain strings.
# ruff: noqa: PTH123, PTH208

import contextlib
import errno
import os
import select
import signal
from dataclasses import dataclass, field
from typing import Final

MAX_COMMAND: Final = 200
"""Characters of a command line that are shown."""

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
GONE: Final = frozenset("ZX")
"""States of a process that has ended: only its exit status is left."""
STOPPED: Final = frozenset("Tt")
"""States of a process that does nothing until somebody continues it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process at one moment.

    Attributes:
        pid: Its number, which others get later.
        start_time: Seconds from boot to its start; with the number, it names the process for good.
        state: One letter, as in `/proc/PID/stat`.
        parent: The number of its parent.
        session: The number of its session.
        cpu_s: Seconds of processor time that it has used.
        resident_bytes: Memory that it has in use; what it shares with others counts for each of them.

    """

    pid: int
    start_time: float
    state: str = "R"
    parent: int = 0
    session: int = 0
    cpu_s: float = field(default=0.0, compare=False)
    resident_bytes: int = field(default=0, compare=False)

    @property
    def identity(self) -> tuple[int, float]:
        """What stays the same as long as it lives."""
        return self.pid, self.start_time

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        return self.state in GONE


def process_ids() -> list[int]:
    """Return the numbers of all processes one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read_process(pid: int) -> Process | None:
    """Return a process, None if it is gone.

    Raises:
        OSError: This program has no descriptor or memory left to look: nobody is gone for that.

    """
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)  # half the price of a file object
        try:
            text = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        return None
    fields = text[text.rfind(b")") + 2 :].split()  # a name may hold anything, also brackets
    return Process(
        pid=pid,
        start_time=int(fields[19]) / TICKS_PER_S,
        state=fields[0].decode(),
        parent=int(fields[1]),
        session=int(fields[3]),
        cpu_s=(int(fields[11]) + int(fields[12])) / TICKS_PER_S,
        resident_bytes=int(fields[21]) * PAGE_BYTES,
    )


def all_processes() -> dict[int, Process]:
    """Return all processes one can see, by number."""
    return {pid: process for pid in process_ids() if (process := read_process(pid))}


def ancestors(processes: dict[int, Process]) -> set[int]:
    """Return this process's number and those of all it descends from."""
    line = set()
    pid = os.getpid()
    while pid and pid not in line:
        line.add(pid)
        pid = processes[pid].parent if pid in processes else 0
    return line


def environment_of(pid: int) -> dict[bytes, bytes]:
    """Return the environment a process was started with; nothing if one may not look."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            text = file.read()
    except OSError:
        return {}
    return dict(pair.split(b"=", 1) for pair in text.split(b"\0") if b"=" in pair)


def command_of(pid: int) -> str:
    """Return the command line of a process on one line, shortened; "" if it is gone."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).rstrip(b"\0").split(b"\0")
        line = b" ".join(words).decode("utf-8", "replace")
        if not line:
            with open(f"/proc/{pid}/comm", "rb") as file:
                line = f"[{file.read().decode('utf-8', 'replace').strip()}]"
        line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
        return line if len(line) <= MAX_COMMAND else line[: MAX_COMMAND - 1] + "…"
    return ""


def send_signal(process: Process, number: signal.Signals) -> bool:
    """Send a signal to this very process, never to another one that has got its number.

    Returns:
        Whether it was still there.

    """
    try:
        fd = open_process(process)
        if fd is None:
            return False
        try:
            signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it took another user's rights; it will be named as left
    except OSError:  # out of descriptors
        now = read_process(process.pid)
        if now is None or now.identity != process.identity:
            return False
        os.kill(process.pid, number)
    return True


def open_process(process: Process) -> int | None:
    """Return a descriptor that becomes readable when this very process ends; None if it is gone.

    Raises:
        OSError: There is no descriptor left.

    """
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    now = read_process(process.pid)
    if now is None or now.identity != process.identity or now.gone:
        os.close(fd)
        return None
    return fd


def wait_for_any(processes: list[Process], timeout_s: float) -> None:
    """Wait until one of *processes* has ended, or the time is over.

    Args:
        processes: Whom to wait for.
        timeout_s: Seconds.

    """
    fds: list[int] = []
    try:
        for process in processes:
            try:
                fd = open_process(process)
            except OSError:  # out of descriptors: those we have must do
                timeout_s = min(timeout_s, 0.02)
                continue
            if fd is None:
                return
            fds.append(fd)
        poll = select.poll()
        for fd in fds:
            poll.register(fd, select.POLLIN)
        poll.poll(max(0.0, timeout_s) * 1000)
    finally:
        for fd in fds:
            os.close(fd)
