"""One run: the JSON of `show --json`, and the same for people."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from pydantic import JsonValue

from hostler.views.budgets import books_of, budget_json, budget_lines, more_retries, usage_json, waits
from hostler.views.colours import Paint, plain
from hostler.views.cut_logs import cut_lines, cuts_json
from hostler.views.naming import executor_name, runs_text
from hostler.views.owners import IMPORTED, owner_note
from hostler.views.terminal import duration, harmless, shown_path, table
from hostler.views.waiting import remedy
from store.budgets import Books
from store.contracts import Event, Grant, NodeRecord
from store.evidence import documents
from store.lifecycle import FINAL, RUN_FINAL, RunStatus, Status, counts
from store.plans import ComputeExecutor, GraphPlan, OperationExecutor, PlannedNode
from store.run_view import RunView

CANCELLING: Final = " (cancelling)"
"""Beside what still runs although it was cancelled: it is not called so before nothing of it lives."""


def show_json(
    run: RunView,
    plan: GraphPlan,
    nodes: Sequence[NodeRecord],
    grants: Iterable[Grant] = (),
    cuts: Sequence[Event] = (),
) -> dict[str, Any]:
    """Return a run in the shape that `show --json` promises.

    Args:
        run: The run.
        plan: Its graph plan.
        nodes: Its nodes, in the order of the plan.
        grants: What people granted; they tell how its nodes were corrected.
        cuts: Events that tell of logs that are cut.

    """
    record = run.record
    corrections = _corrections(grants)
    shape: dict[str, Any] = {
        "run_id": record.run_id,
        "workflow": record.workflow,
        "status": run.status.value,
        "plan_sha256": record.plan_sha256,
        "created_at": record.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "counts": counts(Counter(node.status for node in nodes)),
    }
    if is_cancelling(run, nodes):
        shape["cancelling"] = True
    if run.imported_sha256 is not None:
        shape["imported"] = {"sha256": run.imported_sha256}
    if run.owner is not None:
        shape["owner"] = {"host": run.owner.host, "alive": run.owner.alive}
    shape["waiting_on"] = [waiting.to_json(imported=run.imported) for waiting in waits(run, plan, nodes)]
    books = books_of(run, plan)
    of_run = {"budget": budget_json(books, None), "usage": usage_json(books.spent)}
    shape |= {name: value for name, value in of_run.items() if value}
    if run.status in RUN_FINAL and run.summary is not None:
        shape["outputs"] = run.summary.outputs
    planned = {node.key: node for node in plan.nodes}
    shape["nodes"] = [_node_json(planned[node.key], node, books, corrections.get(node.key, ())) for node in nodes]
    for node in shape["nodes"]:
        if cut := cuts_json(cuts, node["key"]):
            node["log_cuts"] = cut
    return shape


def _node_json(planned: PlannedNode, node: NodeRecord, books: Books, corrections: Iterable[Grant]) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "key": node.key,
        "executor": executor_name(planned.executor),
        "status": node.status.value,
        "attempt": node.attempt,
        "dependencies": list(planned.dependencies),
        "claims": dict(planned.policy.claims),
    }
    if node.cancelling and node.status is Status.RUNNING:
        shape["cancelling"] = True
    if isinstance(planned.executor, OperationExecutor | ComputeExecutor):
        shape["isolation"] = planned.policy.isolation.value
    for name in ("started_at", "finished_at", "due_at", "output_sha256", "preparation_sha256", "plan_sha256"):
        value = getattr(node, name)
        if value is not None:
            shape[name] = value
    due = planned.terms.evidence if planned.terms is not None else ()
    if due or node.evidence:
        shape["evidence"] = {"due": documents(due), "brought": documents(node.evidence)}
    if node.failure is not None:
        shape["failure"] = node.failure.model_dump(mode="json")
    if node.revision:
        shape["revision"] = node.revision
    corrected = [_correction_json(grant) for grant in corrections]
    if corrected:
        shape["corrections"] = corrected
    ledger, budget = books.ledgers.get(node.key), budget_json(books, node.key)
    if ledger is not None:
        shape["usage"] = usage_json(ledger.spent)
    if budget is not None:
        shape["budget"] = budget
        shape["delegated"] = usage_json(books.delegated(node.key))
    return shape


def _corrections(grants: Iterable[Grant]) -> dict[str, list[Grant]]:
    """Return the corrections of each node that was corrected, oldest first."""
    found: dict[str, list[Grant]] = {}
    for grant in grants:
        if grant.revision is not None:
            found.setdefault(grant.node, []).append(grant)
    return found


def _correction_json(grant: Grant) -> dict[str, Any]:
    revision = grant.revision
    assert revision is not None
    shape: dict[str, Any] = {
        "revision": revision.number,
        "input": revision.input,
        "at": grant.at,
        "principal": grant.principal,
        "reason": grant.reason,
        "after_attempt": grant.attempt or 0,
    }
    return shape if grant.plan_sha256 is None else {**shape, "replaced_plan_sha256": grant.plan_sha256}


def _correction_lines(grants: Iterable[Grant]) -> list[str]:
    """Return a line for each correction of a node."""
    lines = [
        f"{grant.node}: revision {grant.revision.number} of its input, after attempt {grant.attempt or 0}, by"
        f" {grant.principal} at {grant.at}{f': {grant.reason}' if grant.reason else ''}"
        for corrected in _corrections(grants).values()
        for grant in corrected
        if grant.revision is not None
    ]
    return ["", *map(harmless, lines)] if lines else []


def show_text(
    run: RunView,
    plan: GraphPlan,
    nodes: Sequence[NodeRecord],
    grants: Sequence[Grant] = (),
    cuts: Sequence[Event] = (),
    *,
    width: int | None = None,
    paint: Paint = plain,
) -> str:
    """Return a run for people: its state, its nodes, what was corrected or cut, what waits and what to type next.

    Args:
        run: The run.
        plan: Its graph plan.
        nodes: Its nodes, in the order of the plan.
        grants: What people granted.
        cuts: What tells of logs that were cut.
        width: Columns of the terminal, to which the table of nodes is fitted; None for as many as it takes.
        paint: How a status is printed.

    """
    record = run.record
    planned = {node.key: node for node in plan.nodes}
    going = CANCELLING if is_cancelling(run, nodes) else ""
    lines = [
        f"{record.run_id}  {record.workflow}@{record.workflow_version}  {paint(run.status, run.status)}{going}",
        f"plan {record.plan_sha256}",
        f"created {record.created_at} by {harmless(record.principal)} in {harmless(shown_path(record.folder))}",
        *_times(run),
        *owner_lines(run),
        "",
        counts_text(nodes),
        table(
            ("NODE", "STATUS", "TRIES", "TOOK", "RUNS"),
            [_row(planned[node.key], node) for node in nodes],
            width=width,
            elastic=(4,),
            paint={1: lambda padded, status: paint(padded, status.removesuffix(CANCELLING))},
        ),
    ]
    lines += _correction_lines(grants)
    failures = failure_lines(run, plan, [node for node in nodes if node.failure is not None])
    if failures:
        lines += ["", *failures]
    cut = cut_lines(cuts)
    if cut:
        lines += ["", *cut]
    budgets = budget_lines(run, plan)
    if budgets:
        lines += ["", *budgets]
    waiting = waits(run, plan, nodes)
    if waiting:
        lines += ["", "waits for a person:"]
        for entry in waiting:
            lines += [f"  {entry.node}: {harmless(entry.message)}", *([] if run.imported else entry.typed("    "))]
    outputs = outputs_lines(run, plan)
    if outputs:
        lines += ["", *outputs]
    return "\n".join(lines)


def is_cancelling(run: RunView, nodes: Sequence[NodeRecord]) -> bool:
    """Say whether a run is to be cancelled, or all that still runs of it is being cancelled."""
    left = [node for node in nodes if node.status not in FINAL]
    asked = run.cancel_waits or (bool(left) and all(node.cancelling for node in left))
    return asked and run.status is RunStatus.RUNNING


def counts_text(nodes: Sequence[NodeRecord]) -> str:
    """Return how many nodes stand where, leaving out what is zero."""
    totals = counts(Counter(node.status for node in nodes))
    return " · ".join(f"{number} {name}" for name, number in totals.items() if number) or "no nodes"


def failure_line(run_id: str, node: NodeRecord) -> str:
    """Return one line that says which node failed, with which code, why, and what to do.

    Args:
        run_id: The run; what to do names it.
        node: The node.

    """
    failure = node.failure
    if failure is None:
        return f"{node.key}: {node.status}"
    return harmless(f"{node.key}: {failure.code}: {failure.message}{remedy(failure, run_id, node.key)}")


def failure_lines(run: RunView, plan: GraphPlan, nodes: Iterable[NodeRecord], *, mark: str = "") -> list[str]:
    """Return what failed and, for a node that may be tried again, what to type for it.

    Args:
        run: The run.
        plan: Its graph plan.
        nodes: Those of its nodes that failed.
        mark: In front of each failure.

    """
    run_id = run.record.run_id
    lines: list[str] = []
    for node in nodes:
        lines.append(f"{mark}{failure_line(run_id, node)}")
        if node.due_at is not None:
            lines.append(f"  failed {node.failures} times; tried again at {node.due_at}")
        if may_be_retried(run, node):
            more = more_retries(run, plan, node.key)
            lines += [] if more is None else [f"  {more}"]
            lines.append(f"  hostler retry {run_id} {node.key}")
    return lines


def may_be_retried(run: RunView, node: NodeRecord) -> bool:
    """Say whether a person can have a node tried again that makes the run go on."""
    return node.status is Status.FAILED and run.status is not RunStatus.CANCELLED and not run.imported


def outputs_lines(run: RunView, plan: GraphPlan) -> list[str]:
    """Return what a run that has ended gave back, or why it could not."""
    if run.status not in RUN_FINAL or run.summary is None or run.summary.outputs is None:
        return []
    match run.summary.outputs:
        # What the host puts in their place where a reference leads nowhere; a plan of that very shape means it.
        case {"error": str(why), **more} if not more and not (
            isinstance(plan.outputs, dict) and "error" in plan.outputs
        ):
            return [f"no outputs: {harmless(why)}"]
    outputs = orjson.dumps(_with_shown_paths(run.summary.outputs), option=orjson.OPT_INDENT_2).decode()
    return f"outputs: {harmless(outputs, lines=True)}".split("\n")


def _with_shown_paths(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return shown_path(value)
        case list():
            return [_with_shown_paths(each) for each in value]
        case dict():
            return {name: _with_shown_paths(each) for name, each in value.items()}
        case _:
            return value


def owner_lines(run: RunView) -> list[str]:
    """Return who works on a run, and what to type if nobody does though there is work left."""
    if run.imported:
        return [f"{IMPORTED}: a record of what was done elsewhere, to be looked at"]
    return [note] if (note := owner_note(run.record.run_id, run.status, run.owner)) else []


def seconds_since(start: str) -> float:
    """Return the seconds from an RFC 3339 time until now, never negative."""
    return max((datetime.now(UTC) - datetime.fromisoformat(start)).total_seconds(), 0.0)


def seconds_until(end: str) -> float:
    """Return the seconds from now until an RFC 3339 time, never negative."""
    return max((datetime.fromisoformat(end) - datetime.now(UTC)).total_seconds(), 0.0)


def seconds_between(start: str, end: str) -> float:
    """Return the seconds between two RFC 3339 times, never negative."""
    return max((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 0.0)


def _times(run: RunView) -> list[str]:
    if run.started_at is None:
        return []
    if run.finished_at is None:
        return [f"started {run.started_at}"]
    return [f"took {duration(seconds_between(run.started_at, run.finished_at))}, until {run.finished_at}"]


def _row(planned: PlannedNode, node: NodeRecord) -> tuple[str, ...]:
    took = (
        duration(seconds_between(node.started_at, node.finished_at))
        if node.started_at is not None and node.finished_at is not None
        else ""
    )
    going = CANCELLING if node.cancelling and node.status is Status.RUNNING else ""
    return (node.key, f"{node.status}{going}", str(node.attempt), took, runs_text(planned.executor, planned.policy))
