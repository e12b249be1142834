"""Receipts in the store: made once, ended once, used only together with the grant that they give."""

from typing import Any

import pytest

from hostres.errors import Code
from store.contracts import GrantAction
from store.lifecycle import Status
from store.reader import Reader
from store.receipts import Receipt, ReceiptState
from store.transactions import Claimed
from tests.store.support import Setting, assert_refused, grant_of, moved, node_plan, plan_of, receipt_of


def waiting(setting: Setting) -> tuple[Claimed, Receipt]:
    """Return a claimed run whose node waits for approval, with a receipt for it."""
    claimed = setting.claimed(plan_of({"a": []}))
    frozen = node_plan(claimed.fence.run_id, "a")
    node = moved(claimed.nodes[0], Status.APPROVAL_REQUIRED, plan_sha256=frozen.sha256)
    receipt = receipt_of(claimed.fence.run_id, "a", frozen.sha256)
    setting.accept(claimed, started=True, plans=(frozen,), nodes=(node,), receipts=(receipt,))
    return claimed, receipt


def ended(receipt: Receipt, state: ReceiptState = ReceiptState.USED, **changes: Any) -> Receipt:
    return receipt.model_copy(update={"state": state, "ended_by": "r", **changes})


def granting(receipt: Receipt, **changes: Any) -> Any:
    fields = {"plan_sha256": receipt.plan_sha256, "receipt_id": receipt.receipt_id, **changes}
    return (grant_of(receipt.run_id, "a", GrantAction.EFFECT, **fields),)


def stored(setting: Setting, claimed: Claimed) -> list[tuple[str, str]]:
    with Reader.open(setting.home) as reader:
        return [(one.receipt_id, one.state.value) for one in reader.receipts(claimed.fence.run_id)]


def test_a_receipt_is_used_with_its_grant_and_never_again_also_after_a_restart(setting: Setting) -> None:
    claimed, receipt = waiting(setting)
    setting.accept(claimed, grants=granting(receipt), receipts=(ended(receipt),))
    again = setting.write(claimed, grants=granting(receipt), receipts=(ended(receipt),))
    assert_refused(again, Code.CONFLICT, "receipt night", "is used already")
    setting.accept(claimed, release=True)
    later = setting.store.claim(claimed.fence.run_id, setting.identity)
    assert [one.state for one in later.receipts] == [ReceiptState.USED]
    assert_refused(
        setting.write(later, grants=granting(receipt), receipts=(ended(receipt),)), Code.CONFLICT, "is used already"
    )
    assert stored(setting, claimed) == [("night", "used")]
    with Reader.open(setting.home) as reader:
        assert len(reader.grants(claimed.fence.run_id)) == 1


def test_what_does_not_fit_is_refused_whole(setting: Setting) -> None:
    claimed, receipt = waiting(setting)
    for parts in (
        {"receipts": (ended(receipt),)},
        {"grants": granting(receipt)},
        {"grants": granting(receipt, receipt_id="other"), "receipts": (ended(receipt),)},
        {"receipts": (receipt,)},
        {"receipts": (ended(receipt, ReceiptState.REVOKED, subject="agent:other"),)},
        {"receipts": (ended(receipt, ReceiptState.REVOKED, receipt_id="other"),)},
        {"receipts": (receipt_of("run_" + "0" * 26, "a", "0" * 64),)},
    ):
        assert_refused(setting.write(claimed, **parts), Code.CONFLICT, "receipt")
    assert stored(setting, claimed) == [("night", "open")]
    with Reader.open(setting.home) as reader:
        assert reader.grants(claimed.fence.run_id) == ()


def test_a_receipt_that_was_taken_back_cannot_be_used(setting: Setting) -> None:
    claimed, receipt = waiting(setting)
    setting.accept(claimed, receipts=(ended(receipt, ReceiptState.REVOKED),))
    refused = setting.write(claimed, grants=granting(receipt), receipts=(ended(receipt),))
    assert_refused(refused, Code.CONFLICT, "is revoked already")


def test_a_damaged_receipt_is_named_when_its_run_is_claimed(setting: Setting) -> None:
    claimed, _ = waiting(setting)
    setting.accept(claimed, release=True)
    setting.store._connection.execute("UPDATE receipts SET sha256 = replace(sha256, substr(sha256, 1, 1), 'x')")
    with pytest.raises(Exception, match="stored receipt night is damaged"):
        setting.store.claim(claimed.fence.run_id, setting.identity)
