"""`hostler budget`: show what a run may spend, or let it spend more, also from another process."""

import argparse
from typing import TYPE_CHECKING

from hostler.asking import Subject, ask
from hostler.commands.amounts import amount, amounts_of
from hostler.commands.arguments import add_json, add_reason, add_run, command_parser
from hostler.commands.output import print_json, print_line
from hostler.commands.posting import have_it_answered, look_at, next_step
from hostler.stored_runs import reading
from hostler.views.budgets import amounts_text, books_of, budget_json, budget_lines, usage_json
from store.amounts import COUNTERS
from store.budgets import read_amounts
from store.contracts import RequestKind

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "budget",
        description="show what a run may spend, or let it spend more",
        example="- --add cost=5 --add retries=1",
        more=("-",),
    )
    add_run(parser)
    parser.add_argument("node", metavar="NODE", nargs="?", help="the node whose own budget is meant")
    parser.add_argument(
        "--add",
        action="append",
        default=[],
        type=amount(COUNTERS, read_amounts),
        metavar="NAME=AMOUNT",
        help=f"how much more of {', '.join(COUNTERS)}; may be given several times",
    )
    add_reason(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the budget, or post the request and see to it that somebody acts on it."""
    wanted = amounts_of(args.add)
    with reading(to_write=bool(wanted)) as (home, reader):
        subject = look_at(reader, args.run)
        node = None if args.node is None else subject.node(args.node)
        if not wanted:
            _show(subject, args.node, json=args.json)
            return 0
        request_id = ask(home, subject, RequestKind.BUDGET, node, reason=args.reason, data={"add": wanted})
        heard = have_it_answered(reader, subject, [request_id]).check()
        subject = look_at(reader, subject.run_id)
    if args.json:
        _show(subject, args.node, json=True, answered=not heard.unanswered)
    else:
        more = f"{amounts_text(read_amounts(wanted))} more for {'the run' if args.node is None else args.node}"
        print_line(f"{more} asked for; {heard.late}" if heard.unanswered else f"{more}\n{next_step(subject)}")
    return 0


def _show(subject: Subject, node: str | None, *, json: bool, answered: bool | None = None) -> None:
    books = books_of(subject.run, subject.plan)
    if json:
        ledger = books.ledgers.get(node)
        spent = books.spent if node is None else None if ledger is None else ledger.spent
        print_json(
            {
                "run_id": subject.run_id,
                "node": node,
                "status": subject.run.status.value,
                "budget": budget_json(books, node),
                "usage": usage_json(spent) if spent is not None else {},
                **({} if answered is None else {"answered": answered}),
            }
        )
        return
    lines = budget_lines(subject.run, subject.plan)
    if node is not None:
        lines = [line for line in lines if line.startswith((f"budget of {node}:", f"{node}:"))]
    print_line("\n".join(lines) or f"{node or subject.run_id} has no budget and has spent nothing")
