"""The command line as a whole: which commands there are, what each takes, what is wrong with what was typed."""

import argparse
import importlib
import sys
from types import ModuleType
from typing import Final, Never, NoReturn

from hostler import __version__
from hostler.commands import COMMANDS, module_of
from hostres.errors import Code, HostlerError

EXIT_USAGE: Final = 2


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with 2."""
        what = " ".join(message.split())
        self.exit(EXIT_USAGE, f"hostler: error[usage]: {what}; see {self.prog} --help\n")


def run_command(arguments: list[str]) -> int:
    """Run the command that was typed; only its module is imported.

    Args:
        arguments: The arguments after the program's name.

    Returns:
        The exit code.

    Raises:
        HostlerError: One of them is not UTF-8 (invalid-data); whatever the command raises.

    """
    _refuse_undecodable(arguments)
    # The command is the first argument that is not one of ours; argparse finds it again and checks the rest.
    named = next((argument for argument in arguments if argument != "--debug"), "")
    module = importlib.import_module(module_of(named)) if named in COMMANDS else None
    args = _parser(named, module).parse_args(arguments)
    if module is None:
        raise AssertionError(f"argparse let {named!r} through")
    code: int = module.run(args)
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
    """Print the version."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> Never:
        sys.stdout.write(f"hostler {__version__}\n")
        parser.exit()
