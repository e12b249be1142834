"""A run's log: its chain, and what it tells, against the rows that hold where the run stands."""

from collections.abc import Callable, Mapping
from typing import Final

import orjson
from pydantic import JsonValue

from hostres.errors import HostlerError
from store import chain
from store.clock import unix_ms
from store.contracts import Failure, NodeRecord, Summary
from store.evidence import documents
from store.lifecycle import FINAL, RESTING, RunStatus, Status
from store.plans import GraphPlan
from store.references import references, resolve
from store.row_ids import of_run
from store.values import Domain, digest, digest_bytes
from store.verification.examination import Examination
from store.verification.findings import Fault
from store.verification.identity import RunColumns
from store.verification.node_rows import Outputs
from store.verification.retelling import Retelling, ToldEnd, ToldNode

_OF_NODE: Final = (
    "status", "attempt", "revision", "preparation_sha256", "plan_sha256", "output_sha256", "started_at", "finished_at",
)  # fmt: skip


def examine_chain(examination: Examination, columns: RunColumns, plan: GraphPlan | None) -> Retelling | None:
    """Examine every event and its place in the chain.

    Returns:
        What the log tells; None if it or the plan is damaged, so that it cannot be believed.

    """
    told = None if plan is None else Retelling.begin((node.key, bool(node.dependencies)) for node in plan.nodes)
    sound, last, prev = plan is not None, 0, chain.GENESIS
    for seq, data, sha256 in examination.rows(of_run("seq, event, sha256", "events")):
        if seq != last + 1:
            gap = f"event {last + 1}" if seq == last + 2 else f"events {last + 1} to {seq - 1}"
            examination.wrong(Fault.MISSING, "events", f"{gap} missing", event=last + 1)
            sound, prev = False, ""
        last = seq
        try:
            if digest_bytes(Domain.EVENT, data) != sha256:
                examination.wrong(Fault.DIGEST, "events", "its digest does not match", event=seq)
                sound = False
            else:
                event = chain.unseal(data, sha256, run_id=examination.run_id, seq=seq, prev_sha256=prev or None)
                for why in told.take(event) if told is not None and sound else ():
                    examination.wrong(Fault.LOG, "events", why, node=event.node, event=seq)
        except HostlerError as error:
            examination.wrong(Fault.CHAIN, "events", error.what, event=seq)
            sound = False
        prev = sha256
    if (columns.event_seq, columns.event_sha256) != (last, prev):
        what = f"the run ends with event {columns.event_seq} {columns.event_sha256}, its log with {last} {prev}"
        examination.wrong(Fault.CHAIN, "runs", what, event=last or None)
    return told if sound else None


def compare_nodes(examination: Examination, records: Mapping[str, NodeRecord], told: Retelling) -> None:
    """Compare each node's record with what the log tells of the node."""
    for key, record in records.items():
        node = told.nodes.get(key)
        if node is None:
            continue  # said of the set of nodes already
        for name in _OF_NODE:
            stands, says = getattr(record, name), getattr(node, name)
            if stands != says:
                what = f"its record says {name} {stands}, the log {says}"
                examination.wrong(Fault.STATUS, "nodes", what, node=key)
        if documents(record.evidence) != node.evidence:
            examination.wrong(Fault.STATUS, "nodes", "its evidence is not what the log tells of", node=key)
        if record.status is Status.CORRECTIVE and not _same_delay(record, node):
            examination.wrong(Fault.STATUS, "nodes", "its next try is not due when the log says", node=key)
        if record.status in FINAL | RESTING and not _same_failure(record.failure, node):
            examination.wrong(Fault.STATUS, "nodes", "its failure is not the one that the log tells of", node=key)


def _same_delay(record: NodeRecord, node: ToldNode) -> bool:
    if node.put_off is None or record.due_at is None:
        return False
    since, delay_ms = node.put_off
    return (unix_ms(since) + delay_ms, delay_ms) == (unix_ms(record.due_at), record.delay_ms)


def _same_failure(failure: Failure | None, node: ToldNode) -> bool:
    if failure is None:
        return node.failure is None
    return node.failure == {"code": failure.code.value, "message": failure.message, "todo": failure.todo}


def compare_run(
    examination: Examination, columns: RunColumns, told: Retelling, *, alive: Callable[[str], bool] | None
) -> None:
    """Compare the row of the run with what the log tells of it.

    Args:
        examination: Where to note what is wrong.
        columns: The row.
        told: What the log tells.
        alive: Says whether a host lives; None where nobody can know.

    """
    ended = None if told.end is None else told.end.at
    claim = told.claim
    for name, says in (
        ("status", told.status.value),
        ("started_at", told.started_at),
        ("finished_at", ended),
        ("generation", claim.generation),
    ):
        stands = getattr(columns, name)
        if stands != says:
            examination.wrong(Fault.STATUS, "runs", f"its column {name} says {stands}, the log {says}")
    if columns.host_id is None:
        if not claim.released and claim.host is not None and alive is not None and alive(claim.host):
            what = f"nobody claims it, though {claim.host} lives and did not give it back"
            examination.wrong(Fault.CLAIM, "runs", what)
    elif claim.released or columns.host_id != claim.host:
        what = f"{columns.host_id} claims it, by the log {'nobody' if claim.released else claim.host} does"
        examination.wrong(Fault.CLAIM, "runs", what)
    elif claim.token_sha256 not in (None, _token_sha256(columns.token)):
        examination.wrong(Fault.CLAIM, "runs", f"the token of claim {claim.generation} is not the one it was given")


def _token_sha256(token: str | None) -> str | None:
    try:
        return digest(Domain.RECORD, token)
    except HostlerError:
        return None


def examine_summary(examination: Examination, plan: GraphPlan, told: Retelling | None, outputs: Outputs) -> None:
    """Examine the summary: it must say what the log says, and give what the outputs give."""
    row = next(examination.rows("SELECT sha256, size, content FROM summaries WHERE run = ?"), None)
    if row is None:
        if told is not None and told.end is not None:
            examination.wrong(Fault.MISSING, "summaries", "the summary is missing")
        return
    data = examination.content(Domain.RECORD, row, table="summaries", what="the summary")
    if data is None:
        return
    summary = examination.model(Summary, data, table="summaries", what="the summary")
    if summary is not None and told is not None:
        why = _contradiction(summary, plan, told.end, outputs)
        if why is not None:
            examination.wrong(Fault.SUMMARY, "summaries", why)


def _contradiction(summary: Summary, plan: GraphPlan, end: ToldEnd | None, outputs: Outputs) -> str | None:
    if end is None:
        return "there is a summary of a run that has not ended"
    if summary.status is not end.status or dict(summary.counts) != dict(end.counts):
        return f"it says {summary.status} {_text(dict(summary.counts))}, the log {end.status} {_text(dict(end.counts))}"
    if summary.status is not RunStatus.COMPLETED:
        return None if summary.outputs is None else "it gives outputs of a run that did not complete"
    used = {reference.node for reference in references(plan.outputs)}
    if not outputs.has(used):
        return None  # what it needs is damaged itself, and named
    given: JsonValue
    try:
        given = resolve(plan.outputs, {key: outputs.of(key) for key in used})
    except HostlerError as error:
        given = {"error": error.what}
    return None if given == summary.outputs else "its outputs are not what the nodes gave"


def _text(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
