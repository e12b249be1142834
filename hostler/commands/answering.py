"""What `retry`, `correct`, `replay` and `settle` have in common: one request about one node."""

import argparse
from collections.abc import Callable
from typing import Any

from hostler.asking import Subject, ask
from hostler.commands.arguments import add_json, add_reason, add_run
from hostler.commands.output import print_json, print_line
from hostler.commands.posting import have_it_answered, look_at, next_step
from hostler.stored_runs import reading
from store.contracts import NodeRecord, RequestKind
from store.reader import Reader
from store.receipts import FIELD

Details = Callable[[Reader, Subject, NodeRecord], dict[str, Any]]
"""What a request needs besides, worked out from the run and the node that it is about."""
Done = Callable[[NodeRecord], str]


def add_answer(parser: argparse.ArgumentParser) -> None:
    """Add the arguments RUN and NODE, `--reason` and `--json`."""
    add_run(parser)
    parser.add_argument("node", metavar="NODE", help="key of the node")
    add_reason(parser)
    add_json(parser)


def add_receipt(parser: argparse.ArgumentParser) -> None:
    """Add `--receipt`."""
    parser.add_argument("--receipt", metavar="ID", help="use the receipt by which a person gave leave beforehand")


def with_receipt(args: argparse.Namespace) -> dict[str, str]:
    """Return what a request says of the receipt that it is made with."""
    name = getattr(args, "receipt", None)
    return {} if name is None else {FIELD: name}


def answer(args: argparse.Namespace, kind: RequestKind, *, done: Done, details: Details | None = None) -> int:
    """Post one request about a node and let it take effect.

    Args:
        args: Of the command.
        kind: What is wanted.
        done: Says of the node, as it stood before, what has become of it.
        details: What the kind needs besides.

    Returns:
        The exit code.

    """
    with reading(to_write=True) as (home, reader):
        subject = look_at(reader, args.run)
        node = subject.node(args.node)
        data = (details(reader, subject, node) if details is not None else {}) | with_receipt(args)
        asked = ask(home, subject, kind, node, plan_sha256=node.frozen_sha256, reason=args.reason, data=data)
        heard = have_it_answered(reader, subject, [asked]).check()
    if args.json:
        shape = {"run_id": subject.run_id, "node": node.key, "answer": kind.value, "answered": not heard.unanswered}
        print_json(shape)
    elif heard.unanswered:
        print_line(f"{kind} of {node.key} asked for; {heard.late}")
    else:
        print_line(f"{node.key} {done(node)}\n{next_step(subject, here=heard.here)}")
    return 0
