"""Receipts in a run: each made, used up or taken back in the transaction of the request that does it."""

from actors.scheduling.state import NodeState
from actors.scheduling.turn import Turn
from store.approvals import Accepted
from store.contracts import EventKind, Request
from store.evidence import awaits_approval
from store.receipts import Receipt, ReceiptState, written


def make(turn: Turn, node: NodeState, request: Request, ruling: Accepted) -> None:
    """Make the receipt that an accepted request wants."""
    receipt = written(
        request,
        rule=ruling.rule,
        attempt=node.record.attempt,
        of_result=awaits_approval(node.record),
        at=turn.stamp.at,
    )
    turn.receipt(receipt)
    _tell(turn, node, receipt, request.principal)


def use(turn: Turn, node: NodeState, request: Request, ruling: Accepted) -> None:
    """Use up the receipt that lets a grant be given, if one does."""
    if ruling.receipt is not None:
        _end(turn, node, ruling.receipt, request, ReceiptState.USED)


def revoke(turn: Turn, request: Request, ruling: Accepted) -> None:
    """Take a receipt back."""
    if ruling.receipt is None:
        raise AssertionError(request)
    _end(turn, turn.state.nodes[ruling.receipt.node], ruling.receipt, request, ReceiptState.REVOKED)


def _end(turn: Turn, node: NodeState, receipt: Receipt, request: Request, state: ReceiptState) -> None:
    ended = receipt.model_copy(update={"state": state, "ended_by": request.request_id})
    turn.receipt(ended)
    _tell(turn, node, ended, request.principal)


def _tell(turn: Turn, node: NodeState, receipt: Receipt, principal: str) -> None:
    turn.event(
        EventKind.RECEIPT,
        node,
        principal=principal,
        receipt_id=receipt.receipt_id,
        state=receipt.state.value,
        action=receipt.action.value,
        plan_sha256=receipt.plan_sha256,
        approver=receipt.approver,
        subject=receipt.subject,
        rule=receipt.rule,
        expires_at=receipt.expires_at,
        request_id=receipt.ended_by or receipt.request_id,
    )
