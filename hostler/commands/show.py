"""`hostler show`: a run and its nodes."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, add_run, command_parser
from hostler.commands.output import print_json, print_line, terminal_width
from hostler.stored_runs import reading, whole
from hostler.views.colours import paint_for
from hostler.views.show import show_json, show_text

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "show", description="show a run and its nodes", example="-", more=("run_01m8 --json",)
    )
    add_run(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the run."""
    with reading() as (_, reader):
        run_id = reader.find(args.run)
        stored, plan, nodes = whole(reader, run_id)
        grants, cuts = reader.grants(run_id), reader.log_cuts(run_id)
    if args.json:
        print_json(show_json(stored, plan, nodes, grants, cuts))
    else:
        print_line(show_text(stored, plan, nodes, grants, cuts, width=terminal_width(), paint=paint_for()))
    return 0
