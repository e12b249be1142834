"""`hostler correct`: give a failed or blocked node another input."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from hostler.asking import Subject
from hostler.command_nodes import check_variable, check_word
from hostler.commands.answering import add_answer, answer
from hostler.commands.arguments import command_parser
from hostler.reading import read_json
from hostres.errors import Code, HostlerError
from hostres.masking import own_mask
from store.contracts import NodeRecord, RequestKind
from store.plans import CommandExecutor, PlannedNode
from store.reader import Reader
from store.revisions import misfit, revised, revisions
from store.values import canonical
from store.words import secret_named

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "correct",
        description="let a failed or blocked node run with another input",
        example="- transcode --input input.json",
    )
    add_answer(parser)
    parser.add_argument(
        "--input",
        metavar="FILE",
        required=True,
        help="its new input as JSON, which may refer to outputs as the old one may; of a command, argv, env, stdin or"
        " value, and what is left out stays as it is",
    )


def run(args: argparse.Namespace) -> int:
    """Check the input and post the request."""
    given = read_json(Path(args.input))
    if own_mask().finds(canonical(given)):
        what = f"the new input of node {args.node} holds a secret, which would be stored and shown"
        todo = 'give a command the name of a variable instead, as {"$secret": NAME} in its env, or let the code read it'
        raise HostlerError(Code.INVALID_DATA, what, todo)

    def details(reader: Reader, subject: Subject, node: NodeRecord) -> dict[str, Any]:
        return {"input": _input(reader, subject, node.key, given), "revision": node.revision}

    return answer(args, RequestKind.CORRECT, done=lambda _: "may run with its new input", details=details)


def _input(reader: Reader, subject: Subject, key: str, given: JsonValue) -> JsonValue:
    """Return the whole new input of a node.

    Raises:
        HostlerError: invalid-data, if it cannot be that.

    """
    planned = next(node for node in subject.plan.nodes if node.key == key)
    last = revisions(reader.grants(subject.run_id)).get(key)
    value = _completed(revised(planned, last) if last is not None else planned, given)
    why = misfit(planned, value)
    if why is not None:
        raise HostlerError(
            Code.INVALID_DATA,
            f"the new input of node {key}: {why}",
            f"see `hostler show {subject.run_id} --json` for what it depends on",
        )
    return value


def _completed(planned: PlannedNode, given: JsonValue) -> JsonValue:
    """Return *given* with those words of a command that it leaves as they are."""
    if not isinstance(planned.executor, CommandExecutor) or not isinstance(given, dict):
        return given
    subject = f"node {planned.key}"
    argv, env, stdin = given.get("argv", []), given.get("env") or {}, given.get("stdin")
    for index, word in enumerate(argv if isinstance(argv, list) else []):
        check_word(word, f"{subject}: argv[{index}]")
    if not isinstance(env, dict):
        raise HostlerError(Code.INVALID_DATA, f"{subject}: env is no object", "give names and their values")
    for name, word in env.items():
        check_variable(name, subject)
        secret = secret_named(word)
        if secret is None:
            check_word(word, f"{subject}: env.{name}")
        else:
            check_variable(secret, f"{subject}: env.{name}")
    if stdin is not None:
        check_word(stdin, f"{subject}: stdin", text_only=True)
    return {**(planned.input if isinstance(planned.input, dict) else {}), **given}
