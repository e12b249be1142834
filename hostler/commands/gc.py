"""`hostler gc`: take away old runs and what belongs to nothing."""

import argparse
import re
import time
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, command_parser
from hostler.commands.output import print_json, print_line
from hostler.config import Config
from hostler.views.collection import collected_json, collected_text
from store.clock import instant
from store.home import Home
from store.retention.collection import collect, preview

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
DEFAULT: Final = "30d"
LONGEST_S: Final = 100 * 365 * 86_400


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
        default=_seconds(DEFAULT),
        metavar="AGE",
        help=f"runs that ended so long ago, as in 90s, 5m, 12h, 30d or 8w (default: {DEFAULT})",
    )
    parser.add_argument(
        "--keep", type=_count, default=0, metavar="N", help="but never the newest N of them (default: 0)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Take it away, or say what would go."""
    now_s = time.time()
    before = instant(max(0, int((now_s - args.older_than) * 1000)))
    home = Home.open(Config.load().home, create=False)
    act = preview if args.dry_run else collect
    done = act(home, before=before, keep=args.keep, now_unix_s=now_s)
    if args.json:
        print_json(collected_json(done, dry_run=args.dry_run))
    else:
        print_line(collected_text(done, dry_run=args.dry_run))
    return 0


def _seconds(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,9})([smhdw])", text)
    if match is None or int(match[1]) * UNITS[match[2]] > LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age; write it as 90s, 5m, 12h, 30d or 8w")
    return int(match[1]) * UNITS[match[2]]


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs")
    return int(text)
