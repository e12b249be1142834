"""Arguments that several commands share."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hostres.claims import is_priority

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 (argparse gives it no other name)

RUN_HELP: Final = "a run: any unique prefix of its id, or - for the newest"
WORKFLOW_HELP: Final = (
    "file.py, file.py:name, package.module:name, or a graph file (.json, .toml, .yaml); "
    "paths in its inputs are relative to the current folder"
)


def command_parser(
    subparsers: "Subparsers", name: str, *, description: str, example: str, more: Sequence[str] = (), under: str = ""
) -> argparse.ArgumentParser:
    """Add a command with a description and examples.

    Args:
        subparsers: Where to add it.
        name: The command.
        description: What it does; its `--help` says so.
        example: A line to type, without the program's name and the command's.
        more: Further ones, each perhaps with a remark behind two spaces and a #.
        under: The command that it is an action of.

    """
    typed = [" ".join(word for word in ("hostler", under, name, each) if word) for each in (example, *more)]
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=description,
        description=f"{description[:1].upper()}{description[1:]}.",
        epilog=f"example: {typed[0]}" if not more else "\n  ".join(["examples:", *typed]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return parser


MAX_REASON = 4000


def add_reason(parser: argparse.ArgumentParser) -> None:
    """Add `--reason`."""
    parser.add_argument("--reason", type=_reason, default="", metavar="T", help="why; it is kept in the log")


def _reason(text: str) -> str:
    if len(text) > MAX_REASON:
        raise argparse.ArgumentTypeError(f"it has {len(text)} characters, more than {MAX_REASON}")
    return text


def add_json(parser: argparse.ArgumentParser, what: str = "print one JSON object") -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help=what)


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the argument RUN."""
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add `--jobs`."""
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="at most N nodes at a time (default: the machine's cpu capacity)",
    )


def add_workflow(parser: argparse.ArgumentParser) -> None:
    """Add WORKFLOW and its inputs."""
    parser.add_argument("workflow", metavar="WORKFLOW", help=WORKFLOW_HELP)
    parser.add_argument(
        "-i",
        action="append",
        default=[],
        dest="inputs",
        metavar="KEY=VALUE",
        help="an input: text for one of type string, else JSON; may be given several times",
    )
    parser.add_argument(
        "--input",
        type=Path,
        metavar="FILE",
        dest="input_file",
        help="a JSON file with an object of inputs; -i overrides it",
    )


def add_key(parser: argparse.ArgumentParser) -> None:
    """Add `--key`."""
    parser.add_argument(
        "--key",
        metavar="KEY",
        help="a name of your own for this run: asking again under it gives the same run, other inputs are refused",
    )


MOST: Final = 1_000_000_000
"""More than there can be of anything; what is counted in the store stays below 64 bits."""


def positive(text: str) -> int:
    """Read a whole number above zero."""
    if not re.fullmatch(r"0*[1-9][0-9]{0,9}", text) or int(text) > MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 to {MOST}")
    return int(text)


def priority(text: str) -> int:
    """Read a whole number from -10 to 10."""
    if not (re.fullmatch(r"-?[0-9]{1,2}", text) and is_priority(int(text))):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from -10 to 10")
    return int(text)
