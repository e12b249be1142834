"""`hostler events`: the event log of a run."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, add_run, command_parser
from hostler.commands.following import follow
from hostler.commands.output import print_json, print_line
from hostler.stored_runs import reading
from hostler.views.events import event_json, event_line
from store.reader import Reader

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "events", description="print the event log of a run", example="- --follow", more=("- --json",)
    )
    add_run(parser)
    parser.add_argument(
        "--follow",
        action="store_true",
        help="go on until the run ends, rests or has no host that works on it",
    )
    add_json(parser, "print one JSON object a line")


def run(args: argparse.Namespace) -> int:
    """Print the events."""
    with reading() as (_, reader):
        run_id = reader.find(args.run)
        printer = _Printer(reader, run_id, json=args.json)
        if args.follow:
            follow(reader, run_id, printer.show_new)
        else:
            printer.show_new()
    return 0


class _Printer:
    def __init__(self, reader: Reader, run_id: str, *, json: bool) -> None:
        self._reader = reader
        self._run_id = run_id
        self._json = json
        self._seen = 0

    def show_new(self) -> None:
        for event in self._reader.events(self._run_id, after=self._seen):
            self._seen = event.seq
            if self._json:
                print_json(event_json(event), compact=True)
            else:
                print_line(event_line(event))
