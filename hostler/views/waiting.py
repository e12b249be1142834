"""What of a run waits for a person, and the exact command that moves it."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hostler.views.naming import executor_name
from store.contracts import Failure, NodeRecord
from store.evidence import awaits_approval, is_judged_again
from store.lazy_dataclass import dataclass
from store.lifecycle import RESTING, Status
from store.plans import GraphPlan, PlannedNode
from store.policy import FailureCode

_IN_DOUBT: Final = "its effect may have happened (--completed) or not (--failed; --retry runs it again)"
_CANCELLED: Final = (
    "its effect may have happened (--completed) or not (--failed; --retry); it was cancelled, and will not run again"
)
_BROKEN_OFF: Final = frozenset({FailureCode.AMBIGUOUS, FailureCode.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A resting node.

    Attributes:
        reason: Its status.
        message: What it waits for, one line.
        plan_sha256: Its exact plan, where it has one.
        command: What to type.
        otherwise: What else could be typed instead.
        approvable: Whether a person's approval is all that it waits for.

    """

    node: str
    reason: Status
    message: str
    plan_sha256: str | None
    command: str
    otherwise: tuple[str, ...] = ()
    approvable: bool = False

    def typed(self, indent: str) -> list[str]:
        """Return the commands as lines that begin with *indent*."""
        return typed([self.command, *self.otherwise], indent)

    def to_json(self, *, imported: bool = False) -> dict[str, Any]:
        """Return it in the shape of `show --json`; of an imported run there is nothing to type."""
        shape: dict[str, Any] = {"node": self.node, "reason": self.reason.value, "message": self.message}
        if self.plan_sha256 is not None:
            shape["plan_sha256"] = self.plan_sha256
        if imported:
            return shape
        shape["command"] = self.command
        if self.otherwise:
            shape["otherwise"] = list(self.otherwise)
        return shape


def typed(commands: Sequence[str], indent: str) -> list[str]:
    """Return commands of which one is to be typed as lines that begin with *indent*."""
    return [f"{indent}{'or: ' if number else ''}{command}" for number, command in enumerate(commands)]


def remedy(failure: Failure, run_id: str, key: str) -> str:
    """Return the end of a sentence on a failure: what to do. Whoever wrote it did not know the name of its node."""
    return f"; {failure.todo}".replace("RUN NODE", f"{run_id} {key}") if failure.todo else ""


def waiting_on(run_id: str, plan: GraphPlan, nodes: Iterable[NodeRecord]) -> list[Waiting]:
    """Return every resting node of a run, in the order of its plan."""
    planned = {node.key: node for node in plan.nodes}
    return [_waiting(run_id, planned[node.key], node) for node in nodes if node.status in RESTING]


def _ended(node: NodeRecord) -> str | None:
    """Return how an attempt in doubt ended by itself, as with an exit code; None if it was interrupted."""
    failure = node.failure
    return None if failure is None or failure.code in _BROKEN_OFF else failure.message


def _waiting(run_id: str, planned: PlannedNode, node: NodeRecord) -> Waiting:
    otherwise: tuple[str, ...] = ()
    match node.status:
        case Status.APPROVAL_REQUIRED if planned.executor.kind == "gate":
            message = f"a gate ({planned.executor.gate}); only a person opens it"
            command = f"hostler approve {run_id} {node.key} --plan {node.frozen_sha256}"
        case Status.APPROVAL_REQUIRED if node.plan_sha256 is None:
            looked_at = ", ".join(planned.policy.preparation)
            message = f"{executor_name(planned.executor)} wants to look at {looked_at} to plan what it will do"
            command = f"hostler approve {run_id} {node.key} --plan {node.frozen_sha256}"
        case Status.APPROVAL_REQUIRED:
            message = f"{executor_name(planned.executor)} wants to run; its effect is {planned.policy.effect}"
            command = f"hostler approve {run_id} {node.key} --plan {node.frozen_sha256}"
        case Status.AMBIGUOUS:
            message = f"{_ended(node) or 'it was interrupted'}; {_CANCELLED if node.cancelling else _IN_DOUBT}"
            command, *others = (
                f"hostler settle {run_id} {node.key} {how}" for how in ("--failed", "--retry", "--completed FILE")
            )
            otherwise = tuple(others)
        case Status.AMBIGUOUS_CODE:
            message = f"{_ended(node) or 'trusted code was interrupted'}; it may or may not have run to its end"
            command = f"hostler replay {run_id} {node.key}"
            otherwise = (f"hostler cancel {run_id} --node {node.key}",)
        case _ if awaits_approval(node):
            message = f"its result is there; {node.failure.message if node.failure else ''}"
            command = f"hostler approve {run_id} {node.key} --plan {node.frozen_sha256} --attempt {node.attempt}"
            otherwise = (f"{command} --deny",)
        case _ if is_judged_again(node) and node.failure is not None and node.failure.code is FailureCode.INVALID_DATA:
            message = f"its result is there; {node.failure.message}"
            command = f"hostler retry {run_id} {node.key} --anew"
        case _:
            message = "it needs an operator"
            if node.failure is not None:
                message = f"{node.failure.message}{remedy(node.failure, run_id, node.key)}"
            command = f"hostler retry {run_id} {node.key}"
            otherwise = (f"hostler correct {run_id} {node.key} --input FILE",)
    return Waiting(
        node=node.key,
        reason=node.status,
        message=message,
        plan_sha256=node.frozen_sha256,
        command=command,
        otherwise=otherwise,
        approvable=node.status is Status.APPROVAL_REQUIRED or awaits_approval(node),
    )
