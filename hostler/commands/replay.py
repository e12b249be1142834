"""`hostler replay`: let trusted code that was interrupted run again."""

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
        subparsers, "replay", description="let trusted code that was interrupted run again", example="- count"
    )
    add_answer(parser)
    add_receipt(parser)


def run(args: argparse.Namespace) -> int:
    """Post the request."""
    return answer(args, RequestKind.REPLAY, done=lambda _: "may run again")
