"""`hostler settle`: say what became of an effect that may have happened."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hostler.asking import Subject
from hostler.commands.amounts import amount, amounts_of
from hostler.commands.answering import add_answer, answer
from hostler.commands.arguments import command_parser
from hostler.commands.output import print_line
from hostler.reading import read_json
from hostler.settlements import settled
from hostler.views.terminal import harmless
from hostres.errors import Code, HostlerError
from store.amounts import Usage
from store.contracts import NodeRecord, RequestKind
from store.lifecycle import Status
from store.reader import Reader

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

OUTCOMES: Final = ("completed", "failed", "retry")
DONE: Final = {
    "completed": "is settled as completed",
    "failed": "is settled as failed",
    "retry": "is settled as not happened and may run again",
}
NOT_ANY_MORE: Final = "is settled as not happened, and cancelled"


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "settle",
        description="say what became of an effect that may have happened",
        example="- charge --completed result.json",
        more=("- charge --retry",),
    )
    add_answer(parser)
    outcome = parser.add_mutually_exclusive_group()
    outcome.add_argument("--completed", metavar="FILE", help="it happened; FILE holds its output as JSON")
    outcome.add_argument("--failed", action="store_true", help="count it as failed")
    parser.add_argument(
        "--spent",
        action="append",
        default=[],
        type=amount(tuple(Usage.model_fields), Usage.model_validate),
        metavar="NAME=AMOUNT",
        help="what it spent of tokens and cost, in place of what is assumed; may be given several times",
    )
    outcome.add_argument(
        "--retry", action="store_true", help="it did not happen; let it run again, unless it was cancelled"
    )


def run(args: argparse.Namespace) -> int:
    """Check and post the settlement; on a terminal, ask for it if it was not given."""
    data = _outcome(args)
    if args.spent:
        data["spent"] = amounts_of(args.spent)

    def details(_reader: Reader, subject: Subject, node: NodeRecord) -> dict[str, Any]:
        if "value" not in data or node.status is not Status.AMBIGUOUS or subject.run.imported:
            return data  # or it is refused for what it is
        found = settled(subject, node.key, data["value"])
        if found.unchecked is not None:
            line = f"what {node.key} is said to have given is kept unchecked, without {found.unchecked}"
            sys.stderr.write(f"hostler: warning: {harmless(line)}\n")
        return data | {"value": found.value}

    def done(node: NodeRecord) -> str:
        return NOT_ANY_MORE if node.cancelling and data["outcome"] == "retry" else DONE[data["outcome"]]

    return answer(args, RequestKind.SETTLE, done=done, details=details)


def _outcome(args: argparse.Namespace) -> dict[str, Any]:
    if args.completed is not None:
        return {"outcome": "completed", "value": _value(args.completed)}
    if args.failed or args.retry:
        return {"outcome": "failed" if args.failed else "retry"}
    if sys.stdin.isatty() and sys.stdout.isatty():
        said = _asked("what became of it? [completed, failed, retry]: ").lower()
        if said == "completed":
            return {"outcome": said, "value": _value(_asked("file with its output as JSON: "))}
        if said in OUTCOMES:
            return {"outcome": said}
    raise HostlerError(
        Code.INVALID_DATA,
        f"the settlement of {args.node} says nothing of what became of it",
        "give --completed FILE, --failed or --retry",
    )


def _asked(question: str) -> str:
    try:
        return input(question).strip()
    except EOFError:
        print_line("")
        what, todo = (
            "nothing was settled; it still rests",
            "type an answer, or give --completed FILE, --failed or --retry",
        )
        raise HostlerError(Code.INVALID_DATA, what, todo) from None


def _value(path: str) -> Any:
    return read_json(Path(path))
