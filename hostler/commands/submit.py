"""`hostler submit`: create a run and leave it to the background service."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, add_key, add_workflow, command_parser
from hostler.commands.compiling import compiled
from hostler.commands.excess import warn_of_excess
from hostler.commands.output import json_alone, print_json, print_line
from hostler.config import Config
from hostler.host import Host
from store.home import Home
from store.service import service_alive

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "submit",
        description="create a run and leave it to the background service",
        example="examples/podcast.py -i source=talk.mp4 -i out=out",
        more=("examples/greeting.toml -i name=Ann --key greeting-of-today",),
    )
    add_workflow(parser)
    add_key(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Create the run; print its id and how to start it."""
    config = Config.load()
    with json_alone(wanted=args.json):
        result = compiled(args, config)
    warn_of_excess(result.plan, config)
    with Host(config=config) as host:
        run_id = host.create(result, submission_key=args.key, entrusted=True)
    serves = service_alive(Home.open(config.home, create=False))
    command = f"hostler {'watch' if serves else 'resume'} {run_id}"
    if args.json:
        print_json({"run_id": run_id, "plan_sha256": result.plan_sha256, "command": command})
    else:
        print_line(f"{run_id}\n{command}")
    return 0
