"""The ledgers of a run: each by its digest, and against what the log adds up to."""

from collections.abc import Mapping

from store.contracts import NodeRecord
from store.ledger_rows import OF_RUN
from store.ledgers import HOLDING, Ledger
from store.verification.examination import Examination
from store.verification.findings import Fault
from store.verification.retelling import Retelling


def examine_ledgers(examination: Examination, records: Mapping[str, NodeRecord], told: Retelling | None) -> None:
    """Examine the ledgers.

    Args:
        examination: Where to note what is wrong.
        records: The nodes by key.
        told: What the log says; None if it cannot be believed.

    """
    seen: set[str | None] = set()
    for name, data, sha256 in examination.rows("SELECT node, record, sha256 FROM ledgers WHERE run = ? ORDER BY node"):
        node = None if name == OF_RUN else name
        what = "its ledger" if node is not None else "the ledger of the run"
        seen.add(node)
        ledger = examination.record(Ledger, data, sha256, table="ledgers", what=what, node=node)
        if ledger is None:
            continue
        if ledger.node != node:
            examination.wrong(Fault.COLUMN, "ledgers", f"{what} is that of {ledger.node}", node=node)
        elif told is not None and told.ledgers.get(node) != ledger:
            examination.wrong(Fault.LEDGER, "ledgers", f"{what} is not what the log adds up to", node=node)
        elif ledger.reserved is not None and not _holds(records.get(node or OF_RUN)):
            examination.wrong(Fault.LEDGER, "ledgers", f"{what} reserves something, and it does not run", node=node)
    for node in [] if told is None else sorted(told.ledgers.keys() - seen, key=str):
        examination.wrong(Fault.MISSING, "ledgers", "the ledger is missing", node=node)


def _holds(record: NodeRecord | None) -> bool:
    return record is not None and record.status in HOLDING
