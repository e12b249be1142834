"""The judgement of requests."""

import itertools
from typing import Any

import pytest

from hostres.errors import Code
from store.approvals import ACTIONS, Accepted, Refused, Standing, judge
from store.contracts import RequestKind
from store.lifecycle import FINAL, Status
from tests.store.support import request_of, run_id

SHA, OTHER = "a" * 64, "b" * 64
RUN = run_id()
ABOUT_RECEIPTS = {RequestKind.RECEIPT, RequestKind.REVOKE}
OF_A_NODE = sorted(set(RequestKind) - {RequestKind.ACCEPT_INCOMPATIBLE} - ABOUT_RECEIPTS)
FITTING = {
    RequestKind.APPROVE: Status.APPROVAL_REQUIRED,
    RequestKind.DENY: Status.APPROVAL_REQUIRED,
    RequestKind.CANCEL: Status.RUNNING,
    RequestKind.RETRY: Status.FAILED,
    RequestKind.REPLAY: Status.AMBIGUOUS_CODE,
    RequestKind.SETTLE: Status.AMBIGUOUS,
}


def judged(kind: RequestKind, status: Status | None = None, **changes: Any) -> Accepted | Refused:
    plan = changes.pop("stored", SHA)
    fields = {"node": "a", "plan_sha256": SHA, **changes}
    return judge(request_of(RUN, kind, **fields), Standing(status=status or FITTING[kind], plan_sha256=plan))


@pytest.mark.parametrize("kind", OF_A_NODE)
def test_a_human_who_names_what_waits_is_accepted_by_a_rule_and_nobody_else_is(kind: RequestKind) -> None:
    accepted = judged(kind)
    assert isinstance(accepted, Accepted)
    assert accepted.rule == f"default.human-{ACTIONS[kind]}"
    for principal in ("agent:x", "service:hostler", "nobody"):
        refused = judged(kind, principal=principal)
        assert isinstance(refused, Refused)
        assert refused.code is Code.CONFLICT
        assert principal in refused.what


def test_where_nothing_waits_for_an_answer_there_is_nothing_to_answer() -> None:
    several = {RequestKind.CANCEL: set(Status) - FINAL, RequestKind.RETRY: {Status.FAILED, Status.BLOCKED}}
    for kind, status in itertools.product(OF_A_NODE, Status):
        answer = judged(kind, status)
        assert isinstance(answer, Accepted) is (status in several.get(kind, {FITTING[kind]})), (kind, status)
        if isinstance(answer, Refused):
            assert answer.code is Code.CONFLICT
            assert f"node a is {status}" in answer.what


def test_a_wrong_plan_is_refused_naming_both() -> None:
    for kind in (RequestKind.APPROVE, RequestKind.DENY, RequestKind.REPLAY):
        refused = judged(kind, plan_sha256=OTHER)
        assert isinstance(refused, Refused)
        assert refused.code is Code.CONFLICT
        assert SHA in refused.what
        assert OTHER in refused.what
        assert isinstance(judged(kind, stored=None), Refused)


def test_an_approval_always_names_its_plan() -> None:
    for kind in (RequestKind.APPROVE, RequestKind.DENY):
        refused = judged(kind, plan_sha256=None)
        assert isinstance(refused, Refused)
        assert SHA in refused.what
    assert isinstance(judged(RequestKind.RETRY, plan_sha256=None), Accepted)


def test_only_a_cancel_and_the_acceptance_of_missing_code_can_be_about_the_whole_run() -> None:
    for kind in set(RequestKind) - ABOUT_RECEIPTS:
        request = request_of(RUN, kind, node=None)
        answer = judge(request, Standing())
        assert isinstance(answer, Accepted) is (kind in {RequestKind.CANCEL, RequestKind.ACCEPT_INCOMPATIBLE})


def test_only_a_person_may_accept_missing_code_and_only_for_a_whole_run() -> None:
    accept = request_of(RUN, RequestKind.ACCEPT_INCOMPATIBLE)
    assert judge(accept, Standing()) == Accepted(rule="default.human-cancel")
    for principal in ("agent:x", "service:hostler"):
        by_another = accept.model_copy(update={"principal": principal})
        assert isinstance(judge(by_another, Standing()), Refused)
    of_a_node = accept.model_copy(update={"node": "a"})
    for status in Status:
        assert isinstance(judge(of_a_node, Standing(status=status)), Refused)
