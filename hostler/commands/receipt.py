"""`hostler receipt`: leave that a person gives beforehand, for one principal to have one thing done once."""

import argparse
import re
import secrets
import shlex
from typing import TYPE_CHECKING, Final

from hostler.asking import Subject, ask
from hostler.commands.arguments import add_json, add_reason, add_run, command_parser
from hostler.commands.endings import RESTS
from hostler.commands.output import print_json, print_line
from hostler.commands.posting import have_it_answered, look_at
from hostler.commands.teletype import needed_terminal
from hostler.config import Config
from hostler.stored_runs import reading
from hostler.views.approval import node_plan_text
from hostler.views.receipts import receipt_json, receipts_text
from hostler.views.terminal import harmless
from store.clock import SystemClock
from store.contracts import NodeRecord, RequestKind
from store.home import Home
from store.reader import Reader
from store.receipts import FIELD, USES

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONGEST_S: Final = 30 * 86_400


def add(subparsers: "Subparsers") -> None:
    """Add the command and those below it."""
    parser = command_parser(
        subparsers,
        "receipt",
        description="let somebody else have one thing done later, see what was given, take it back",
        example="create - upload --for agent:night --plan 3f2a…",
    )
    below = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = command_parser(
        below,
        "create",
        under="receipt",
        description="let somebody approve, retry or replay a node once, within a time",
        example="- upload --for agent:night --plan 3f2a… --expires 8h",
    )
    add_run(create)
    create.add_argument("node", metavar="NODE", help="key of the node")
    create.add_argument(
        "--for", dest="subject", required=True, metavar="PRINCIPAL", help="who may use it, as agent:NAME"
    )
    create.add_argument("--plan", metavar="HASH", help="exactly this node plan, without asking")
    create.add_argument(
        "--to",
        dest="use",
        choices=sorted(use.value for use in USES.values()),
        default="approve",
        help="what for (default: approve)",
    )
    create.add_argument(
        "--expires", type=_seconds, default=3600, metavar="TIME", help="until then, as 90s, 5m, 8h, 2d (default: 1h)"
    )
    create.add_argument("--id", metavar="ID", help="its name in the run (default: a random one)")
    add_reason(create)
    add_json(create)
    listing = command_parser(
        below, "list", under="receipt", description="list the receipts of a run and what became of them", example="-"
    )
    add_run(listing)
    add_json(listing)
    revoke = command_parser(
        below, "revoke", under="receipt", description="take a receipt back that was not used", example="- night-1"
    )
    add_run(revoke)
    revoke.add_argument("id", metavar="ID", help="its name")
    add_reason(revoke)
    add_json(revoke)


def run(args: argparse.Namespace) -> int:
    """Create, list or revoke."""
    act = {"create": _create, "list": _list, "revoke": _revoke}[args.action]
    with reading(to_write=args.action != "list") as (home, reader):
        return act(home, reader, look_at(reader, args.run), args)


def _create(home: Home, reader: Reader, subject: Subject, args: argparse.Namespace) -> int:
    node = subject.node(args.node)
    plan_sha256 = node.frozen_sha256 if args.plan is None else args.plan
    name = args.id or f"receipt-{secrets.token_hex(8)}"
    on_terminal = Config.load().on_terminal
    otherwise = "have a person do it who has one" if on_terminal else "name the exact plan with --plan"
    if (args.plan is None or on_terminal) and not _confirmed(reader, node, args, otherwise):
        print_line("nothing was given")
        return RESTS
    asked = ask(
        home,
        subject,
        RequestKind.RECEIPT,
        node,
        plan_sha256=plan_sha256,
        reason=args.reason,
        data={FIELD: name, "subject": args.subject, "action": args.use, "lasts_ms": args.expires * 1000},
    )
    heard = have_it_answered(reader, subject, [asked]).check()
    if args.json:
        shape = {"run_id": subject.run_id, "node": node.key, "receipt": name, "plan_sha256": plan_sha256}
        print_json(shape | {"answered": not heard.unanswered})
    else:
        once = f"{args.subject} may {args.use} {node.key} once"
        print_line(harmless(f"that {once} is asked for; {heard.late}; then:" if heard.unanswered else f"{once}:"))
        print_line(harmless(f"  hostler {args.use} {subject.run_id} {node.key} --receipt {shlex.quote(name)}"))
    return 0


def _confirmed(reader: Reader, node: NodeRecord, args: argparse.Namespace, otherwise: str) -> bool:
    """Show what the leave is for, and ask on the terminal."""
    with needed_terminal(otherwise) as terminal:
        if node.frozen_sha256 is not None:
            terminal.show(node_plan_text(reader.node_plan(node.frozen_sha256), node.frozen_sha256))
        return terminal.ask(f"let {args.subject} {args.use} it once? [y/N] ") in {"y", "yes"}


def _list(_home: Home, reader: Reader, subject: Subject, args: argparse.Namespace) -> int:
    receipts, at = reader.receipts(subject.run_id), SystemClock().now().at
    if args.json:
        print_json({"run_id": subject.run_id, "receipts": [receipt_json(receipt, at) for receipt in receipts]})
    else:
        print_line(receipts_text(receipts, at) or f"{subject.run_id} has no receipts")
    return 0


def _revoke(home: Home, reader: Reader, subject: Subject, args: argparse.Namespace) -> int:
    asked = ask(home, subject, RequestKind.REVOKE, None, reason=args.reason, data={FIELD: args.id})
    heard = have_it_answered(reader, subject, [asked]).check()
    if args.json:
        shape = {"run_id": subject.run_id, "receipt": args.id, "state": "revoked", "answered": not heard.unanswered}
        print_json(shape)
    elif heard.unanswered:
        print_line(f"that receipt {args.id} is taken back is asked for; {heard.late}")
    else:
        print_line(f"receipt {args.id} is taken back")
    return 0


def _seconds(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", text)
    if match is None or not 0 < int(match[1]) * UNITS[match[2]] <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time up to 30 days; write it as 90s, 5m, 8h or 2d")
    return int(match[1]) * UNITS[match[2]]
