"""`hostler …`: find the command, run it, turn what goes wrong into one line and an exit code.

Only the module of the command that was named is imported, so that `hostler exec` starts fast.
"""

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Never, NoReturn

from hostler.commands import COMMANDS
from hostler.standard_streams import mend_standard_streams
from hostres.errors import EXIT_CODES, Code, HostlerError

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
UNWRITABLE = (errno.ENOSPC, errno.EIO, errno.EBADF)  # what a standard output that takes nothing answers
EXIT_BROKEN_PIPE = 141  # what a shell reports of a program ended by SIGPIPE


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with 2."""
        what = " ".join(message.split())
        self.exit(EXIT_USAGE, f"hostler: error[usage]: {what}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments after the program's name; None takes those of the process.

    Returns:
        The exit code.

    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments[:1]
    mend_standard_streams()
    try:
        _refuse_undecodable(arguments)
        code = _run(arguments)
        sys.stdout.flush()
    except HostlerError as error:
        code = _report(error, debug=debug)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        code = EXIT_BROKEN_PIPE
    except OSError as error:
        code = _report(_of_the_system(error), debug=debug)
        if error.errno in UNWRITABLE:
            _forget_stdout()
    except Exception as error:
        if debug:
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        todo = "a bug in Hostler or in an operation; `hostler --debug …` shows where"
        code = _report(HostlerError(Code.INTERNAL, what, todo), debug=False)
    return code


def _refuse_undecodable(arguments: list[str]) -> None:
    """Refuse what is not UTF-8 where it would be stored; the words of a command to run are passed on as they are."""
    if arguments[:1] == ["exec"] or arguments[:2] == ["--debug", "exec"]:
        return
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = argument.encode("utf-8", "replace").decode()
            raise HostlerError(
                Code.INVALID_DATA, f"the argument {shown!r} is not UTF-8", "rename the file, or write the text in UTF-8"
            ) from None


def _of_the_system(error: OSError) -> HostlerError:
    """Return an error of the operating system that nobody foresaw, with the path that it is about."""
    said = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return HostlerError(Code.UNAVAILABLE, "the current folder is gone", "change to one that exists")
    about = "" if error.filename is None else f": {str(error.filename)[:200]}"
    return HostlerError(Code.UNAVAILABLE, f"{said}{about}", "mend that, then try again")


def _run(arguments: list[str]) -> int:
    # The command is the first argument that is not one of ours; argparse finds it again and checks the rest.
    named = next((argument for argument in arguments if argument != "--debug"), "")
    module = importlib.import_module(f"hostler.commands.{named}") if named in COMMANDS else None
    args = _parser(named, module).parse_args(arguments)
    if module is None:
        raise AssertionError(f"argparse let {named!r} through")
    code: int = module.run(args)
    return code


def _parser(named: str, module: ModuleType | None) -> Parser:
    parser = Parser(
        prog="hostler",
        description="A durable workflow host for one machine.",
        epilog="example: hostler run examples/podcast.py -i source=talk.mp4",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name == named and module is not None:
            module.add(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    return parser


class _Version(argparse.Action):
    """Print the version; it is looked up only when somebody asks."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> Never:
        from importlib.metadata import version  # noqa: PLC0415 (slow, and seldom needed)

        sys.stdout.write(f"hostler {version('hostler')}\n")
        parser.exit()


def _report(error: HostlerError, *, debug: bool) -> int:
    if debug:
        import traceback  # noqa: PLC0415 (seldom needed)

        traceback.print_exc()
    line = "".join(char if char.isprintable() else " " for char in str(error))
    sys.stderr.write(f"hostler: {line}\n")
    return EXIT_CODES[error.code]


def _forget_stdout() -> None:
    # The interpreter flushes standard output once more as it ends; there is nobody to read it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
