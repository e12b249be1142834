"""G3: a receipt is for one thing, one principal, one time; each reason for refusing it has a code of its own."""

import random
from typing import Any

import pytest

from hostres.errors import EXIT_CODES, Code
from store.approvals import Accepted, Refused, Standing, judge
from store.clock import instant
from store.contracts import Request, RequestKind
from store.lifecycle import Status
from store.plans import CommandExecutor, GateExecutor, PlannedNode
from store.policy import Effect, Policy
from store.receipts import FIELD, Receipt, ReceiptState
from store.records import encode
from store.rules import DEFAULT_RULES, Action, Matter, Rule, Verdict
from store.values import Domain, digest_bytes
from tests.store.support import EPOCH_MS, HUMAN, STAMP, node_plan, receipt_of, request_of, run_id

RUN, SHA, OTHER, AGENT = run_id(), "a" * 64, "b" * 64, "agent:night"
PAID = PlannedNode(key="a", executor=CommandExecutor(), input={}, policy=Policy(effect=Effect.PAID_CLOUD))
GATE = PAID.model_copy(update={"executor": GateExecutor(gate="merge"), "policy": Policy()})
LATER = instant(EPOCH_MS + 3_600_000)


def used(
    receipt: Receipt | None,
    *,
    kind: RequestKind = RequestKind.APPROVE,
    node: PlannedNode = PAID,
    at: str = STAMP.at,
    rules: tuple[Rule, ...] = DEFAULT_RULES,
    plan: str = SHA,
    attempt: int = 0,
    **changes: Any,
) -> Accepted | Refused:
    """Judge a request that is made with *receipt*, of a node that fits it."""
    status = {RequestKind.APPROVE: Status.APPROVAL_REQUIRED, RequestKind.RETRY: Status.FAILED}[kind]
    fields = {"node": "a", "principal": AGENT, "plan_sha256": plan, "data": {FIELD: "night"}, **changes}
    standing = Standing(
        status=status, plan_sha256=plan, attempt=attempt, matter=Matter(node=node), receipt=receipt, at=at
    )
    return judge(request_of(RUN, kind, **fields), standing, rules=rules)


def receipt(**changes: Any) -> Receipt:
    return receipt_of(RUN, "a", SHA).model_copy(update=changes)


def test_a_receipt_of_a_human_lets_its_subject_approve_that_plan() -> None:
    answer = used(receipt())
    assert isinstance(answer, Accepted)
    assert (answer.rule, answer.receipt) == ("default.human-approve", receipt())


ENDED = {"ended_by": "somebody's"}
DENIES_BY_RULE = (Rule(id="no-ada", verdict=Verdict.DENY, principal_kind="human", action="approve"), *DEFAULT_RULES)
OTHER_RULE = (Rule(id="ours", verdict=Verdict.ALLOW, principal_kind="human", action="approve"), *DEFAULT_RULES)


@pytest.mark.parametrize(
    ("changes", "how", "code", "says"),
    [
        (None, {}, Code.RECEIPT_UNKNOWN, "has no receipt night"),
        ({"state": ReceiptState.USED, **ENDED}, {}, Code.RECEIPT_CONSUMED, "was used already, by request somebody's"),
        ({"state": ReceiptState.REVOKED, **ENDED}, {}, Code.RECEIPT_REJECTED, "was taken back"),
        ({}, {"at": LATER}, Code.RECEIPT_EXPIRED, f"until {LATER}"),
        ({}, {"at": instant(EPOCH_MS - 1)}, Code.RECEIPT_EXPIRED, "was good from"),
        ({"approver": "agent:other"}, {}, Code.RECEIPT_NOT_HUMAN, "given by agent:other, which only a human may"),
        ({}, {"node": GATE}, Code.RECEIPT_NOT_HUMAN, "presented at a gate by agent:night"),
        ({"subject": HUMAN}, {"principal": HUMAN}, Code.RECEIPT_WRONG_APPROVER, "given by human:ada to human:ada"),
        ({}, {"rules": DENIES_BY_RULE}, Code.RECEIPT_WRONG_APPROVER, "may not approve this (rule no-ada)"),
        ({"subject": "agent:other"}, {}, Code.RECEIPT_MISMATCH, "is for agent:other, used by agent:night"),
        ({"action": Action.RETRY, "attempt": 0}, {}, Code.RECEIPT_MISMATCH, "is for action retry, not approve"),
        ({"node": "b"}, {}, Code.RECEIPT_MISMATCH, f"is for resource {RUN}/b, not {RUN}/a"),
        ({"plan_sha256": OTHER}, {}, Code.RECEIPT_MISMATCH, f"is for plan {OTHER}, not {SHA}"),
        ({}, {"rules": OTHER_RULE}, Code.RECEIPT_MISMATCH, "is for rule default.human-approve, not ours"),
        (
            {"action": Action.RETRY, "rule": "default.human-retry", "attempt": 1},
            {"kind": RequestKind.RETRY, "attempt": 2},
            Code.RECEIPT_MISMATCH,
            "is for attempt 1, not 2",
        ),
    ],
)
def test_each_reason_to_refuse_a_receipt_has_its_own_code(
    changes: dict[str, Any] | None, how: dict[str, Any], code: Code, says: str
) -> None:
    refused = used(None if changes is None else receipt(**changes), **how)
    assert isinstance(refused, Refused)
    assert (refused.code, EXIT_CODES[refused.code]) == (code, 4 if code is Code.RECEIPT_UNKNOWN else 5)
    assert says in refused.what


def test_a_receipt_opens_a_gate_to_a_human_alone() -> None:
    two = receipt(subject="human:bob")
    assert isinstance(used(two, node=GATE, principal="human:bob"), Accepted)
    anyone = (Rule(id="all", verdict=Verdict.ALLOW), *DEFAULT_RULES)
    for given in ({FIELD: "night"}, {}):
        refused = used(receipt(rule="all"), node=GATE, rules=anyone, data=given)
        assert isinstance(refused, Refused), "whatever the rules say"


def test_a_rule_that_denies_the_subject_is_not_passed_by_a_receipt() -> None:
    no_agents = (Rule(id="no-agents", verdict=Verdict.DENY, principal_kind="agent"), *DEFAULT_RULES)
    refused = used(receipt(), rules=no_agents)
    assert isinstance(refused, Refused)
    assert (refused.code, "(rule no-agents)" in refused.what) == (Code.CONFLICT, True)


def test_where_a_rule_asks_a_receipt_is_what_is_asked_for() -> None:
    asks = (Rule(id="ask-agents", verdict=Verdict.ASK, principal_kind="agent", action="retry"), *DEFAULT_RULES)
    without = used(None, kind=RequestKind.RETRY, rules=asks, data={})
    assert isinstance(without, Refused)
    assert f"hostler receipt create {RUN} a" in without.todo
    leave = receipt(action=Action.RETRY, rule="default.human-retry", attempt=0)
    assert isinstance(used(leave, kind=RequestKind.RETRY, rules=asks), Accepted)


def made(before: Receipt | None = None, *, status: Status = Status.APPROVAL_REQUIRED, **changes: Any) -> Any:
    """Judge a request to make a receipt."""
    data = {FIELD: "night", "subject": AGENT, "action": "approve", "lasts_ms": 1000, **changes.pop("data", {})}
    fields = {"node": "a", "plan_sha256": SHA, "data": data, **changes}
    standing = Standing(status=status, plan_sha256=SHA, matter=Matter(node=PAID), receipt=before, at=STAMP.at)
    return judge(request_of(RUN, RequestKind.RECEIPT, **fields), standing)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"before": receipt()}, Code.RECEIPT_COLLISION),
        ({"before": receipt(state=ReceiptState.USED)}, Code.RECEIPT_COLLISION),
        ({"data": {"subject": HUMAN}}, Code.RECEIPT_WRONG_APPROVER),
        ({"principal": AGENT}, Code.CONFLICT),
        ({"plan_sha256": OTHER}, Code.CONFLICT),
        ({"plan_sha256": None}, Code.CONFLICT),
        ({"status": Status.COMPLETED}, Code.CONFLICT),
        ({"data": {"subject": "root"}}, Code.INVALID_DATA),
        ({"data": {"action": "settle"}}, Code.INVALID_DATA),
        ({"data": {"lasts_ms": 0}}, Code.INVALID_DATA),
        ({"data": {"lasts_ms": True}}, Code.INVALID_DATA),
        ({"data": {"lasts_ms": 31 * 86_400_000}}, Code.INVALID_DATA),
        ({"data": {FIELD: ""}}, Code.INVALID_DATA),
    ],
)
def test_a_receipt_that_would_be_worth_nothing_is_not_made(how: dict[str, Any], code: Code) -> None:
    assert isinstance(made(), Accepted)
    refused = made(**how)
    assert isinstance(refused, Refused)
    assert refused.code is code


def test_an_approver_that_the_rules_call_an_agent_is_not_human_whatever_they_allow() -> None:
    anyone = (Rule(id="all", verdict=Verdict.ALLOW), *DEFAULT_RULES)
    data = {FIELD: "night", "subject": "agent:b", "action": "approve", "lasts_ms": 1000}
    request = request_of(RUN, RequestKind.RECEIPT, node="a", plan_sha256=SHA, principal=AGENT, data=data)
    standing = Standing(status=Status.APPROVAL_REQUIRED, plan_sha256=SHA, matter=Matter(node=PAID), at=STAMP.at)
    refused = judge(request, standing, rules=anyone)
    assert isinstance(refused, Refused)
    assert refused.code is Code.RECEIPT_NOT_HUMAN


@pytest.mark.parametrize(
    ("before", "code"),
    [
        (None, Code.RECEIPT_UNKNOWN),
        (receipt(state=ReceiptState.USED, **ENDED), Code.RECEIPT_CONSUMED),
        (receipt(state=ReceiptState.REVOKED, **ENDED), Code.RECEIPT_REJECTED),
    ],
)
def test_only_a_receipt_that_is_open_can_be_taken_back(before: Receipt | None, code: Code) -> None:
    request = request_of(RUN, RequestKind.REVOKE, data={FIELD: "night"})
    refused = judge(request, Standing(receipt=before, at=LATER))
    assert isinstance(refused, Refused)
    assert refused.code is code
    assert isinstance(judge(request, Standing(receipt=receipt(), at=LATER)), Accepted)
    by_agent = request.model_copy(update={"principal": AGENT})
    assert isinstance(judge(by_agent, Standing(receipt=receipt(), at=LATER)), Refused)


def test_one_changed_byte_of_a_plan_or_its_arguments_is_refused_in_1000_of_1000() -> None:
    """Counted: neither an approval nor a receipt for one plan counts for another, however little they differ."""
    chance = random.Random(6)
    frozen = node_plan(RUN, "a", {"argv": ["pay", "--amount", "17.00", "--to", "acme"], "stdin": "größer"})
    leave = receipt(plan_sha256=frozen.sha256)
    approval = request_of(RUN, RequestKind.APPROVE, node="a", plan_sha256=frozen.sha256)
    assert encode(frozen.plan) == frozen.data
    refused = 0
    for _ in range(1000):
        place, value = chance.randrange(len(frozen.data)), chance.randrange(1, 256)
        changed = bytearray(frozen.data)
        changed[place] ^= value
        waits = digest_bytes(Domain.NODE_PLAN, bytes(changed))
        standing = Standing(
            status=Status.APPROVAL_REQUIRED, plan_sha256=waits, matter=Matter(node=PAID), receipt=leave, at=STAMP.at
        )
        by_person = judge(approval, standing)
        by_agent = judge(
            _with_receipt(approval.model_copy(update={"plan_sha256": chance.choice([waits, frozen.sha256])})), standing
        )
        refused += isinstance(by_person, Refused) and isinstance(by_agent, Refused)
    assert refused == 1000


def _with_receipt(request: Request) -> Request:
    return request.model_copy(update={"principal": AGENT, "data": {FIELD: "night"}})
