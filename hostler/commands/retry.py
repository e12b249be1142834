"""`hostler retry`: let a failed or blocked node be tried again."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.answering import add_answer, add_receipt, answer
from hostler.commands.arguments import command_parser
from store.contracts import RequestKind

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "retry",
        description="let a failed or blocked node be tried again",
        example="- transcode",
        more=('- transcode --anew --reason "disk was full"',),
    )
    add_answer(parser)
    parser.add_argument(
        "--anew",
        action="store_true",
        help="run a blocked node again whose result is there; otherwise that result is checked again",
    )
    add_receipt(parser)


def run(args: argparse.Namespace) -> int:
    """Post the request."""
    return answer(
        args,
        RequestKind.RETRY,
        done=lambda _: "may be tried again",
        details=lambda *_: {"anew": True} if args.anew else {},
    )
