"""`hostler cancel`: stop a run or one node of it, also from another process."""

import argparse
from typing import TYPE_CHECKING

from hostler.asking import Subject, ask_to_cancel, subject_of
from hostler.commands.arguments import add_json, add_reason, add_run, command_parser
from hostler.commands.output import print_json, print_line
from hostler.commands.posting import have_it_answered
from hostler.stored_runs import reading
from store.lifecycle import FINAL, RUN_FINAL, RunStatus, Status

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
    """Post the request, see to it that somebody acts on it, and say what came of it."""
    with reading(to_write=True) as (home, reader):
        run_id = reader.find(args.run)
        subject, asked = ask_to_cancel(home, reader, run_id, args.node, reason=args.reason)
        heard = None if asked is None else have_it_answered(reader, subject, [asked]).check()
        now = subject_of(reader, run_id)
    late = "" if heard is None else heard.late
    node = None if args.node is None else now.node(args.node)
    status = now.run.status if node is None else node.status
    if args.json:
        print_json({"run_id": run_id, "node": args.node, "status": status.value, "answered": not late})
    elif asked is None:
        print_line(f"{run_id} is cancelled already")
    else:
        what = run_id if node is None else f"node {node.key} of {run_id}"
        print_line(f"cancel of {what} asked for; {late or _came_of_it(now, status)}")
    return 0


def _came_of_it(now: Subject, status: RunStatus | Status) -> str:
    if now.owned and now.run.owner is not None and status not in RUN_FINAL | FINAL:
        return f"host {now.run.owner.host} stops it"
    return f"now {status}"
