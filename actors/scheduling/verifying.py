"""A result is there and stored: its evidence is judged, then it is integrated, before the node counts as completed.

The result is durable in the transaction in which it is judged, or before. So a node that is blocked here has done its
work: a retry judges the same result again, and only a person who wants that has it made anew.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from actors.actions import Integrate
from actors.messages import IntegrationEnded
from actors.outcomes import Integrated, Value, storable
from actors.scheduling.endings import complete, fail, finish
from actors.scheduling.state import NodeState
from actors.scheduling.turn import Turn
from store.contracts import Failure
from store.evidence import documents, failure_of, shortfall
from store.lifecycle import Status
from store.policy import FailureCode


def take_result(turn: Turn, node: NodeState, value: Value) -> None:
    """Take what the attempt of a running node gave: complete it, or verify first what its terms ask for.

    Args:
        turn: The turn.
        node: A running node that does not count as active any more.
        value: What it gave.

    """
    if not node.evidence_due and not value.evidence and not node.integrates:
        complete(turn, node, value)
        return
    turn.output(node, value)
    told: dict[str, JsonValue] = {"output_sha256": value.sha256, "evidence": documents(value.evidence)}
    turn.move(node, Status.VERIFYING, data=told, output_sha256=value.sha256, evidence=value.evidence, failure=None)
    verify(turn, node)


def verify_again(turn: Turn, node: NodeState) -> None:
    """Judge the stored result of a blocked node anew."""
    turn.move(node, Status.VERIFYING, failure=None)
    verify(turn, node)


def approve(turn: Turn, node: NodeState) -> None:
    """Go on with a result that a person has just approved."""
    turn.state.approved.add(_result_of(node))
    verify_again(turn, node)


def verify(turn: Turn, node: NodeState) -> None:
    """Judge the evidence of a node whose result is stored."""
    due = node.evidence_due
    found = shortfall(due, node.record.evidence, approved=_result_of(node) in turn.state.approved)
    if found is not None:
        failure = failure_of(found, run_id=turn.state.run_id, node=node.key)
        block(turn, node, failure, {"evidence_wanting": found.document()})
        return
    if node.integrates:
        _integrate(turn, node)
    else:
        _finish(turn, node)


def resume(turn: Turn, node: NodeState, remaining: str | None) -> None:
    """Go on with a result that a dead host was verifying, once nothing of that host's work lives.

    Args:
        turn: The turn.
        node: A node that is verified in the store.
        remaining: What could not be ended, for people.

    """
    if remaining is None:
        verify(turn, node)
        return
    todo = f"end these processes, then: hostler retry {turn.state.run_id} {node.key}"
    message = storable(f"could not be ended: {remaining}", 4000)
    block(turn, node, Failure(code=FailureCode.CONFLICT, message=message, todo=todo), {})


def ended(turn: Turn, message: IntegrationEnded) -> None:
    """Take what an integration has come to."""
    node = turn.state.nodes[message.node]
    if not node.integrating or message.attempt != node.record.attempt:
        return
    node.integrating = False
    turn.state.active -= 1
    answer = message.answer
    if isinstance(answer, Integrated):
        _finish(turn, node, integration={"commit": answer.commit})
        return
    files = f": {', '.join(answer.paths)}" if answer.paths else ""
    code = FailureCode.UNAVAILABLE if answer.reason == "unavailable" else FailureCode.CONFLICT
    failure = Failure(
        code=code,
        message=storable(f"not integrated, {answer.reason}: {answer.message}{files}", 4000),
        todo=storable(answer.todo, 1000),
    )
    block(turn, node, failure, {"integration": {"reason": answer.reason, "paths": list(answer.paths)}})


def _integrate(turn: Turn, node: NodeState) -> None:
    """Have it integrated once its result is durable; who takes nothing up leaves that to a later owner."""
    state, workspace, terms = turn.state, node.planned.workspace, node.planned.terms
    if state.draining or state.jobs == 0 or workspace is None:
        return
    node.integrating = True
    state.active += 1
    turn.after.append(
        Integrate(
            node=node.key,
            attempt=node.record.attempt,
            plan_sha256=node.record.plan_sha256 or "",
            workspace=workspace,
            paths=terms.authority.paths if terms is not None and terms.authority is not None else None,
            begin=not node.record.cancelling,
        )
    )


def _finish(turn: Turn, node: NodeState, **told: JsonValue) -> None:
    due = node.evidence_due
    turn.change(node, evidence=due)
    finish(turn, node, node.record.output_sha256 or "", evidence=documents(due), **told)


def block(turn: Turn, node: NodeState, failure: Failure, told: Mapping[str, JsonValue]) -> None:
    """Let a person decide; where one has decided already that the node is to end, it ends."""
    if node.record.cancelling:
        fail(turn, node, Status.CANCELLED, failure)
        return
    turn.move(node, Status.BLOCKED, data=told, failure=failure)


def _result_of(node: NodeState) -> tuple[str, str, int]:
    """Name the result that a person approves: that of one attempt of one exact plan."""
    return node.key, node.record.plan_sha256 or "", node.record.attempt
