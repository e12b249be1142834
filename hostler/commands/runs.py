"""`hostler runs`: list runs, newest first."""

import argparse
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, command_parser, positive
from hostler.commands.output import print_json, print_line
from hostler.commands.places import reading
from hostler.views.runs import run_row_json, runs_text
from store.lifecycle import RunStatus
from store.reader import Reader, RunRow

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

PAGE: Final = 50


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
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help=f"the newest N of them (default: {PAGE}; with --json all)",
    )
    parser.add_argument("--before", metavar="RUN", help="only those older than this run: the next page")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the runs; those that can be read, and then what is wrong, if the store is damaged."""
    limit = args.limit if args.limit is not None or args.json else PAGE
    with reading() as (_, reader):
        last = None if args.before is None else reader.find(args.before)
        rows, more = _page(reader, RunStatus(args.status) if args.status else None, limit, last)
        damage = reader.damage
    if args.json:
        print_json({"runs": [run_row_json(row) for row in rows], "more": more})
    else:
        print_line(runs_text(rows) if rows else "no runs")
        if more:
            status = f" --status {args.status}" if args.status else ""
            print_line(f"older ones: hostler runs{status} --limit {limit} --before {rows[-1].run_id}")
    if damage is not None:
        raise damage
    return 0


def _page(reader: Reader, status: RunStatus | None, limit: int | None, before: str | None) -> tuple[list[RunRow], bool]:
    """Return a page, and whether there are more."""
    rows = reader.runs(status=status, limit=None if limit is None else limit + 1, before=before)
    return rows[:limit], limit is not None and len(rows) > limit
