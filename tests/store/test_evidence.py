"""Evidence as a pure judgement: what is due and what was brought, and who may approve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.contracts import Failure, NodeRecord, RequestKind
from store.evidence import Shortfall, asked_status, evidence_refusal, failure_of, shortfall
from store.lifecycle import Status
from store.policy import FailureCode
from store.terms import Evidence, EvidenceType
from tests.store.support import request_of, run_id

PIECES = st.builds(Evidence, id=st.sampled_from("abc"), type=st.sampled_from(EvidenceType))
RUN = run_id()
LACKS_APPROVAL = Failure(code=FailureCode.AUTHORIZATION_REQUIRED, message="m")
RESULT = "b" * 64


@given(st.lists(PIECES), st.lists(PIECES), st.booleans())
def test_nothing_is_wanting_if_and_only_if_all_that_is_due_was_brought_or_approved_and_no_more(
    due: list[Evidence], brought: list[Evidence], approved: bool
) -> None:
    found = shortfall(due, brought, approved=approved)
    of_people = {each for each in due if each.type is EvidenceType.HUMAN_APPROVAL}
    complete = {*due} - of_people <= {*brought} and {*brought} <= {*due} and (approved or not of_people)
    assert (found is None) is complete
    if found is not None:
        assert {*found.missing} == {*due} - of_people - {*brought}
        assert {*found.unexpected} == {*brought} - {*due}
        assert {*found.unapproved} == (set() if approved else of_people)
        assert len(failure_of(found, run_id=RUN, node="a").message) <= 4000


def test_only_where_nothing_else_is_wanting_an_approval_is_waited_for() -> None:
    look, suite = (
        Evidence(id=name, type=kind) for name, kind in (("l", EvidenceType.HUMAN_APPROVAL), ("s", EvidenceType.TEST))
    )
    assert failure_of(Shortfall(unapproved=(look,)), run_id=RUN, node="a").code is FailureCode.AUTHORIZATION_REQUIRED
    for more in (Shortfall(unapproved=(look,), missing=(suite,)), Shortfall(unapproved=(look,), unexpected=(suite,))):
        assert failure_of(more, run_id=RUN, node="a").code is FailureCode.INVALID_DATA


@pytest.mark.parametrize("kind", RequestKind)
def test_only_a_blocked_result_that_lacks_nothing_but_approval_is_answered_like_a_plan(kind: RequestKind) -> None:
    blocked = NodeRecord(key="a", status=Status.BLOCKED, output_sha256=RESULT, failure=LACKS_APPROVAL)
    answers = kind in (RequestKind.APPROVE, RequestKind.DENY)
    assert asked_status(blocked, kind) is (Status.APPROVAL_REQUIRED if answers else Status.BLOCKED)
    for other in (
        {"output_sha256": None},
        {"failure": LACKS_APPROVAL.model_copy(update={"code": FailureCode.CONFLICT})},
    ):
        assert asked_status(blocked.model_copy(update=other), kind) is Status.BLOCKED


@pytest.mark.parametrize(("principal", "may"), [("human:ann", True), ("agent:a", False), ("service:cron", False)])
def test_only_a_person_approves_whatever_the_rules_of_the_machine_say(principal: str, may: bool) -> None:
    for kind in (RequestKind.APPROVE, RequestKind.DENY):
        request = request_of(RUN, kind, node="a", principal=principal)
        assert (evidence_refusal(request) is None) is may
    assert evidence_refusal(request_of(RUN, RequestKind.CANCEL, node="a", principal=principal)) is None
