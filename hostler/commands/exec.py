"""`hostler exec`: run any command under machine-wide admission.

The command inherits the ticket, so the capacity stays taken until it and all it passed the ticket to have ended,
whatever becomes of `hostler exec`.
"""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from hostler.commands.job import EXIT_SIGNAL, Command, run_job
from hostler.commands.notice import Notice
from hostres.claims import parse_claims
from hostres.configuration import configuration_path, read_configuration
from hostres.coordinator import MAX_WAIT_S, Coordinator
from hostres.errors import Code, HostlerError, told
from hostres.folders import machine_folder
from hostres.lease import Lease
from hostres.locks import is_held
from hostres.settings import MachineSettings, checked_machine, machine_of

if TYPE_CHECKING:
    from types import FrameType

    from hostler.commands.arguments import Subparsers

EXIT_NOT_EXECUTABLE: Final = 126
EXIT_NOT_FOUND: Final = 127

FIRST: Final = 1
ENDS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What ends a program while it waits; SIGINT raises an exception by itself."""

SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_plain(words: list[str]) -> SimpleNamespace | None:
    """Read arguments that are as plain as most are, without the parser, which takes longer than all the rest.

    Args:
        words: The arguments after `exec`.

    Returns:
        What the parser would make of them; None leaves to it what is rare or wrong.

    """
    args = SimpleNamespace(claim=[], wait=None, name="", priority=0, tty=False, argv=[])
    while True:
        match words:
            case ["--", _, *_]:
                args.argv = words
                return args
            case ["--tty", *words]:
                args.tty = True
            case ["--claim", value, *words] if value[:1] != "-":
                args.claim.append(value)
            case [("--wait" | "--name") as option, value, *words] if value[:1] != "-":
                setattr(args, option[2:], value)
            case [command, *_] if command[:1] not in ("", "-"):
                args.argv = words
                return args
            case _:
                return None


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    import argparse  # noqa: PLC0415  see `read_plain`

    from hostler.commands.arguments import command_parser, priority  # noqa: PLC0415

    parser = command_parser(
        subparsers,
        "exec",
        description="run any command under machine-wide admission",
        example="--claim ffmpeg=1 --claim cpu=2 --wait 30s -- ffmpeg -i talk.mp4 talk.wav",
        more=('--claim whisper=1 --name "captions of talk" -- whisper-cli talk.wav',),
    )
    parser.usage = "hostler exec [--claim RES=N]... [--wait TIME] [--priority N] [--name T] [--tty] -- CMD [ARG]..."
    parser.add_argument(
        "--claim", action="append", default=[], metavar="RES=N", help="what the command needs; may be repeated"
    )
    parser.add_argument(
        "--wait",
        metavar="TIME",
        help="give up after so long, as in 30s, 5m or 1h; without it, wait as long as it takes",
    )
    parser.add_argument(
        "--priority",
        type=priority,
        default=0,
        metavar="N",
        help="from -10 to 10: the higher goes first, until the oldest has waited for long",
    )
    parser.add_argument(
        "--tty", action="store_true", help="give the command a terminal of its own, which follows yours"
    )
    parser.add_argument("--name", default="", metavar="T", help="shown by `hostler top`")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="CMD ARG...", help="the command and its arguments")


def run(args: Any) -> int:
    """Wait for the claims, run the command, return its exit code."""
    argv: list[str] = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not argv:
        raise HostlerError(Code.INVALID_DATA, "no command to run", "write it after --, as in `hostler exec -- true`")
    claims = parse_claims(args.claim)
    wait = None if args.wait is None else _seconds(args.wait)
    try:
        command = Command.found(argv)
    except HostlerError as error:
        return _refuse(error, EXIT_NOT_FOUND if error.code is Code.NOT_FOUND else EXIT_NOT_EXECUTABLE)
    folder = machine_folder(os.environ)
    with Coordinator(folder, settings=_settings()) as coordinator:
        try:
            with _mortal(), Notice(folder):
                lease = coordinator.lease(claims, wait=wait, name=args.name, command=argv, priority=args.priority)
        except KeyboardInterrupt:
            raise HostlerError(Code.WAIT_ABORTED, "interrupted while waiting", "run it again") from None
        with lease:
            code = _run(lease, command, own_terminal=args.tty)
            _tell_who_goes_on(lease)
    return code


@contextlib.contextmanager
def _mortal() -> Iterator[None]:
    """Let a signal end this process also where it is the first of a container, which gets only what it asks for."""
    if os.getpid() != FIRST:
        yield
        return
    before = {number: signal.signal(number, _end) for number in ENDS if signal.getsignal(number) is signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: "FrameType | None") -> NoReturn:
    raise SystemExit(EXIT_SIGNAL + number)


def _settings() -> MachineSettings:
    """Return what the configuration says of the machine, once all of it is right."""
    configuration = read_configuration(configuration_path(os.environ))
    if configuration.settings.keys() <= {"machine"}:
        return checked_machine(configuration)
    from hostler.configuration_keys import check_configuration  # noqa: PLC0415  many have none of its sections

    check_configuration(configuration.path, configuration.settings)
    return machine_of(configuration)


def _run(lease: Lease, command: Command, *, own_terminal: bool) -> int:
    try:
        if own_terminal:
            from hostler.commands.pseudo_terminal import run_on_terminal  # noqa: PLC0415  few want it

            return run_on_terminal(lease, command)
        return run_job(lease, command)
    except HostlerError as error:
        return _refuse(error, EXIT_NOT_EXECUTABLE)


def _tell_who_goes_on(lease: Lease) -> None:
    """Name the processes that keep the ticket although the command has ended."""
    place = lease.place
    lease.release()
    if is_held(place):
        from hostres.holders import holders_of  # noqa: PLC0415  looks at every process

        with contextlib.suppress(OSError):
            for holders in holders_of([os.lstat(place)]).values():
                for holder in holders:
                    name = os.path.basename(holder.command.partition(" ")[0])  # noqa: PTH119
                    sys.stderr.write(f"hostler: pid {holder.pid} ({name}) goes on and keeps its place\n")


def _refuse(error: HostlerError, code: int) -> int:
    sys.stderr.write(f"hostler: {told(error.code, error.what, error.todo)}\n")
    return code


def _seconds(text: str) -> float:
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", text)
    if number is None:
        raise HostlerError(Code.INVALID_DATA, f"--wait {text} is not a time", "write it as 30s, 5m or 1h")
    seconds = float(number[1]) * SECONDS[number[2]]
    if seconds > MAX_WAIT_S:
        todo = "write at most 24h, or leave it out to wait as long as it takes"
        raise HostlerError(Code.INVALID_DATA, f"--wait {text} is longer than a day", todo)
    return seconds
