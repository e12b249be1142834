"""`hostler cancel`: stop a run or one node of it, also from another process."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, add_reason, add_run, command_parser
from hostler.commands.output import print_json, print_line
from hostler.commands.places import node_of, reading
from hostler.commands.posting import Subject, ask, have_it_consumed, look_at
from hostres.errors import Code, HostlerError
from store.contracts import RequestKind
from store.lifecycle import RUN_FINAL, RunStatus

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
        subject = look_at(reader, args.run)
        node = node_of(reader, subject.run_id, args.node) if args.node is not None else None
        if node is None and subject.run.status in RUN_FINAL:
            return _already_over(subject, json=args.json)
        ask(home, subject, RequestKind.CANCEL, node, reason=args.reason)
        have_it_consumed(reader, subject)
        status = reader.run(subject.run_id).status if node is None else node_of(reader, subject.run_id, node.key).status
    what = f"node {node.key} of {subject.run_id}" if node else subject.run_id
    said = f"host {subject.run.owner.host} stops it" if subject.owned and subject.run.owner else f"now {status}"
    if args.json:
        print_json({"run_id": subject.run_id, "node": args.node, "status": status.value})
    else:
        print_line(f"cancel of {what} asked for; {said}")
    return 0


def _already_over(subject: Subject, *, json: bool) -> int:
    status = subject.run.status
    if status is not RunStatus.CANCELLED:
        raise HostlerError(
            Code.CONFLICT,
            f"run {subject.run_id} is {status}; there is nothing to cancel",
            f"see `hostler show {subject.run_id}`",
        )
    if json:
        print_json({"run_id": subject.run_id, "node": None, "status": status.value})
    else:
        print_line(f"{subject.run_id} is cancelled already")
    return 0
