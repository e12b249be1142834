"""`hostler runs`: the runs of the store, newest first.

Every import here is a part of what `hostler runs` takes to start, so there are few.
"""

import os
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from hostler.commands.output import print_json, print_line, terminal_width
from hostler.state_folder import state_folder
from hostler.views.colours import paint_for
from hostler.views.runs import run_row_json, runs_text
from store.home import Home
from store.lifecycle import RunStatus
from store.run_list import RunList, RunRow

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

PAGE: Final = 50
STATUSES: Final = tuple(status.value for status in RunStatus)


def read_plain(words: list[str]) -> SimpleNamespace | None:
    """Read arguments that are as plain as most are, without the parser.

    Args:
        words: The arguments after `runs`.

    Returns:
        What the parser would make of them; None leaves to it what is rare or wrong.

    """
    args = SimpleNamespace(status=None, limit=None, before=None, json=False)
    while words:
        match words:
            case ["--json", *words]:
                args.json = True
            case ["--limit", number, *words] if re.fullmatch(r"[1-9][0-9]{0,8}", number):
                args.limit = int(number)
            case ["--status", status, *words] if status in STATUSES:
                args.status = status
            case _:
                return None
    return args


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    from hostler.commands.arguments import add_json, command_parser, positive  # noqa: PLC0415  see `read_plain`

    parser = command_parser(
        subparsers,
        "runs",
        description="list runs, newest first",
        example="--status approval-required",
        more=("--limit 5 --json",),
    )
    parser.add_argument("--status", choices=STATUSES, metavar="S", help=f"only runs of that status: {_listed()}")
    parser.add_argument(
        "--limit", type=positive, metavar="N", help=f"the newest N of them (default: {PAGE}; with --json all)"
    )
    parser.add_argument("--before", metavar="RUN", help="only those older than this run: the next page")
    add_json(parser)


def _listed() -> str:
    return ", ".join(STATUSES)


def run(args: Any) -> int:
    """Print the runs; those that can be read, and then what is wrong, if the store is damaged."""
    limit = args.limit if args.limit is not None or args.json else PAGE
    home = Home.open(state_folder(os.environ), create=False)
    with RunList.open(home) as runs:
        last = None if args.before is None else runs.find(args.before)
        rows, more = _page(runs, RunStatus(args.status) if args.status else None, limit, last)
        damage = runs.damage
    if args.json:
        print_json({"runs": [run_row_json(row) for row in rows], "more": more})
    else:
        print_line(runs_text(rows, width=terminal_width(), paint=paint_for()) if rows else "no runs")
        if more:
            status = f" --status {args.status}" if args.status else ""
            print_line(f"older ones: hostler runs{status} --limit {limit} --before {rows[-1].run_id}")
    if damage is not None:
        raise damage
    return 0


def _page(runs: RunList, status: RunStatus | None, limit: int | None, before: str | None) -> tuple[list[RunRow], bool]:
    """Return a page, and whether there are more."""
    rows = runs.runs(status=status, limit=None if limit is None else limit + 1, before=before)
    return rows[:limit], limit is not None and len(rows) > limit
