"""`python -m scripts.benchmarks AREA [PART] [--json] [--quick]`: measure it, print what was found."""

import argparse
import importlib
import json
import signal
import sys
from typing import Final, NoReturn

from scripts.benchmarks.effort import EFFORTS
from scripts.benchmarks.results import Row, document, table, verdict
from scripts.benchmarks.surroundings import machine

AREAS: Final = ("admission", "exec", "scheduler", "store")
EXIT_USAGE: Final = 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"bench: {message}\n")


def main() -> int:
    """Measure; 0 if that was possible, whatever the figures say."""
    parser = _Parser(prog="scripts/bench", description="Measure an area; ratios within one run.", allow_abbrev=False)
    parser.add_argument("area", metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("part", metavar="PART", nargs="?", help="only what one module of it measures, such as fresh")
    parser.add_argument("--json", action="store_true", help="print one object")
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", dest="effort", action="store_const", const="quick", help="one round, for a look")
    effort.add_argument("--smoke", dest="effort", action="store_const", const="smoke", help="only see that it works")
    parser.set_defaults(effort="full")
    args = parser.parse_args()
    if args.area not in AREAS:
        parser.error(f"there is no area {args.area}; there are {', '.join(AREAS)}")
    parts = {
        part.__module__.rpartition(".")[2]: part
        for part in importlib.import_module(f"scripts.benchmarks.{args.area}").PARTS
    }
    if args.part is not None and args.part not in parts:
        parser.error(f"{args.area} has no part {args.part}; it has {', '.join(parts)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    described = {**machine(), "effort": args.effort}
    rows: list[Row] = []
    for name, part in parts.items():
        if args.part not in (None, name):
            continue
        if sys.stderr.isatty():
            sys.stderr.write(f"bench: {name}\n")
        rows += part(EFFORTS[args.effort])
    if args.json:
        print(json.dumps(document(args.area, described, rows), ensure_ascii=False, indent=2))
    else:
        print(*(f"{name}: {value}" for name, value in described.items()), "", *table(rows), "", sep="\n")
        print(f"bench: {args.area}: {verdict(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
