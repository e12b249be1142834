"""`hostler top`: who holds the machine, who waits, and why."""

import argparse
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, command_parser
from hostler.json_format import versioned
from hostler.views.machine import machine_lines
from hostler.views.terminal import is_terminal
from hostres.folders import machine_folder
from hostres.top import snapshot

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

NO_END: Final = (None, signal.SIGINT)
"""Ctrl-C ends it as `q` does."""


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "top", description="show who holds the machine and who waits", example="--once --json", more=("",)
    )
    parser.add_argument("--once", action="store_true", help="print it once; so it is anyway when not on a terminal")
    add_json(parser, "print one JSON object, once")


def run(args: argparse.Namespace) -> int:
    """Print the machine, on a terminal again and again until `q` or Ctrl-C."""
    folder = machine_folder(os.environ)
    if args.json:
        sys.stdout.write(json.dumps(versioned(snapshot(folder).to_json()), indent=2) + "\n")
    elif args.once or not is_terminal():
        sys.stdout.write("".join(f"{line}\n" for line in machine_lines(snapshot(folder))))
    else:
        from hostler.commands.top_screen import look_on  # noqa: PLC0415  slow to import, needed on terminals only

        ended_by = look_on(folder)
        if ended_by not in NO_END:
            signal.signal(ended_by, signal.SIG_DFL)
            signal.raise_signal(ended_by)
    return 0
