"""A child of this process, of whose end another part of the program may have taken the news before us.

A thread that waits for any child does that, and a program that ignores SIGCHLD does it always: the kernel then forgets
each child as it ends.
"""

import contextlib
import os
import resource
import signal
import time
from typing import Final

from hostres.errors import Code, HostlerError
from hostres.procfs import TICKS_PER_S, Process, read_process
from hostres.spawning import Child

_SLACK_BYTES: Final = 4 << 20
"""The kernel counts memory per processor, and sums it up roughly."""


def require_heard_ends() -> None:
    """Check that this process is told of the end of its children.

    To change that is for the program alone, as others of its parts may rely on it.

    Raises:
        HostlerError: conflict: it ignores SIGCHLD.

    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        what = "this program ignores SIGCHLD, so that nobody can learn how the programs that it starts end"
        raise HostlerError(Code.CONFLICT, what, "let it call signal.signal(signal.SIGCHLD, signal.SIG_DFL)")


def leader_of(pid: int, started_s: float) -> Process:
    """Return a child as it is, or as it was if another part of this program has waited for it already."""
    process = read_process(pid)
    if process is not None and process.parent == os.getpid():
        return process
    return Process(pid=pid, start_time=started_s, state="X", parent=os.getpid(), session=pid)


def descriptor_of(child: Child, leader: Process) -> int:
    """Return a descriptor of a child; -1 if another part of this program has waited for it already."""
    if leader.state != "X":
        with contextlib.suppress(ProcessLookupError):
            return os.pidfd_open(child.pid)
    child.returncode = 0
    return -1


def kill(pid: int) -> int:
    """End a child to which nobody can attend; return what `waitpid` says of it, 0 if another part has waited for it."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1]
    return 0


def now_s() -> float:
    """Return the seconds since boot, no later than any process that is started from now on is said to have started."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * TICKS_PER_S // 1_000_000_000 / TICKS_PER_S


def most_resident_bytes() -> int:
    """Return more than this process ever had in use, but not much."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + _SLACK_BYTES
