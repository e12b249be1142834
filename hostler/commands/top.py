"""`hostler top`: who holds the machine, who waits, and why."""

import argparse
import json
import os
import select
import sys
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, command_parser
from hostres.claims import describe
from hostres.folders import machine_folder
from hostres.top import Row, Top, snapshot

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

REFRESH_S: Final = 1.0
CLEAR: Final = "\x1b[H\x1b[2J"


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "top", description="show who holds the machine and who waits", example="--once --json"
    )
    parser.add_argument("--once", action="store_true", help="print it once; so it is anyway when not on a terminal")
    add_json(parser, "print one JSON object, once")


def run(args: argparse.Namespace) -> int:
    """Print the machine, on a terminal again and again until Ctrl-C."""
    folder = machine_folder(os.environ)
    if args.json:
        sys.stdout.write(json.dumps(snapshot(folder).to_json(), indent=2) + "\n")
        return 0
    if args.once or not sys.stdout.isatty():
        sys.stdout.write(text(snapshot(folder)))
        return 0
    try:
        while True:
            sys.stdout.write(CLEAR + text(snapshot(folder)))
            sys.stdout.flush()
            select.select([], [], [], REFRESH_S)
    except KeyboardInterrupt:
        return 0


def text(top: Top) -> str:
    """Return the machine as lines for people."""
    rows = [("RESOURCE", "USED", "CAPACITY")]
    rows += [(name, str(top.used.get(name, 0)), str(units)) for name, units in top.capacity.items()]
    lines = [f"{name:20} {used:>10} {units:>10}" for name, used, units in rows]
    lines.append("")
    if not top.tickets:
        lines.append("nothing is admitted and nothing waits")
    for row in top.tickets:
        lines.extend(_ticket(row))
    if top.turnaround_s is not None:
        lines += ["", f"a turn takes {top.turnaround_s:.1f} s on average, from asking to release"]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _ticket(row: Row) -> list[str]:
    name = f" ({row.name})" if row.name else ""
    lines = [f"{row.ticket:>6} {row.state:8} {describe(row.claims)}{name}, since {row.since}, asked by pid {row.pid}"]
    lines += [f"{'':15} held by pid {process.pid}: {process.command}" for process in row.processes]
    lines += [f"{'':15} waits for {why}" for why in row.blocked_by]
    return [_harmless(line) for line in lines]


def _harmless(line: str) -> str:
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
