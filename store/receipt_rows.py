"""The rows of receipts: made open, and ended once, each use of one with the grant that it gives."""

import sqlite3

from hostres.errors import Code, HostlerError
from store.heads import Head
from store.receipts import Receipt, ReceiptState
from store.records import decode, encode, verified
from store.transactions import Transaction
from store.values import Domain, digest_bytes


def put_receipts(connection: sqlite3.Connection, head: Head, transaction: Transaction) -> None:
    """Make, use up or take back receipts inside a write transaction.

    Args:
        connection: The connection.
        head: The run.
        transaction: Of its owner.

    Raises:
        HostlerError: conflict, for a receipt of another run, one that is used without a grant or a grant without it,
            or one that has ended or is another one than is stored; invalid-data, for a damaged one.

    """
    granted = {grant.receipt_id: grant.node for grant in transaction.grants if grant.receipt_id is not None}
    used = {one.receipt_id: one.node for one in transaction.receipts if one.state is ReceiptState.USED}
    if granted != used:
        raise _conflict(head, ", ".join(sorted(granted.keys() ^ used.keys())), "is not used by exactly one grant")
    for receipt in transaction.receipts:
        if receipt.run_id != head.run_id:
            raise _conflict(head, receipt.receipt_id, f"is of run {receipt.run_id}")
        _put(connection, head, receipt)


def _put(connection: sqlite3.Connection, head: Head, receipt: Receipt) -> None:
    data = encode(receipt)
    sha256 = digest_bytes(Domain.RECORD, data)
    row = connection.execute(
        "SELECT record, sha256 FROM receipts WHERE run = ? AND receipt_id = ?", (head.run, receipt.receipt_id)
    ).fetchone()
    if row is None:
        if receipt.state is not ReceiptState.OPEN:
            raise _conflict(head, receipt.receipt_id, "was never made")
        connection.execute(
            "INSERT INTO receipts (receipt_id, run, record, sha256) VALUES (?, ?, ?, ?)",
            (receipt.receipt_id, head.run, data, sha256),
        )
        return
    what = f"receipt {receipt.receipt_id}"
    before = decode(Receipt, verified(Domain.RECORD, row[0], row[1], what), what)
    if before.state is not ReceiptState.OPEN:
        raise _conflict(head, receipt.receipt_id, f"is {before.state} already")
    ended = before.model_copy(update={"state": receipt.state, "ended_by": receipt.ended_by})
    if receipt.state is ReceiptState.OPEN or ended != receipt:
        raise _conflict(head, receipt.receipt_id, "is another one than is stored")
    connection.execute(
        "UPDATE receipts SET record = ?, sha256 = ? WHERE run = ? AND receipt_id = ?",
        (data, sha256, head.run, receipt.receipt_id),
    )


def _conflict(head: Head, name: str, why: str) -> HostlerError:
    return HostlerError(
        Code.CONFLICT, f"receipt {name} of run {head.run_id} {why}", f"see `hostler receipt list {head.run_id}`"
    )
