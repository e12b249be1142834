"""`hostler why`: why a run or a node does not move, and what would move it."""

import argparse
import os
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, add_run, command_parser
from hostler.commands.output import print_json, print_line
from hostler.run_code import code_for_run
from hostler.stored_runs import node_of, reading, whole
from hostler.views.waiting import typed
from hostler.views.why import Scene, why_node, why_run
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.leftovers import find_leftovers
from hostres.rows import Row
from hostres.top import snapshot
from store.home import Home
from store.lifecycle import NEEDS_CODE, RUN_FINAL
from store.reader import Reader

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


def scene_of(home: Home, reader: Reader, run_id: str, *, load: bool = True) -> Scene:
    """Return what is known of a run when somebody asks why.

    Args:
        home: The state folder.
        reader: The store.
        run_id: The run.
        load: Load its code, to find out whether this program has what it takes; that executes what people wrote.

    Raises:
        HostlerError: not-found; invalid-data for a damaged store.

    """
    stored, plan, nodes = whole(reader, run_id)
    missing = None
    if load and not stored.owned and not stored.imported and stored.status not in RUN_FINAL:
        needing = {node.key for node in nodes if node.status in NEEDS_CODE}
        try:
            code_for_run(stored.record, plan, reader.bundle, home.bundles, nodes=needing)
        except HostlerError as error:
            missing = error.what
    stopped = [process for process in find_leftovers(run_id) if process.stopped]
    return Scene(run=stored, plan=plan, nodes=nodes, tickets=_tickets(run_id), missing=missing, stopped=stopped)


def _tickets(run_id: str) -> dict[str, Row]:
    """Return the tickets of a run's nodes; the machine is only looked at, and what cannot be seen is left out."""
    try:
        rows = snapshot(machine_folder(os.environ)).tickets
    except HostlerError as error:
        if error.code is not Code.UNSAFE_STATE:
            raise
        return {}
    mark = f"{run_id} "
    return {row.name.removeprefix(mark): row for row in rows if row.name.startswith(mark)}
