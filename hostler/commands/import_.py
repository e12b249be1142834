"""`hostler import`: bring a run back from an archive, to be looked at."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hostler.commands.archive_files import open_archive
from hostler.commands.arguments import add_json, command_parser
from hostler.commands.output import print_json, print_line
from hostler.config import Config
from store.archive.importing import bring_in
from store.clock import SystemClock
from store.home import Home

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "import",
        description="bring a run back from an archive, to be looked at",
        example="talk.hostler-run.tar",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="what `hostler export` wrote")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Bring the run in, unless the same is there already."""
    with open_archive(args.file) as file:
        home = Home.open(Config.load().home, create=True)
        done = bring_in(home, file, str(args.file), clock=SystemClock())
    if args.json:
        print_json({"run_id": done.run_id, "sha256": done.sha256, "new": done.new})
    else:
        print_line(
            f"{done.run_id} is imported; look at it with: hostler show {done.run_id}"
            if done.new
            else f"{done.run_id} is there already, the very same"
        )
    return 0
