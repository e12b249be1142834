"""`hostler correct`: give a failed or blocked node another input."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, JsonValue

from actors.operations import Compute, Operation
from hostler.asking import Subject
from hostler.checks import check_input
from hostler.commands.answering import add_answer, answer
from hostler.commands.arguments import command_parser
from hostler.reading import read_json
from hostler.refusals import about
from hostler.run_code import find_code
from hostler.templates import located_references
from hostres.errors import Code, HostlerError
from hostres.masking import own_mask
from store.contracts import NodeRecord, RequestKind
from store.envelopes import envelope_of
from store.lifecycle import Status
from store.plans import ComputeExecutor, OperationExecutor, PlannedNode
from store.reader import Reader
from store.references import resolve
from store.revisions import check_revision, completed, revised, revisions
from store.values import canonical

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
        help="its new input as JSON, which may refer to outputs as the old one may; of a command argv, env, stdin or"
        " value, of an agent objective, argv, env or value, and what is left out stays as it is",
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
    nodes = {node.key: node for node in subject.plan.nodes}
    last = revisions(reader.grants(subject.run_id)).get(key)
    planned = revised(nodes[key], last) if last is not None else nodes[key]
    value = completed(planned, given)
    outputs = {
        name: reader.output(subject.run_id, name)
        for name in planned.dependencies
        if subject.nodes[name].status is Status.COMPLETED
    }
    named = f"the new input of node {key}"
    try:
        check_revision(
            planned, value, folder=subject.run.record.folder, envelope=envelope_of(key, nodes), outputs=outputs
        )
    except HostlerError as error:
        raise about(named, error) from error
    model = _model_of(reader, subject, planned)
    if model is not None:
        found = list(located_references(value))
        known = {reference.node for _, reference in found} <= outputs.keys()
        check_input(model, resolve(value, outputs) if known else value, [] if known else found, named)
    return value


def _model_of(reader: Reader, subject: Subject, planned: PlannedNode) -> type[BaseModel] | None:
    """Return the model of the input of a node's code; None if it has none, or its code is lacking here."""
    if not isinstance(planned.executor, OperationExecutor | ComputeExecutor):
        return None
    found = find_code(subject.run.record, subject.plan, reader.bundle, reader.home.bundles, nodes={planned.key})
    codes: list[Operation | Compute] = [*found.operations.values(), *found.computes.values()]
    return next((code.input_type for code in codes), None)
