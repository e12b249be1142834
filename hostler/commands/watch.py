"""`hostler watch`: look on while another process works on a run."""

import argparse
import time
from typing import TYPE_CHECKING

from actors.actions import NodeChanged, RunChanged
from hostler.commands.arguments import add_json, add_run, command_parser
from hostler.commands.endings import WATCHED
from hostler.commands.following import follow, stands_still
from hostler.commands.foreground import tell_ending, view_of
from hostler.commands.places import reading
from store.reader import Reader

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "watch", description="look on while another process works on a run", example="-"
    )
    add_run(parser)
    add_json(parser, "print only one JSON object, at the end")


def run(args: argparse.Namespace) -> int:
    """Show the run until it ends, rests or has no host; Ctrl-C ends only the watching."""
    return look_on(args.run, json=args.json)


def look_on(run: str, *, json: bool) -> int:
    """Show a run until it ends, rests or has no host.

    Args:
        run: Any unique prefix of its id, or `-`.
        json: Print only one JSON object, at the end.

    Returns:
        The exit code; 3 for a run that no host works on, which rests until a person resumes it.

    """
    with reading() as (_, reader):
        run_id = reader.find(run)
        if not stands_still(reader, run_id):
            _look_on(reader, run_id, json=json)
        return tell_ending(reader, run_id, json=json, exits=WATCHED)


def _look_on(reader: Reader, run_id: str, *, json: bool) -> None:
    with view_of(run_id, reader, reader.nodes(run_id), json=json) as view:

        def show_new() -> None:
            now_s = time.monotonic()
            for record in reader.nodes(run_id):
                view.apply(NodeChanged(run_id=run_id, record=record), now_s)
            view.apply(RunChanged(run_id=run_id, status=reader.run(run_id).status), now_s)

        follow(reader, run_id, show_new)
