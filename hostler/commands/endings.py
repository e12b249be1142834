"""How a run ended, or where it stands, in words and as an exit code."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import orjson

from hostler.views.show import counts_text, failure_line, seconds_between
from hostler.views.terminal import duration, harmless
from hostler.views.waiting import waiting_on
from store.contracts import GraphPlan, NodeRecord
from store.lifecycle import RUN_RESTING, RunStatus, Status
from store.reader import RunView

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


def ending_text(run: RunView, plan: GraphPlan, nodes: Sequence[NodeRecord]) -> str:
    """Return what to say when a command leaves a run: how it ended, what failed, what waits, what to type.

    Args:
        run: The run.
        plan: Its graph plan.
        nodes: Its nodes, in the order of the plan.

    """
    run_id = run.record.run_id
    took = ""
    if run.started_at is not None and run.finished_at is not None:
        took = f" after {duration(seconds_between(run.started_at, run.finished_at))}"
    lines = [f"{run_id} {run.status}{took}: {counts_text(nodes)}"]
    lines += [f"failed: {failure_line(run_id, node)}" for node in nodes if node.status in FAILED_NODES]
    for waiting in waiting_on(run_id, plan, nodes):
        lines.append(f"waits: {waiting.node}: {harmless(waiting.message)}")
        lines.append(f"  {waiting.command}")
    if run.status in RUN_RESTING:
        lines.append(f"then go on with: hostler resume {run_id}")
    elif run.status in {RunStatus.PLANNED, RunStatus.RUNNING}:
        lines.append(f"go on with: hostler resume {run_id}")
    elif run.summary is not None and run.summary.outputs is not None:
        outputs = orjson.dumps(run.summary.outputs, option=orjson.OPT_INDENT_2).decode()
        lines.append(f"outputs: {harmless(outputs, lines=True)}")
    return "\n".join(lines)
