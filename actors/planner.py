"""A planner's question and its answer, on a helper thread: whatever the planner does, the answer is a value."""

import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, JsonValue

from actors.control import Control, OperationAborted
from actors.failures import failed_by, fault_of
from actors.operations import ExactPlan, Operation, Preparation
from actors.outcomes import Exact, Failed, Prepared
from store.lazy_dataclass import dataclass
from store.plans import NodePlan
from store.values import canonical


class Planning:
    """What a planner gets as `ctx`: it may look, and it is told when nobody waits for it any more.

    Attributes:
        run_id: The run.
        node: The node's key.
        folder: The folder where the run was created.

    """

    def __init__(self, *, run_id: str, node: str, folder: Path, control: Control) -> None:
        self.run_id = run_id
        self.node = node
        self.folder = folder
        self._control = control

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._control.reason is not None

    def check_cancelled(self) -> None:
        """Leave by `OperationAborted` if nobody waits for the answer any more."""
        self._control.check()

    def path(self, text: str | os.PathLike[str]) -> Path:
        """Return *text* as an absolute path, resolved against the run's folder."""
        return self.folder / text


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a planner is asked.

    Attributes:
        input: What the graph and the dependencies give the node.
        preparation: What the exact plan is worked out from; None asks for that preparation.

    """

    operation: Operation
    input: JsonValue
    preparation: NodePlan | None


def answer(question: Question, planning: Planning) -> Prepared | Exact | Failed:
    """Ask the operation's planner.

    Args:
        question: What is asked.
        planning: What the planner gets as `ctx`.

    Returns:
        Its answer as plain values, or why there is none.

    """
    operation = question.operation
    try:
        given = operation.input_type.model_validate_json(canonical(question.input))
        if question.preparation is None:
            return _prepared(_call(operation.prepare, planning, given), operation)
        return _exact(_call(operation.plan, planning, given, question.preparation.descriptors), operation)
    except (Exception, OperationAborted, SystemExit) as error:  # noqa: BLE001 - a planner may raise anything
        return failed_by(fault_of(error), dispatched=False)


def still_runs(operation: Operation, value: JsonValue, planning: Planning) -> bool | None:
    """Ask the operation's probe whether what a silent attempt waits for is still at work.

    Args:
        operation: It brings a probe.
        value: The exact input of the attempt.
        planning: What the probe gets as `ctx`.

    Returns:
        Its answer; None if it gives none, which says neither.

    """
    try:
        given = operation.input_type.model_validate_json(canonical(value))
        said = _call(operation.probe, planning, given)
    except BaseException:  # noqa: BLE001 - a probe may raise anything
        return None
    return said if isinstance(said, bool) else None


def _call(port: Any, *arguments: Any) -> Any:
    if port is None:
        raise TypeError("this host's operation has no such port")
    return port(*arguments)


def _prepared(result: Any, operation: Operation) -> Prepared:
    if not isinstance(result, Preparation):
        raise TypeError(f"prepare of {operation.kind} gave {type(result).__name__}, not a Preparation")
    canonical(result.descriptors)
    return Prepared(
        descriptors=result.descriptors, max_input_bytes=result.max_input_bytes, max_seconds=result.max_seconds
    )


def _exact(result: Any, operation: Operation) -> Exact:
    if not isinstance(result, ExactPlan) or not isinstance(result.input, BaseModel):
        raise TypeError(
            f"plan of {operation.kind} gave {type(result).__name__}, not an ExactPlan with a model as input"
        )
    exact = operation.input_type.model_validate(result.input)
    return Exact(input=exact.model_dump(mode="json"), keys=tuple(result.keys))
