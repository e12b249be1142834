"""`hostler exec`: run any command under machine-wide admission.

The command is a plain child: same terminal, same foreground job, same standard streams. It inherits the ticket, so the
capacity stays taken until it and all it passed the ticket to have ended, whatever becomes of `hostler exec`.
"""

import argparse
import os
import re
import signal
import sys
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import command_parser
from hostres.claims import parse_claims
from hostres.configuration import machine_capacity
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.lease import Lease
from hostres.programs import find_program

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

EXIT_NOT_EXECUTABLE: Final = 126
EXIT_NOT_FOUND: Final = 127
EXIT_SIGNAL: Final = 128

SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}

FORWARDED: Final = frozenset(
    {signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)
"""Signals that a process sends to us are meant for the command. Those of the terminal reach it by themselves."""

PYTHON_IGNORES: Final = (signal.SIGPIPE, signal.SIGXFSZ)


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "exec",
        description="run any command under machine-wide admission",
        example="--claim ffmpeg=1 --claim cpu=2 --wait 30s -- ffmpeg -i talk.mp4 talk.wav",
    )
    parser.usage = "hostler exec [--claim RES=N]... [--wait TIME] [--name T] -- CMD [ARG]..."
    parser.add_argument(
        "--claim", action="append", default=[], metavar="RES=N", help="what the command needs; may be repeated"
    )
    parser.add_argument(
        "--wait",
        metavar="TIME",
        help="give up after so long, as in 30s, 5m or 1h; without it, wait as long as it takes",
    )
    parser.add_argument("--name", default="", metavar="T", help="shown by `hostler top`")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="CMD ARG...", help="the command and its arguments")


def run(args: argparse.Namespace) -> int:
    """Wait for the claims, run the command, return its exit code."""
    argv: list[str] = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not argv:
        raise HostlerError(Code.INVALID_DATA, "no command to run", "write it after --, as in `hostler exec -- true`")
    claims = parse_claims(args.claim)
    wait = None if args.wait is None else _seconds(args.wait)
    try:
        program = find_program(argv[0], environ=os.environ)
    except HostlerError as error:
        return _refuse(error, EXIT_NOT_FOUND if error.code is Code.NOT_FOUND else EXIT_NOT_EXECUTABLE)
    try:
        with Coordinator(machine_folder(os.environ), explicit=machine_capacity(os.environ)) as coordinator:
            lease = coordinator.lease(claims, wait=wait, name=args.name, command=argv)
    except KeyboardInterrupt:
        raise HostlerError(Code.WAIT_ABORTED, "interrupted while waiting", "run it again") from None
    with lease:
        return _run(lease, program, argv)


def _run(lease: Lease, program: str, argv: list[str]) -> int:
    watched = {*FORWARDED, signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    os.set_inheritable(lease.fd, True)  # this process starts nothing but the command
    try:
        pid = os.posix_spawn(
            program, argv, {**os.environ, **lease.environment}, setsigmask=before, setsigdef=PYTHON_IGNORES
        )
    except OSError as error:
        what = f"{argv[0]} cannot be executed: {(error.strerror or '').lower()}"
        return _refuse(HostlerError(Code.UNAVAILABLE, what, "check the file"), EXIT_NOT_EXECUTABLE)
    while True:
        news = signal.sigwaitinfo(watched)
        if news.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else EXIT_SIGNAL - code
        elif news.si_code <= 0:  # sent by a process, not by the terminal
            os.kill(pid, news.si_signo)


def _refuse(error: HostlerError, code: int) -> int:
    sys.stderr.write(f"hostler: {error}\n")
    return code


def _seconds(text: str) -> float:
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", text)
    if number is None:
        raise HostlerError(Code.INVALID_DATA, f"--wait {text} is not a time", "write it as 30s, 5m or 1h")
    return float(number[1]) * SECONDS[number[2]]
