"""`hostler work`: what a worker outside does, whatever it is written in."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, add_reason, command_parser
from hostler.commands.output import print_json, print_line
from hostler.reading import MAX_BYTES, read_bounded
from hostler.stored_runs import reading
from hostler.work_client import LEASE_S, Worker, check_lease
from hostres.errors import Code, HostlerError

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

UNITS: Final = {"s": 1, "m": 60, "h": 3600}
NOBODY: Final = "-"
"""Who beats, submits and gives back is known by the key of the work."""


def add(subparsers: "Subparsers") -> None:
    """Add the command and those below it."""
    parser = command_parser(
        subparsers,
        "work",
        description="take work that waits for workers, and bring its result",
        example="next --worker ann",
    )
    below = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    take = command_parser(
        below, "next", under="work", description="take the next work and print it as JSON", example="--worker ann"
    )
    take.add_argument("--worker", required=True, metavar="NAME", help="who takes it; asking again gives the same work")
    take.add_argument("--run", metavar="RUN", help="only of that run: any unique prefix of its id, or -")
    _add_lease(take)
    add_json(take, "print it in one line")
    extend = command_parser(
        below, "beat", under="work", description="say that the work goes on", example="run_…:review:1"
    )
    settle = command_parser(
        below,
        "submit",
        under="work",
        description="bring the result of the work",
        example="run_…:review:1 --result result.json",
    )
    give = command_parser(
        below, "give-back", under="work", description="let somebody else have the work", example="run_…:review:1"
    )
    for each in (extend, settle, give):
        each.add_argument("key", metavar="KEY", help="the idempotency_key of the work")
        add_json(each)
    _add_lease(extend)
    settle.add_argument("--result", metavar="FILE", help="a file with the result as JSON (default: standard input)")
    add_reason(give)


def run(args: argparse.Namespace) -> int:
    """Do what was asked."""
    match args.action:
        case "next":
            return _next(args)
        case "beat":
            expires_at = Worker(NOBODY, lease_s=_lease(args.lease)).beat(args.key)
            _say(args, {"idempotency_key": args.key, "expires_at": expires_at}, f"yours until {expires_at}")
        case "submit":
            result = read_bounded(Path(args.result)) if args.result is not None else _standard_input()
            status = Worker(NOBODY).submit(args.key, result)
            _say(args, {"idempotency_key": args.key, "settled": True}, f"settled; its node is {status}")
        case _:
            Worker(NOBODY).give_back(args.key, reason=args.reason)
            _say(args, {"idempotency_key": args.key, "given_back": True}, "given back")
    return 0


def _next(args: argparse.Namespace) -> int:
    lease_s = _lease(args.lease)
    run_id = None
    if args.run is not None:
        with reading(to_write=True) as (_, reader):
            run_id = reader.find(args.run)
    work = Worker(args.worker, run=run_id, lease_s=lease_s).next()
    if work is None:
        of = "" if run_id is None else f" in run {run_id}"
        raise HostlerError(Code.NOT_FOUND, f"no work is ready for {args.worker}{of}", "ask again later")
    print_json(work.to_json(), compact=args.json)
    return 0


def _add_lease(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lease",
        default=f"{LEASE_S:g}s",
        metavar="TIME",
        help="how long it is yours without a beat, as in 30s, 5m or 1h (default: %(default)s)",
    )


def _lease(text: str) -> float:
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    if not number.isdecimal() or len(number) > 9:
        raise HostlerError(Code.INVALID_DATA, f"--lease {text} is not a time", "write it as 30s, 5m or 1h")
    return check_lease(int(number) * UNITS[unit])


def _standard_input() -> bytes:
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise HostlerError(Code.INVALID_DATA, f"the result has more than {MAX_BYTES:,} bytes", "put it in files")
    return data


def _say(args: argparse.Namespace, shape: dict[str, object], text: str) -> None:
    if args.json:
        print_json(shape)
    else:
        print_line(text)
