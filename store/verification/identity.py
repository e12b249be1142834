"""What a run is: its record, its plan and its code, each by its digest and by the rules it was created under."""

from typing import Any, Final

from hostres.errors import HostlerError
from store.contracts import RunRecord
from store.creation import check_new
from store.lazy_dataclass import dataclass
from store.limits import Limits
from store.plans import ComputeExecutor, GraphPlan, PlannedNode
from store.references import references
from store.values import Domain
from store.verification.examination import Examination
from store.verification.findings import Fault

_ROW: Final = """
    SELECT run_id, workflow, plan_sha256, bundle_sha256, created_at, record, sha256, status, started_at, finished_at,
        generation, host_id, token, counts, event_seq, event_sha256, submission, imported_sha256
    FROM runs WHERE run = ?
"""


@dataclass(frozen=True, slots=True)
class RunColumns:
    """The row of a run, in the order of its columns."""

    run_id: str
    workflow: str
    plan_sha256: str
    bundle_sha256: str | None
    created_at: str
    record: bytes
    sha256: str
    status: str
    started_at: str | None
    finished_at: str | None
    generation: int
    host_id: str | None
    token: str | None
    counts: str
    event_seq: int
    event_sha256: str
    submission: str | None
    imported_sha256: str | None


def examine_identity(examination: Examination, limits: Limits) -> tuple[RunColumns, GraphPlan | None, str | None]:
    """Examine what a run is.

    Args:
        examination: Where to note what is wrong.
        limits: What is taken.

    Returns:
        Its row; its plan, and the folder that it works in, if they can be read.

    """
    columns = RunColumns(*next(examination.rows(_ROW)))
    record = examination.record(RunRecord, columns.record, columns.sha256, table="runs", what="the record of the run")
    folder = None if record is None else record.folder
    if record is not None:
        _compare(examination, columns, record)
    plan_data = _by_digest(examination, "graph_plans", Domain.GRAPH_PLAN, columns.plan_sha256, "the graph plan")
    bundle = None
    if columns.bundle_sha256 is not None:
        bundle = _by_digest(examination, "bundles", Domain.BUNDLE, columns.bundle_sha256, "the code bundle")
    if plan_data is None:
        return columns, None, folder
    plan = examination.model(GraphPlan, plan_data, table="graph_plans", what="the graph plan")
    if plan is not None and record is not None and (bundle is None) == (record.bundle_sha256 is None):
        _recompile(examination, record, plan, plan_data, bundle, limits)
    return columns, plan, folder


def _compare(examination: Examination, columns: RunColumns, record: RunRecord) -> None:
    for name in ("run_id", "workflow", "plan_sha256", "bundle_sha256", "created_at"):
        stands, recorded = getattr(columns, name), getattr(record, name)
        if stands != recorded:
            examination.wrong(Fault.COLUMN, "runs", f"its column {name} says {stands}, its record {recorded}")
    submission = (
        record.submission if columns.imported_sha256 is None else None
    )  # a key asks for the run that is its own
    if columns.submission != submission:
        what = f"its column submission says {columns.submission}, not {submission}"
        examination.wrong(Fault.COLUMN, "runs", what)


def _by_digest(examination: Examination, table: str, domain: Domain, sha256: str, what: str) -> bytes | None:
    row: Any = next(examination.rows(f"SELECT sha256, size, content FROM {table} WHERE sha256 = ?", sha256), None)  # noqa: S608 - names of our own
    if row is None:
        examination.wrong(Fault.MISSING, table, f"{what} {sha256} is missing")
        return None
    return examination.content(domain, row, table=table, what=f"{what} {sha256}")


def _recompile(
    examination: Examination,
    record: RunRecord,
    plan: GraphPlan,
    plan_data: bytes,
    bundle: bytes | None,
    limits: Limits,
) -> None:
    """Check the plan by the rules that every new run is checked by, and by those of the compiler."""
    try:
        check_new(record, plan, plan_data, bundle, limits)
        for node in plan.nodes:
            _check_references(examination, node)
        unknown = {reference.node for reference in references(plan.outputs)} - {node.key for node in plan.nodes}
    except HostlerError as error:
        examination.wrong(Fault.PLAN, "graph_plans", error.what)
        return
    for key in sorted(unknown):
        examination.wrong(Fault.PLAN, "graph_plans", f"its outputs refer to node {key}, which it does not have")
    computes = any(isinstance(node.executor, ComputeExecutor) for node in plan.nodes)
    if computes != (plan.bundle_sha256 is not None):
        examination.wrong(Fault.PLAN, "graph_plans", "it names code where none is needed, or none where it is")


def _check_references(examination: Examination, node: PlannedNode) -> None:
    missing = {reference.node for reference in references(node.input)} - {*node.dependencies}
    for key in sorted(missing):
        what = f"node {node.key} refers to {key} and does not wait for it"
        examination.wrong(Fault.PLAN, "graph_plans", what, node=node.key)
