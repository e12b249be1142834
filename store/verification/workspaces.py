"""What is stored of worktrees: each of a node that works in one, and of no attempt that was never made."""

from collections.abc import Mapping

from store.contracts import NodeRecord
from store.plans import GraphPlan
from store.verification.examination import Examination
from store.verification.findings import Fault
from store.workspace import WorkspaceRecord


def examine_workspaces(examination: Examination, plan: GraphPlan, records: Mapping[str, NodeRecord]) -> None:
    """Examine the rows of worktrees.

    Args:
        examination: Where to note what is wrong.
        plan: The graph plan.
        records: The node records that can be read, by key.

    """
    planned = {node.key for node in plan.nodes if node.workspace is not None}
    for node, data, sha256 in examination.rows("SELECT node, record, sha256 FROM workspaces WHERE run = ?"):
        found = examination.record(WorkspaceRecord, data, sha256, table="workspaces", what="its worktree", node=node)
        if found is None:
            continue
        record = records.get(node)
        if found.node != node:
            examination.wrong(Fault.COLUMN, "workspaces", f"the worktree is of node {found.node}", node=node)
        elif node not in planned:
            examination.wrong(Fault.PLAN, "workspaces", "the node has no worktree in the graph plan", node=node)
        elif record is not None and found.attempt > record.attempt:
            what = f"the worktree is of attempt {found.attempt}, its node has made {record.attempt}"
            examination.wrong(Fault.STATUS, "workspaces", what, node=node)
