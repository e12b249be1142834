"""What an agent is asked: one JSON object, the same for a program on its standard input and for an external worker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from store.amounts import Budget
from store.lazy_dataclass import dataclass
from store.terms import Envelope, Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTask:
    """On what terms an attempt of an agent works.

    Attributes:
        evidence: What it must bring.
        budget: What it may still spend; None is no limit.
        authority: What it may do at most; None is no limit.

    """

    evidence: tuple[Evidence, ...] = ()
    budget: Budget | None = None
    authority: Envelope | None = None


def agent_request(
    task: AgentTask,
    given: Mapping[str, Any],
    *,
    run_id: str,
    node: str,
    attempt: int,
    workspace: Path,
) -> dict[str, JsonValue]:
    """Return the request.

    Args:
        task: The terms of the attempt.
        given: The node's resolved input: {objective, value} and what its program needs besides.
        run_id: The run.
        node: The node's key.
        attempt: The number of the attempt.
        workspace: Where the agent may write.

    """
    return {
        "objective": given["objective"],
        "input": given.get("value"),
        "evidence": [each.model_dump(mode="json") for each in task.evidence],
        "budget": None if task.budget is None else task.budget.model_dump(mode="json", exclude_none=True),
        "authority": None if task.authority is None else task.authority.model_dump(mode="json"),
        "idempotency_key": f"{run_id}:{node}:{attempt}",
        "run_id": run_id,
        "node": node,
        "attempt": attempt,
        "workspace": str(workspace),
    }
