"""`hostler recover`: take a running node from an attempt that has got stuck, and let it be tried again."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.answering import add_answer, answer
from hostler.commands.arguments import command_parser
from store.contracts import RequestKind

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "recover",
        description="end what a running node has got stuck in, and let it be tried again",
        example="- transcode",
    )
    add_answer(parser)


def run(args: argparse.Namespace) -> int:
    """Post the request."""
    return answer(args, RequestKind.RECOVER, done=lambda _: "is taken from the attempt that runs")
