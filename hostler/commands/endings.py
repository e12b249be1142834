"""How a run ended, or where it stands, in words and as an exit code."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from hostler.views.budgets import waits
from hostler.views.deferred import deferred_lines
from hostler.views.show import counts_text, failure_lines, may_be_retried, outputs_lines, owner_lines, seconds_between
from hostler.views.terminal import duration, harmless
from store.contracts import Event, NodeRecord
from store.lifecycle import RUN_FINAL, RUN_RESTING, RunStatus, Status
from store.plans import GraphPlan
from store.run_view import RunView

NO_DEFERRALS: Final[Mapping[str, Event]] = MappingProxyType({})

COMPLETED: Final = 0
FAILED: Final = 1
RESTS: Final = 3
CANCELLED: Final = 130

FAILED_NODES: Final = frozenset({Status.FAILED, Status.INCOMPATIBLE})

EXITS: Final[Mapping[RunStatus, int]] = MappingProxyType(
    {
        RunStatus.COMPLETED: COMPLETED,
        RunStatus.FAILED: FAILED,
        RunStatus.PARTIAL: FAILED,
        RunStatus.INCOMPATIBLE: FAILED,
        RunStatus.CANCELLED: CANCELLED,
        **dict.fromkeys(RUN_RESTING, RESTS),
        # Not at its end: this process was asked to stop before.
        RunStatus.PLANNED: CANCELLED,
        RunStatus.RUNNING: CANCELLED,
    }
)
"""The exit code of a command that leaves a run in that status."""

WATCHED: Final[Mapping[RunStatus, int]] = MappingProxyType(
    {**EXITS, RunStatus.PLANNED: RESTS, RunStatus.RUNNING: RESTS}
)
"""Likewise of one that only looked on: what nobody works on waits for a person to start it."""


def ending_text(
    run: RunView, plan: GraphPlan, nodes: Sequence[NodeRecord], deferrals: Mapping[str, Event] = NO_DEFERRALS
) -> str:
    """Return what to say when a command leaves a run: how it ended, what failed, what waits, what to type.

    Args:
        run: The run.
        plan: Its graph plan.
        nodes: Its nodes, in the order of the plan.
        deferrals: By node, the event that tells that it could not be found out what its attempt did.

    """
    run_id = run.record.run_id
    took = ""
    if run.started_at is not None and run.finished_at is not None:
        took = f" after {duration(seconds_between(run.started_at, run.finished_at))}"
    status = "stopped" if run.status is RunStatus.RUNNING and not run.owned else run.status.value
    lines = [f"{run_id} {status}{took}: {counts_text(nodes)}"]
    lines += failure_lines(run, plan, [node for node in nodes if node.status in FAILED_NODES], mark="failed: ")
    if run.imported:
        return "\n".join([*lines, *owner_lines(run), *outputs_lines(run, plan)])
    lines += deferred_lines(run_id, nodes, deferrals)
    for waiting in waits(run, plan, nodes):
        lines.append(f"waits: {waiting.node}: {harmless(waiting.message)}")
        lines += waiting.typed("  ")
    if run.status in RUN_RESTING:
        lines.append(f"then go on with: hostler resume {run_id}")
    elif run.status not in RUN_FINAL:
        lines += [line.removeprefix("stopped; ") for line in owner_lines(run)]
    elif any(may_be_retried(run, node) for node in nodes):
        lines.append(f"then go on with: hostler resume {run_id}")
    lines += outputs_lines(run, plan)
    return "\n".join(lines)
