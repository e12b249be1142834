"""Programs that stand behind others: `nice` and `ionice` of the configuration.

A process cannot take back how nice it is, and a child inherits it from the thread that starts it; Linux keeps it for
each thread. So a thread of its own becomes nice, starts the program and ends: the program is nice from its first
instruction, and so is all it starts, and nothing else of ours ever is.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from hostres.beginning import begin
from hostres.errors import unavailable

IDLE: Final = "idle"
"""Reads and writes only when nobody else does."""

AGAIN_S: Final = 0.1
"""So often a session is lowered at most."""

Started = TypeVar("Started")


class Niceness(NamedTuple):
    """How far programs stand behind others.

    Attributes:
        nice: From 0 to 19, as of nice(1); who is nicer already stays so.
        io: `IDLE`, or a level from 0 to 7, as of ionice(1); None leaves it to the system.

    """

    nice: int = 0
    io: str | int | None = None

    def __str__(self) -> str:
        words = [f"nice {self.nice}"] if self.nice or self.io is None else []
        if self.io is not None:
            words.append("ionice idle" if self.io == IDLE else f"ionice best-effort {self.io}")
        return ", ".join(words)

    def take_on(self) -> None:
        """Make the calling thread so nice, for good.

        Raises:
            HostlerError: `unavailable`: the system does not allow it.

        """
        try:
            if self.nice:
                os.setpriority(os.PRIO_PROCESS, 0, max(self.nice, os.getpriority(os.PRIO_PROCESS, 0)))
            if self.io is not None:
                _set_io(self.io)
        except OSError as error:
            raise unavailable(f"{self} of the configuration cannot be set", error) from error


def born_nice(niceness: Niceness | None, start: Callable[[], Started]) -> Started:
    """Start a program that is nice from its birth.

    Args:
        niceness: How nice; None starts it on this thread, as nice as that is.
        start: Starts it.

    Returns:
        What *start* returns.

    Raises:
        HostlerError: `unavailable`: the system does not allow it. Or whatever *start* raises.

    """
    if niceness is None:
        return start()
    started: list[Started] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            niceness.take_on()
            started.append(start())
        except BaseException as error:  # noqa: BLE001  it is the caller's
            failed.append(error)

    thread = threading.Thread(target=run, name="hostres-starter", daemon=True)
    begin(thread)
    thread.join()
    if failed:
        raise failed[0]
    return started[0]


def lower_session(pid: int, niceness: Niceness | None) -> None:
    """Let the session that a process leads stand behind others as a whole, where the system shares by sessions.

    Linux may share the processors between sessions first (autogroups, see sched(7)); then niceness counts only within
    one. It hears such wishes ten times a second from all of a user's processes together, so one that was not heard is
    repeated.

    Args:
        pid: A child that leads a session of its own and was not yet waited for.
        niceness: How far.

    """
    if niceness is None or not niceness.nice:
        return
    with contextlib.suppress(OSError):  # a system without, or it has ended
        fd = os.open(f"/proc/{pid}/autogroup", os.O_WRONLY | os.O_CLOEXEC)  # its own, even if it ends now
        if not _wish(fd, niceness.nice):
            threading.Thread(target=_insist, args=(fd, niceness.nice), name="hostres-niceness", daemon=True).start()


def _wish(fd: int, nice: int) -> bool:
    """Return whether the system has answered, whatever it said; then the descriptor is closed."""
    try:
        os.write(fd, str(nice).encode())
    except BlockingIOError:
        return False
    except OSError:
        pass  # it has ended, or is another user's by now
    os.close(fd)
    return True


def _insist(fd: int, nice: int) -> None:
    while not _wish(fd, nice):
        time.sleep(AGAIN_S)


def _set_io(io: str | int) -> None:
    import psutil  # noqa: PLC0415  slow, and few set it

    thread = psutil.Process(threading.get_native_id())
    if isinstance(io, int):
        thread.ionice(psutil.IOPRIO_CLASS_BE, io)
    else:
        thread.ionice(psutil.IOPRIO_CLASS_IDLE)
