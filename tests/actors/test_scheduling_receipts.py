"""G1, G2: receipts in a run: made, used once, taken back; a gate is opened by a human alone."""

import random

import pytest

from actors.actions import Judge
from actors.messages import RequestsArrived
from store.contracts import Request, RequestKind
from store.lifecycle import RunStatus, Status
from store.receipts import FIELD, ReceiptState
from tests.actors.support import RUN_ID, Drive, Model, dispatched, gate, kinds, paid, rule, writing

AGENT = "agent:night"


def waiting(*more) -> Drive:
    drive = Drive(Model([paid("a"), *more]))
    drive.begin()
    return drive


def give(drive: Drive, node: str = "a", *, name: str = "night", subject: str = AGENT, **fields) -> None:
    data = {FIELD: name, "subject": subject, "action": fields.pop("action", "approve"), "lasts_ms": 60_000}
    plan = drive.state.nodes[node].record.frozen_sha256
    drive.request(RequestKind.RECEIPT, node, plan_sha256=plan, data=data, **fields)


def use(drive: Drive, node: str = "a", *, name: str = "night", principal: str = AGENT):
    return drive.approve(node, principal=principal, data={FIELD: name})


def codes(drive: Drive) -> list[str]:
    return [event["code"] for event in drive.model.events("request-refused")]


def test_a_receipt_is_used_once_in_the_transaction_of_its_grant_and_never_again():
    drive = waiting(writing("long"))
    give(drive)
    assert dispatched(use(drive)) == ["a"]
    (grant,) = drive.model.grants
    assert (grant.principal, grant.receipt_id, grant.rule) == ("human:ann", "night", "default.human-approve")
    (transaction,) = [each for each in drive.model.transactions if each.grants]
    assert [one.state for one in transaction.receipts] == [ReceiptState.USED]
    assert transaction.consumed
    use(drive)
    again = drive.crash()
    again.begin()
    use(again)
    assert codes(drive) == ["receipt-consumed", "receipt-consumed"]
    assert len(drive.model.grants) == 1


def test_of_100_uses_that_wait_together_exactly_one_wins():
    drive = waiting(writing("long"))
    give(drive)
    plan = drive.state.nodes["a"].record.frozen_sha256
    requests = [
        Request(
            request_id=f"use-{number}", run_id=RUN_ID, kind=RequestKind.APPROVE, node="a", plan_sha256=plan,
            principal=AGENT, data={FIELD: "night"}, at="2026-01-01T00:00:00.000Z",
        )
        for number in range(100)
    ]  # fmt: skip
    assert all(map(drive.model.post, requests))
    for case in kinds(drive.send(RequestsArrived(requests=tuple(requests))), Judge):
        drive.send(rule(case))  # all of them were judged while it was open
    assert len(drive.model.grants) == 1
    assert codes(drive) == ["receipt-consumed"] * 99


def test_a_receipt_that_was_taken_back_or_is_over_opens_nothing():
    drive = waiting()
    give(drive)
    drive.request(RequestKind.REVOKE, data={FIELD: "night"})
    use(drive)
    give(drive, name="late")
    drive.clock += 61
    use(drive, name="late")
    use(drive, name="none")
    assert codes(drive) == ["receipt-rejected", "receipt-expired", "receipt-unknown"]
    assert drive.status("a") is Status.APPROVAL_REQUIRED
    assert [event["state"] for event in drive.model.events("receipt", "a")] == ["open", "revoked", "open"]


def test_a_receipt_is_for_one_node_and_parallel_branches_do_not_share_it():
    drive = waiting(paid("b"))
    give(drive)
    use(drive, "b")
    assert codes(drive) == ["receipt-mismatch"]
    assert drive.status("b") is Status.APPROVAL_REQUIRED
    assert dispatched(use(drive)) == ["a"]
    assert drive.state.status is RunStatus.RUNNING


@pytest.mark.parametrize("principal", [AGENT, "service:cron"])
def test_an_agent_never_opens_a_gate_also_not_with_a_receipt_that_a_human_gave(principal):
    """G1: nothing starts before a human's grant."""
    drive = Drive(Model([gate("go"), writing("after", "go")]))
    drive.begin()
    give(drive, "go", subject=principal)
    assert not dispatched(use(drive, "go", principal=principal))
    assert codes(drive) == ["receipt-not-human"]
    assert drive.statuses() == {"go": "approval-required", "after": "pending"}
    give(drive, "go", name="for-bob", subject="human:bob")
    assert dispatched(use(drive, "go", name="for-bob", principal="human:bob")) == ["after"]


def test_a_retry_may_be_given_beforehand_for_the_attempt_that_failed():
    drive = Drive(Model([writing("a"), writing("long")]))
    drive.begin()
    drive.failed("a")
    give(drive, action="retry")
    plan = drive.state.nodes["a"].record.frozen_sha256
    for _ in range(2):
        drive.request(RequestKind.RETRY, "a", plan_sha256=plan, principal=AGENT, data={FIELD: "night"})
    assert drive.status("a") is Status.RUNNING
    assert codes(drive) == ["receipt-consumed"]


def test_receipts_and_grants_agree_under_any_order_of_what_is_asked():
    for seed in range(30):
        chance = random.Random(seed)
        drive = waiting(paid("b"), gate("g"))
        for _ in range(25):
            node = chance.choice(["a", "b", "g"])
            name = f"r{chance.randrange(4)}"
            what = chance.randrange(4)
            if what == 0:
                give(drive, node, name=name, subject=chance.choice([AGENT, "human:bob"]))
            elif what == 1:
                use(drive, node, name=name, principal=chance.choice([AGENT, "human:bob"]))
            elif what == 2:
                drive.request(RequestKind.REVOKE, data={FIELD: name})
            elif drive.state.left:
                break
            else:
                drive = drive.crash()
                drive.begin()
        used = [one.receipt_id for one in drive.state.receipts.values() if one.state is ReceiptState.USED]
        granted = [grant.receipt_id for grant in drive.model.grants]
        assert sorted(granted) == sorted(used), seed
        assert not [grant for grant in drive.model.grants if grant.principal != "human:ann"], seed
