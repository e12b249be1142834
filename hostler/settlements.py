"""The result that a person says a node has given: it has to be what the node itself could have given."""

from pydantic import JsonValue, ValidationError

from actors.calling import dumped
from actors.failures import too_large
from actors.operations import Operation
from hostler.agent_nodes import AGENT_OUTPUT
from hostler.asking import Subject
from hostler.command_nodes import command_output
from hostler.refusals import about, first_problem, invalid
from hostler.run_code import find_code
from hostler.schemas import Schema
from hostres.errors import HostlerError, describe
from store.lazy_dataclass import dataclass
from store.plans import AgentExecutor, CommandExecutor, OperationExecutor, PlannedNode
from store.values import canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A result that fits.

    Attributes:
        value: As it is stored: what an operation's model makes of it, as where the operation gives it.
        unchecked: Why nobody here can say whether it fits, one line; None where it was found to.

    """

    value: JsonValue
    unchecked: str | None = None


def settled(subject: Subject, key: str, value: JsonValue) -> Settled:
    """Return the result that a node is settled with; the code of an operation is loaded, which executes it.

    Args:
        subject: The run.
        key: The node.
        value: What the person says that it has given.

    Raises:
        HostlerError: invalid-data: the node could not have given that; or the stored code is damaged.

    """
    planned = next(node for node in subject.plan.nodes if node.key == key)
    operation, unchecked = _operation(subject, planned)
    try:
        match planned.executor:
            case OperationExecutor() if operation is not None:
                value = _given(operation, value)
            case CommandExecutor(outputs=files):
                _check(command_output(files), value)
            case AgentExecutor():
                _check(AGENT_OUTPUT, value)
        _check_size(planned, value)
    except HostlerError as error:
        raise about(f"node {key} cannot have given that", error) from error
    return Settled(value=value, unchecked=unchecked)


def _operation(subject: Subject, planned: PlannedNode) -> tuple[Operation | None, str | None]:
    """Return the operation of a node that has one, and why it is not to be had here if it is not."""
    if not isinstance(planned.executor, OperationExecutor):
        return None, None
    reader, name = subject.reader, (planned.executor.operation, planned.executor.version)
    code = find_code(subject.run.record, subject.plan, reader.bundle, reader.home.bundles, nodes={planned.key})
    return code.operations.get(name), code.lacking.get(planned.key)


def _given(operation: Operation, value: JsonValue) -> JsonValue:
    todo = f"write what {operation.kind}@{operation.version} gives, or settle it with --failed or --retry"
    try:
        return dumped(operation.output_type.model_validate_json(canonical(value)), operation.output_type)
    except ValidationError as error:
        raise invalid(first_problem(error), todo) from error
    except HostlerError:
        raise
    except Exception as error:  # a validator of the author's may raise anything
        raise invalid(describe(error), todo) from error


def _check(schema: Schema, value: JsonValue) -> None:
    from hostler.json_schemas import checker  # noqa: PLC0415 (slow, and operations do without it)

    checker(schema)(value)


def _check_size(planned: PlannedNode, value: JsonValue) -> None:
    size, limit = len(canonical(value)), planned.policy.max_output_bytes
    if size > limit:
        fault = too_large(size, limit)
        raise invalid(fault.message, fault.todo)
