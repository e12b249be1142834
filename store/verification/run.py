"""A run proved from what is stored of it.

Nothing is believed that can be computed. All that is wrong is found, not only the first of it, and named. The code
of a workflow is not run: its plan is taken apart, checked by the rules it was created under, and put together again.
"""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from store import lifecycle
from store.content import Content
from store.contracts import NodeRecord
from store.heads import counts_text
from store.lifecycle import RunStatus
from store.limits import Limits
from store.run_list import unknown_run
from store.verification.answers import examine_answers
from store.verification.evidence import examine_evidence
from store.verification.exact_plans import examine_plans
from store.verification.examination import Examination, lenient
from store.verification.findings import Fault, Verdict, printable
from store.verification.identity import RunColumns, examine_identity
from store.verification.ledgers import examine_ledgers
from store.verification.log import compare_nodes, compare_run, examine_chain, examine_summary
from store.verification.node_rows import Outputs, examine_records
from store.verification.taken_work import examine_leases
from store.verification.workspaces import examine_workspaces


def verify(
    connection: sqlite3.Connection,
    content: Content,
    run: int,
    *,
    alive: Callable[[str], bool] | None = None,
    limits: Limits | None = None,
) -> Verdict:
    """Prove a run, inside a transaction that shows one snapshot.

    Args:
        connection: The connection.
        content: Where large bytes lie.
        run: The run's number in this file.
        alive: Says whether a host lives; None where nobody can know.
        limits: What is taken; the documented bounds by default.

    Returns:
        What is wrong, if anything is.

    Raises:
        HostlerError: not-found.

    """
    with lenient_texts(connection):
        row = connection.execute("SELECT run_id FROM runs WHERE run = ?", (run,)).fetchone()
        if row is None:
            raise unknown_run(f"number {run}")
        return _verify(Examination(connection, content, run, row[0]), alive, limits or Limits())


@contextlib.contextmanager
def lenient_texts(connection: sqlite3.Connection) -> Iterator[None]:
    """Let the block read texts that are not UTF-8."""
    before = connection.text_factory
    connection.text_factory = lenient
    try:
        yield
    finally:
        connection.text_factory = before


def _verify(examination: Examination, alive: Callable[[str], bool] | None, limits: Limits) -> Verdict:
    columns, plan, folder = examine_identity(examination, limits)
    records = examine_records(examination, plan)
    told = examine_chain(examination, columns, plan)
    grants = 0
    if plan is not None:
        outputs = Outputs(examination, records, plan)
        outputs.examine()
        grants, inputs = examine_answers(examination, plan, told)
        examine_plans(examination, plan, folder, records, outputs, inputs)
        examine_summary(examination, plan, told, outputs)
        examine_workspaces(examination, plan, records)
        if len(records) == len(plan.nodes):
            _check_counts(examination, columns, records)
    examine_ledgers(examination, records, told)
    if told is not None:
        if plan is not None:
            examine_evidence(examination, plan, records, told)
        compare_nodes(examination, records, told)
        compare_run(examination, columns, told, alive=alive)
        if columns.imported_sha256 is None:  # nobody works on a mere record
            examine_leases(examination, told)
    return Verdict(
        run_id=printable(examination.run_id),
        status=_status(columns.status),
        nodes=len(records),
        events=columns.event_seq,
        grants=grants,
        problems=tuple(examination.problems),
    )


def _check_counts(examination: Examination, columns: RunColumns, records: Mapping[str, NodeRecord]) -> None:
    counts = Counter(record.status for record in records.values())
    if columns.counts != counts_text(counts):
        what = f"its column counts says {columns.counts}, its nodes add up to {counts_text(counts)}"
        examination.wrong(Fault.COLUMN, "runs", what)
    started = columns.started_at is not None
    derived = lifecycle.run_status(counts, started=started)
    if columns.status not in {derived.value, lifecycle.run_status_without_budget(counts, started=started).value}:
        examination.wrong(Fault.STATUS, "runs", f"its column status says {columns.status}, its nodes {derived}")


def _status(text: str) -> RunStatus | None:
    return RunStatus(text) if text in {status.value for status in RunStatus} else None
