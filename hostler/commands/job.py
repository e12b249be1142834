"""A command as a plain child: same terminal, same foreground job, same standard streams.

The terminal's signals reach it by themselves, as it belongs to our process group. What a process sends to us is meant
for it and passed on. When it is stopped by job control so are we, so that the shell gets its terminal back; `fg`
continues both. A stopped command keeps its ticket.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hostres.affinity import pinned
from hostres.errors import MENDS, Code, HostlerError
from hostres.lease import Lease
from hostres.programs import find_program

if TYPE_CHECKING:
    from hostres.niceness import Niceness

EXIT_SIGNAL: Final = 128

OURS: Final = frozenset(
    {
        signal.SIGKILL, signal.SIGSTOP,  # cannot be caught
        signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS,  # our own faults
        signal.SIGPIPE, signal.SIGXFSZ,  # of what we write ourselves
        signal.SIGCHLD, signal.SIGCONT, signal.SIGWINCH, signal.SIGURG,  # end nothing
        signal.SIGTTIN, signal.SIGTTOU,
    }
)  # fmt: skip
"""Signals that are not passed on as they come."""

FORWARDED: Final = frozenset(signal.valid_signals()) - OURS
"""Signals that are meant for the command: all others that would end us or stop us, and it would go on."""

TYPED: Final = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP})
"""Signals that a terminal sends to all that are in front of it, so that the command has them already."""

JOB_STOPS: Final = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
"""Signals by which a terminal or a shell stops a job.

Who sends SIGSTOP to the command alone means it alone; but in the foreground of a terminal that would leave nobody to
read what is typed there, so that it stops the job too.
"""

CHANGES: Final = os.WNOHANG | os.WUNTRACED | os.WCONTINUED

TERMINAL: Final = "/dev/tty"

PYTHON_IGNORES: Final = (signal.SIGPIPE, signal.SIGXFSZ)


class Command(NamedTuple):
    """What is to run; all that can be got ready before it is its turn, for which others wait.

    Attributes:
        program: Its path.
        argv: Its arguments, its own name first.
        environ: Its environment, but for what its lease adds.

    """

    program: str
    argv: list[str]
    environ: dict[str, str]

    @classmethod
    def found(cls, argv: list[str]) -> "Command":
        """Return the command of these arguments as this process would run it.

        Raises:
            HostlerError: `not-found`, or `unavailable` if it cannot be executed.

        """
        return cls(program=find_program(argv[0], environ=os.environ), argv=argv, environ=dict(os.environ))


def run_job(lease: Lease, command: Command) -> int:
    """Run a command until it ends.

    Args:
        lease: What it runs under; it inherits the descriptor.
        command: What to run.

    Returns:
        Its exit code, or 128 and the signal that ended it.

    Raises:
        HostlerError: `unavailable`: it cannot be executed.

    """
    watched = {*FORWARDED, signal.SIGCHLD, signal.SIGCONT}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    pid = spawn(lease, command, before)
    stopped = False
    while True:
        news = signal.sigwaitinfo(watched)
        if news.si_signo not in (signal.SIGCHLD, signal.SIGCONT):
            if news.si_code <= 0 or not _reaches_all(news.si_signo):
                os.kill(pid, news.si_signo)
            continue
        continued = news.si_signo == signal.SIGCONT
        changed, status = os.waitpid(pid, CHANGES)
        while changed:
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                return exit_code(status)
            stopped = os.WIFSTOPPED(status)
            if stopped and os.WSTOPSIG(status) in JOB_STOPS:
                continued = _stop()
            elif stopped and (terminal := _terminal_of(pid)) is not None:
                continued = _stop()
                _give_back(terminal, pid)
            changed, status = os.waitpid(pid, CHANGES)
        if stopped and continued:
            os.kill(pid, signal.SIGCONT)  # we alone were continued


def spawn(
    lease: Lease,
    command: Command,
    mask: Collection[int],
    *,
    terminal: str | None = None,
) -> int:
    """Start the command.

    Args:
        lease: As for `run_job`.
        command: As for `run_job`.
        mask: The signals that it is to have blocked.
        terminal: Path of the terminal that it gets for its own, in a session of its own; None leaves it ours.

    Returns:
        Its process number.

    Raises:
        HostlerError: `unavailable`: it cannot be executed.

    """
    os.set_inheritable(lease.fd, True)  # this process starts nothing but the command
    streams: list[tuple[Any, ...]] = []
    if terminal is not None:  # the first terminal that the leader of a session opens is its own
        streams = [(os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0)]
        streams += [(os.POSIX_SPAWN_DUP2, 0, fd) for fd in (1, 2)]

    def start() -> int:
        with pinned(lease.cpus):
            return os.posix_spawn(
                command.program,
                command.argv,
                {**command.environ, **lease.environment},
                file_actions=streams,
                setsid=terminal is not None,
                setsigmask=mask,
                setsigdef=PYTHON_IGNORES,
            )

    try:
        if lease.niceness is None:
            return start()
        return _start_nice(lease.niceness, start, leads_session=terminal is not None)
    except OSError as error:
        what = f"{command.argv[0]} cannot be executed: {(error.strerror or '').lower()}"
        raise HostlerError(Code.UNAVAILABLE, what, MENDS.get(error.errno or 0, "check the file")) from error


def _start_nice(niceness: "Niceness", start: Callable[[], int], *, leads_session: bool) -> int:
    from hostres.niceness import born_nice, lower_session  # noqa: PLC0415  few want it

    pid = born_nice(niceness, start)
    if leads_session:
        lower_session(pid, niceness)
    return pid


def _reaches_all(number: int) -> bool:
    """Return whether a signal that no process has sent has reached the command too.

    That its terminal is gone, the kernel tells the leader of the session alone, which is to tell the others (setsid(2),
    `disassociate_ctty` in Linux); a shell does that, and so do we where there is none.
    """
    return number in TYPED and not (number == signal.SIGHUP and os.getsid(0) == os.getpid())


def exit_code(status: int) -> int:
    """Return what a shell says of how a process ended."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else EXIT_SIGNAL - code


def _stop() -> bool:
    """Stop until somebody continues us; return whether we were, as where there is no shell to do it we do not stop."""
    os.kill(os.getpid(), signal.SIGTSTP)  # blocked here, so that it is one with the terminal's own, if that comes too
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
    return signal.sigtimedwait({signal.SIGCONT}, 0) is not None  # which was blocked, so that it is kept


def _terminal_of(pid: int) -> int | None:
    """Return the process group that has our terminal, if that is ours or the command's."""
    with contextlib.suppress(OSError):
        fd = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            group = os.tcgetpgrp(fd)
        finally:
            os.close(fd)
        if group in (os.getpgrp(), os.getpgid(pid)):
            return group
    return None


def _give_back(group: int, pid: int) -> None:
    """Let the command, a shell perhaps, have our terminal again that its own process group had, if we have it now."""
    if group != os.getpgrp() and _terminal_of(pid) == os.getpgrp():
        with contextlib.suppress(OSError):
            fd = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                os.tcsetpgrp(fd, group)
            finally:
                os.close(fd)
