"""`hostler schema`: the JSON Schema of what a command prints with `--json`."""

import argparse
import json
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, command_parser
from hostler.commands.output import print_json, print_line
from hostler.output_schemas import FOLDER, commands, file_of
from hostres.errors import Code, HostlerError
from hostres.suggestions import did_you_mean

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "schema",
        description="print the JSON Schema of what a command prints with --json",
        example="show",
        more=("receipt list", "  # which commands have one"),
    )
    parser.add_argument("name", metavar="COMMAND", nargs="*", help="the command, with its action; none: list them")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the schema, which is JSON itself, or the list of commands that have one."""
    known = commands()
    if not args.name:
        if args.json:
            print_json({"commands": known})
        else:
            print_line("\n".join(known))
        return 0
    name = "-".join(args.name)
    if name not in known:
        below = [each for each in known if each.startswith(f"{name}-")]
        todo = f"name one of {', '.join(below)}" if below else did_you_mean(name, known, "`hostler schema` lists them")
        raise HostlerError(Code.NOT_FOUND, f"no command {' '.join(args.name)!r} prints JSON", todo)
    text = (FOLDER / file_of(name)).read_text(encoding="utf-8")
    print_line(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
    return 0
