"""`hostler gc`: take away old runs and what belongs to nothing."""

import argparse
import re
import time
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, command_parser
from hostler.commands.output import print_json, print_line
from hostler.config import Config
from hostler.retention_settings import GIGABYTE, age_seconds
from hostler.views.collection import collected_json, collected_text
from store.clock import instant
from store.home import Home
from store.retention.collection import collect, preview

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "gc",
        description="take away old runs that have ended, and what belongs to nothing",
        example="--older-than 30d --keep 20 --dry-run",
    )
    parser.add_argument(
        "--older-than",
        type=_seconds,
        metavar="AGE",
        help="runs that ended so long ago, as in 90s, 5m, 12h, 30d or 8w (default: of [retention], else 30d)",
    )
    parser.add_argument(
        "--keep", type=_count, metavar="N", help="but never the newest N of them (default: of [retention], else 0)"
    )
    parser.add_argument(
        "--most-gigabytes",
        type=_gigabytes,
        metavar="N",
        help="what workspaces and logs may take together: above that the oldest runs go sooner"
        " (default: of [retention], else no limit)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Take it away, or say what would go."""
    now_s, config = time.time(), Config.load()
    older_than_s = config.retention.older_than_s if args.older_than is None else args.older_than
    keep = config.retention.keep if args.keep is None else args.keep
    most = config.retention.most_gigabytes if args.most_gigabytes is None else args.most_gigabytes
    most_bytes = None if most is None else int(most * GIGABYTE)
    before = instant(max(0, int((now_s - older_than_s) * 1000)))
    home = Home.open(config.home, create=False)
    act = preview if args.dry_run else collect
    done = act(home, before=before, keep=keep, now_unix_s=now_s, most_bytes=most_bytes)
    if args.json:
        print_json(collected_json(done, dry_run=args.dry_run))
    else:
        print_line(collected_text(done, dry_run=args.dry_run))
    return 0


def _seconds(text: str) -> int:
    seconds = age_seconds(text)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age; write it as 90s, 5m, 12h, 30d or 8w")
    return seconds


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs")
    return int(text)


def _gigabytes(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of gigabytes")
    return float(text)
