"""Receipts as a person and a script see them."""

from collections.abc import Sequence
from typing import Any

from hostler.views.terminal import harmless, table
from store.receipts import Receipt, ReceiptState

HEADS = ("RECEIPT", "NODE", "TO", "FOR", "BY", "UNTIL", "STATE")


def state_of(receipt: Receipt, at: str) -> str:
    """Return what became of a receipt, `expired` where it can no longer be used though nobody did.

    Args:
        receipt: The receipt.
        at: The moment of looking.

    """
    over = receipt.state is ReceiptState.OPEN and at >= receipt.expires_at
    return "expired" if over else receipt.state.value


def receipt_json(receipt: Receipt, at: str) -> dict[str, Any]:
    """Return a receipt as `receipt list --json` prints it."""
    return {**receipt.model_dump(mode="json"), "state": state_of(receipt, at)}


def receipts_text(receipts: Sequence[Receipt], at: str) -> str:
    """Return the receipts of a run as a table; nothing for none."""
    rows = [
        (
            harmless(receipt.receipt_id),
            receipt.node,
            receipt.action.value,
            harmless(receipt.subject),
            harmless(receipt.approver),
            receipt.expires_at,
            state_of(receipt, at),
        )
        for receipt in receipts
    ]
    return table(HEADS, rows) if rows else ""
