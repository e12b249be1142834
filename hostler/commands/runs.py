"""`hostler runs`: list runs, newest first."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, command_parser, positive
from hostler.commands.output import print_json, print_line
from hostler.commands.places import reading
from hostler.views.runs import run_row_json, runs_text
from store.lifecycle import RunStatus

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "runs", description="list runs, newest first", example="--status approval-required"
    )
    parser.add_argument(
        "--status",
        choices=[status.value for status in RunStatus],
        metavar="S",
        help="only runs of that status",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="the newest N of them")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the runs; those that can be read, and then what is wrong, if the store is damaged."""
    with reading() as (_, reader):
        rows = reader.runs(status=RunStatus(args.status) if args.status else None, limit=args.limit)
        damage = reader.damage
    if args.json:
        print_json({"runs": [run_row_json(row) for row in rows]})
    else:
        print_line(runs_text(rows) if rows else "no runs")
    if damage is not None:
        raise damage
    return 0
