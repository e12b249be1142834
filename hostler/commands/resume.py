"""`hostler resume`: go on with a run here."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_jobs, add_json, add_run, command_parser
from hostler.commands.foreground import attend, tell_ending
from hostler.commands.output import json_alone
from hostler.config import Config
from hostler.host import Host
from hostler.hosted_run import Run
from hostler.stored_runs import reading
from store.heads import refuse_if_imported
from store.lifecycle import RUN_FINAL

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "resume",
        description="go on with a run here",
        example="-",
        more=("run_01m8 --jobs 4", "- --accept-incompatible"),
    )
    add_run(parser)
    add_jobs(parser)
    parser.add_argument(
        "--accept-incompatible",
        action="store_true",
        help="go on without the nodes whose code is missing or was changed: they become incompatible",
    )
    add_json(parser, "print only one JSON object, at the end")


def run(args: argparse.Namespace) -> int:
    """Go on with the run, or say how it ended."""
    return go_on(args.run, jobs=args.jobs, json=args.json, accept_incompatible=args.accept_incompatible)


def go_on(run: str, *, jobs: int | None, json: bool, accept_incompatible: bool = False) -> int:
    """Go on with a run here, or say how it ended.

    Args:
        run: Any unique prefix of its id, or `-`.
        jobs: How many of its nodes may be active; None is the machine's cpu capacity.
        json: Print only one JSON object, at the end.
        accept_incompatible: Go on without the nodes whose code is missing.

    Returns:
        The exit code.

    """
    with reading(to_write=True) as (home, reader):
        run_id = reader.find(run)
        stored = reader.run(run_id)
        refuse_if_imported(run_id, imported=stored.imported)
        if stored.status in RUN_FINAL:
            return tell_ending(reader, run_id, json=json)
        before = reader.nodes(run_id)
    with json_alone(wanted=json), Host(config=Config.load(), jobs=jobs, release_at_rest=True) as host:

        def begin() -> Run:
            return host.resume(run_id, accept_incompatible=accept_incompatible)

        return attend(host, begin, home, before=before, json=json)
