"""`hostler why`: why a run or a node does not move, and what would move it."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, add_run, command_parser
from hostler.commands.output import print_json, print_line
from hostler.scenes import scene_of
from hostler.stored_runs import node_of, reading
from hostler.views.waiting import typed
from hostler.views.why import why_node, why_run

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "why", description="say why a run or a node does not move", example="- encode", more=("-",)
    )
    add_run(parser)
    parser.add_argument("node", metavar="NODE", nargs="?", help="a node of it; without one, the run as a whole")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print one paragraph, and the commands that would move it."""
    with reading() as (home, reader):
        run_id = reader.find(args.run)
        if args.node is not None:
            node_of(reader, run_id, args.node)
        scene = scene_of(home, reader, run_id)
    found = why_run(scene) if args.node is None else why_node(scene, args.node)
    if args.json:
        print_json(found.to_json(run_id))
        return 0
    about = run_id if found.node is None else f"{found.node} of {run_id}"
    print_line("\n".join([f"{about} is {found.status}. {found.text}", *typed(found.commands, "  ")]))
    return 0
