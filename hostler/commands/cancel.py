"""`hostler cancel`: stop a run or one node of it, also from another process."""

import argparse
from typing import TYPE_CHECKING

from hostler.asking import ask_to_cancel
from hostler.commands.arguments import add_json, add_reason, add_run, command_parser
from hostler.commands.output import print_json, print_line
from hostler.commands.posting import have_it_consumed
from hostler.stored_runs import node_of, reading
from store.lifecycle import RunStatus

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "cancel",
        description="stop a run or one node of it",
        example="-",
        more=('- --node encode --reason "wrong codec"',),
    )
    add_run(parser)
    parser.add_argument("--node", metavar="N", help="only this node, and what depends on it")
    add_reason(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Post the request and see to it that somebody acts on it."""
    with reading(to_write=True) as (home, reader):
        run_id = reader.find(args.run)
        subject = ask_to_cancel(home, reader, run_id, args.node, reason=args.reason)
        already = args.node is None and subject.run.status is RunStatus.CANCELLED
        if not already:
            have_it_consumed(reader, subject)
        status = reader.run(run_id).status if args.node is None else node_of(reader, run_id, args.node).status
    what = f"node {args.node} of {run_id}" if args.node is not None else run_id
    said = f"host {subject.run.owner.host} stops it" if subject.owned and subject.run.owner else f"now {status}"
    if args.json:
        print_json({"run_id": run_id, "node": args.node, "status": status.value})
    else:
        print_line(f"{run_id} is cancelled already" if already else f"cancel of {what} asked for; {said}")
    return 0
