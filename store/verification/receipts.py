"""The receipts of a run: each as the log tells of it, and each that was used with the one grant that it gave."""

from collections import Counter
from collections.abc import Sequence

from store.contracts import Grant
from store.receipts import Receipt, ReceiptState
from store.verification.examination import Examination
from store.verification.findings import Fault
from store.verification.retelling import RECEIPT_TERMS, Retelling, ToldReceipt


def examine_receipts(examination: Examination, told: Retelling | None, grants: Sequence[Grant]) -> None:
    """Examine the receipts.

    Args:
        examination: Where to note what is wrong.
        told: What the log says; None if it cannot be believed.
        grants: All that can be read.

    """
    uses = Counter(grant.receipt_id for grant in grants if grant.receipt_id is not None)
    seen = set()
    query = "SELECT receipt_id, record, sha256 FROM receipts WHERE run = ? ORDER BY rowid"
    for name, data, sha256 in examination.rows(query):
        seen.add(name)
        what = f"receipt {name}"
        receipt = examination.record(Receipt, data, sha256, table="receipts", what=what)
        if receipt is None:
            continue
        if (receipt.receipt_id, receipt.run_id) != (name, examination.run_id):
            examination.wrong(Fault.COLUMN, "receipts", f"{what} is {receipt.receipt_id} of run {receipt.run_id}")
            continue
        if uses.pop(name, 0) != (receipt.state is ReceiptState.USED):
            examination.wrong(Fault.GRANT, "receipts", f"{what} is {receipt.state}, which its grants do not say")
        if told is not None:
            _compare(examination, receipt, told.receipts.get(name))
    for name in uses:
        examination.wrong(Fault.MISSING, "receipts", f"receipt {name}, by which a grant was given, is missing")
    for name in [] if told is None else sorted(told.receipts.keys() - seen - uses.keys()):
        seq = told.receipts[name].seq if told is not None else None
        examination.wrong(Fault.MISSING, "receipts", f"receipt {name} is missing", event=seq)


def _compare(examination: Examination, receipt: Receipt, told: ToldReceipt | None) -> None:
    what = f"receipt {receipt.receipt_id}"
    if told is None:
        examination.wrong(Fault.GRANT, "receipts", f"the log does not tell of {what}")
        return
    terms = tuple(receipt.model_dump(mode="json", include=set(RECEIPT_TERMS))[name] for name in RECEIPT_TERMS)
    said = (receipt.node, terms, receipt.state.value, receipt.ended_by or receipt.request_id)
    if said != (told.node, told.terms, told.state, told.request_id):
        examination.wrong(
            Fault.GRANT, "receipts", f"{what} is not what event {told.seq} tells of", node=receipt.node, event=told.seq
        )
