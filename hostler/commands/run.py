"""`hostler run`: plan, create and run a workflow here."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_jobs, add_json, add_key, add_workflow, command_parser
from hostler.commands.compiling import compiled
from hostler.commands.detaching import detach
from hostler.commands.excess import warn_of_excess
from hostler.commands.foreground import attend
from hostler.commands.output import json_alone, print_json, print_line
from hostler.commands.resume import go_on
from hostler.commands.watch import look_on
from hostler.compiler import Compiled
from hostler.config import Config
from hostler.host import Host
from hostler.stored_runs import reading
from store.home import Home

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "run",
        description="plan, create and run a workflow here, with a live view",
        example="examples/podcast.py -i source=talk.mp4 -i out=out",
        more=("examples/greeting.toml -i name=Ann --jobs 2", "examples/greeting.toml --input inputs.json --detach"),
    )
    add_workflow(parser)
    add_jobs(parser)
    add_key(parser)
    parser.add_argument(
        "--detach", action="store_true", help="run it in a session of its own, logging to logs/ in the home"
    )
    add_json(parser, "print only one JSON object, at the end")


def run(args: argparse.Namespace) -> int:
    """Run the workflow; the run's id is the first line."""
    with json_alone(wanted=args.json):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    config = Config.load()
    result = compiled(args, config)
    warn_of_excess(result.plan, config)
    if args.key is not None and not args.detach:
        return _run_or_look_on(args, config, result)
    with Host(config=config, jobs=args.jobs, release_at_rest=True) as host:
        home = Home.open(config.home, create=True)
        if args.detach:
            run_id = host.create(result, submission_key=args.key)
            log = detach(home, run_id, jobs=args.jobs)
        else:
            return attend(host, lambda: host.start(result), home, before=(), json=args.json)
    if args.json:
        print_json({"run_id": run_id, "log": str(log)})
    else:
        print_line(run_id)
        print_line(f"runs in the background; look on with: hostler watch {run_id}")
        print_line(f"what it says goes to {log}")
    return 0


def _run_or_look_on(args: argparse.Namespace, config: Config, result: Compiled) -> int:
    """Take up the run of that key, look on where another process works on it, or say how it ended."""
    with Host(config=config) as host:
        run_id = host.create(result, submission_key=args.key)
    with reading() as (_, reader):
        owned = reader.run(run_id).owned
    if owned:
        return look_on(run_id, json=args.json)
    return go_on(run_id, jobs=args.jobs, json=args.json)
