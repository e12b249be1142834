"""The command line as a whole: which commands there are, what each takes, what is wrong with what was typed."""

import argparse
import importlib
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Final, Never, NoReturn

from hostler import __version__
from hostler.commands import COMMANDS, module_of
from hostler.commands.output import print_line
from hostler.refusals import require_utf8
from hostres.errors import Code, told
from hostres.suggestions import did_you_mean

EXIT_USAGE: Final = 2
DEBUG: Final = "--debug"
DEBUG_HELP: Final = "show the traceback of an error"
LONGEST_WORD: Final = 200
"""More of a wrong word is not repeated."""


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line, and what was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Leave with 2."""
        self.refuse(message, f"see {self.prog} --help")

    def refuse(self, what: str, todo: str) -> NoReturn:
        """Leave with 2.

        Args:
            what: What is wrong.
            todo: What to do about it.

        """
        from hostres.masking import own_mask  # noqa: PLC0415 (only where something is wrong)

        self.exit(EXIT_USAGE, f"hostler: {own_mask().text(told(Code.USAGE, what, todo))}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help; argparse keeps to itself that it cannot be written."""
        if file is sys.stdout:
            print_line(message.removesuffix("\n"))
        else:
            super()._print_message(message, file)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is none of those to choose from."""
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        below = isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 (argparse gives it no other name)
        kind = (
            str(action.metavar or "argument").lower() if below else (action.option_strings or [str(action.metavar)])[-1]
        )
        listed = "" if below and len(known) > len(COMMANDS) // 2 else f"choose from {', '.join(known)}, or "
        what = f"there is no {kind} {_shown(value)}" if below else f"{_shown(value)} is no value of {kind}"
        self.refuse(what, did_you_mean(str(value), known, f"{listed}see {self.prog} --help"))


def command_of(arguments: list[str]) -> Callable[[], int]:
    """Return what runs the command that was typed; only its module is imported.

    Args:
        arguments: The arguments after the program's name.

    Returns:
        A function that returns the exit code.

    Raises:
        HostlerError: One of them is not UTF-8 (invalid-data).

    """
    _refuse_undecodable(arguments)
    _hear_of_children()
    # The command is the first argument that is not one of ours; argparse finds it again and checks the rest.
    named = next((argument for argument in arguments if argument != DEBUG), "")
    module = importlib.import_module(module_of(named)) if named in COMMANDS else None
    args = parsed(parser_of(named, module), arguments)
    if module is None:
        raise AssertionError(f"argparse let {named!r} through")
    return partial(module.run, args)


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Return what the arguments mean; leave with 2, saying what was probably meant, if they mean nothing.

    Args:
        parser: From `parser_of`.
        arguments: The arguments after the program's name.

    """
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        last = list(_way(parser, args))[-1]
        assert isinstance(last, Parser)
        word = unknown[0].partition("=")[0]
        if word.startswith("-") and word != "-":
            last.refuse(
                f"there is no option {_shown(word)}", did_you_mean(word, options_of(last), f"see {last.prog} --help")
            )
        last.refuse(f"{_shown(unknown[0])} is one argument too many", f"see {last.prog} --help")
    return args


def parser_of(named: str, module: ModuleType | None = None) -> Parser:
    """Return the parser of `hostler`, which knows the arguments of one command.

    Args:
        named: The command.
        module: Its module; imported if it is not given.

    """
    if module is None and named in COMMANDS:
        module = importlib.import_module(module_of(named))
    parser = Parser(
        prog="hostler",
        description="A durable workflow host for one machine.",
        epilog="example: hostler run examples/podcast.py -i source=talk.mp4",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    parser.add_argument(DEBUG, action="store_true", help=DEBUG_HELP)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name == named and module is not None:
            module.add(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    return parser


def below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of what a command is divided into, by name; nothing for most."""
    for action in parser._actions:  # noqa: SLF001 (argparse tells of its own in no other way)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def options_of(parser: argparse.ArgumentParser) -> Collection[str]:
    """Return the options that a parser knows."""
    return parser._option_string_actions.keys()  # noqa: SLF001 (argparse tells of its own in no other way)


def _way(parser: argparse.ArgumentParser, args: argparse.Namespace) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers that took the arguments, each below the one before."""
    yield parser
    for name in (args.command, getattr(args, "action", None)):
        parsers = below(parser)
        if name not in parsers:
            return
        parser = parsers[name]
        yield parser


def _shown(word: object) -> str:
    text = str(word)
    return repr(text if len(text) <= LONGEST_WORD else f"{text[:LONGEST_WORD]}…")


def _refuse_undecodable(arguments: list[str]) -> None:
    """Refuse what is not UTF-8 where it would be stored; the words of a command to run are passed on as they are."""
    if arguments[:1] == ["exec"] or arguments[:2] == [DEBUG, "exec"]:
        return
    for argument in arguments:
        require_utf8(argument, "the argument")


def _hear_of_children() -> None:
    """Undo that the caller ignores SIGCHLD, which passes through exec: nobody would learn how a program ends."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


class _Version(argparse.Action):
    """Print the version."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> Never:
        print_line(f"hostler {__version__}")
        parser.exit()
