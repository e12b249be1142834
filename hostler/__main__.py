"""`hostler …`: run what was typed, turn what goes wrong into one line and an exit code.

Every import here is a part of what `hostler exec` and `hostler --version` take to start, so there are few.
"""

from __future__ import annotations

import gc
import os
import sys

from hostler import __version__
from hostler.standard_streams import mend_standard_streams

TYPE_CHECKING = False  # as in the package

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

EXIT_INTERRUPTED = 130
EXIT_UNAVAILABLE = 69
DEBUG = "--debug"
LIGHT = ("complete", "exec", "runs")
"""Commands that read plain arguments themselves: their modules have `read_plain`."""
VALUED = ("--claim", "--name", "--priority", "--wait")
"""Options of `exec` that take the next word."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments after the program's name; None takes those of the process.

    Returns:
        The exit code.

    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    mend_standard_streams()
    light = None
    try:
        gc.disable()  # what is imported stays
        try:
            light = _light(arguments)
            command = light or _command(arguments)
        finally:
            gc.enable()
        if argv is None:
            gc.freeze()  # no collection looks at what was imported, which is nearly all there is
        code = command()
        _put()  # what a command wrote and left for later
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        code = _tell(error, debug=_debugs(arguments))
    if argv is None:
        if light is not None:
            _leave(code)
        gc.freeze()  # the process ends: to look once more for garbage among all that lives takes as long as a start
    return code


def _tell(error: Exception, *, debug: bool) -> int:
    try:
        from hostler.troubles import tell  # noqa: PLC0415

        return tell(error, debug=debug)
    except OSError as lacking:
        import errno  # noqa: PLC0415

        if lacking.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        todo = "raise the limit of open files (ulimit -n), or run fewer things at once"
        sys.stderr.write(f"hostler: error[unavailable]: no file can be opened, not even to say what failed; {todo}\n")
        return EXIT_UNAVAILABLE


def _light(arguments: list[str]) -> Callable[[], int] | None:
    """Return what runs a command that reads its arguments itself; None if it needs the parser."""
    if not arguments or arguments[0] not in LIGHT:
        return None
    if arguments[0] == "exec":
        from hostres.logger import import_fasteners  # noqa: PLC0415

        import_fasteners()
    command = getattr(__import__("hostler.commands", fromlist=[arguments[0]]), arguments[0])
    plain = command.read_plain(arguments[1:])
    return None if plain is None else lambda: command.run(plain)


def _leave(code: int) -> NoReturn:
    """End at once: a light command leaves nothing to put in order.

    To take its modules apart would be two milliseconds, of the processor on which whoever waits for the same capacity
    may have been woken.
    """
    import atexit  # noqa: PLC0415  what other commands do not need

    try:
        atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing ends its children
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _command(arguments: list[str]) -> Callable[[], int]:
    """Return what runs a command that needs the parser; leave with 2 if the arguments mean nothing."""
    if arguments == ["--version"]:
        return _version
    from hostler.command_line import command_of  # noqa: PLC0415  the parser alone costs as much as a bare Python

    return command_of(arguments)


def _version() -> int:
    _put(f"hostler {__version__}\n")
    return 0


def _put(text: str = "") -> None:
    try:
        if text:  # where nothing is buffered, to write nothing is a call of the system, which a full disk refuses
            sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        error.filename = "standard output"
        raise


def _debugs(arguments: list[str]) -> bool:
    """Say whether `--debug` is among the words that are ours, not those of a command to run."""
    words = iter(arguments)
    command = ""
    for word in words:
        if word == DEBUG:
            return True
        if word == "--" or (command == "exec" and not word.startswith("-")):
            return False
        if command == "exec" and word in VALUED:
            next(words, None)
        command = command or word
    return False


if __name__ == "__main__":
    sys.exit(main())
