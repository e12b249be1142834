"""What people ask: approve, deny, cancel, retry, replay, settle; and what is refused."""

import pytest

from actors.actions import Judge
from actors.outcomes import Aborted
from store.contracts import Request, RequestKind
from store.lifecycle import RunStatus, Status
from store.policy import FailureCode
from tests.actors.support import Drive, Model, code, dispatched, gate, kinds, left, paid, planned, rule, writing


def begun(*nodes, **options) -> Drive:
    drive = Drive(Model(nodes), **options)
    drive.begin()
    return drive


def test_a_paid_node_rests_until_its_exact_plan_is_approved_and_then_runs_once():
    drive = begun(paid("a"))
    assert drive.state.status is RunStatus.APPROVAL_REQUIRED
    assert not dispatched(drive.after)
    again = drive.crash()
    again.begin()
    assert dispatched(again.approve("a")) == ["a"]
    (grant,) = again.model.grants
    assert grant.plan_sha256 == again.state.nodes["a"].record.plan_sha256
    assert left(again.returned("a")).status is RunStatus.COMPLETED


def test_approval_and_grant_are_one_transaction():
    drive = begun(paid("a"))
    drive.approve("a")
    (used,) = [transaction for transaction in drive.model.transactions if transaction.grants]
    assert used.consumed
    assert [event.kind.value for event in used.events][:2] == ["request", "grant"]


def test_an_approval_of_another_plan_is_refused_and_nothing_starts():
    drive = begun(paid("a"))
    drive.request(RequestKind.APPROVE, "a", plan_sha256="f" * 64)
    assert drive.status("a") is Status.APPROVAL_REQUIRED
    assert drive.model.events("request-refused", "a")
    assert not drive.model.waiting


@pytest.mark.parametrize("principal", ["agent:a", "service:cron"])
def test_only_a_human_approves(principal):
    drive = begun(paid("a"))
    drive.approve("a", principal=principal)
    assert drive.status("a") is Status.APPROVAL_REQUIRED


def test_an_approval_given_twice_is_used_once():
    drive = begun(paid("a"), planned("z"))
    drive.approve("a")
    drive.returned("a")
    drive.approve("a")
    assert len(drive.model.grants) == 1
    assert drive.model.events("request-refused", "a")


def test_a_denied_node_fails_and_what_depends_on_it_is_skipped():
    drive = begun(paid("a"), planned("b", "a"))
    plan = drive.state.nodes["a"].record.plan_sha256
    drive.request(RequestKind.DENY, "a", plan_sha256=plan, reason="too dear")
    assert drive.statuses() == {"a": "failed", "b": "skipped"}
    failure = drive.state.nodes["a"].record.failure
    assert failure.code is FailureCode.AUTHORIZATION_REQUIRED
    assert "too dear" in failure.message


def test_one_unapproved_node_does_not_hold_up_the_others_and_all_that_waits_is_reported_together():
    """R7."""
    drive = begun(paid("a"), paid("b"), planned("c"), planned("d", "c"), release_at_rest=True)
    drive.returned("c")
    gone = left(drive.returned("d"))
    assert gone.status is RunStatus.APPROVAL_REQUIRED
    assert gone.counts["resting"] == 2


def test_an_approval_while_the_run_is_active_is_taken_up_at_once():
    """R7."""
    drive = begun(paid("a"), writing("long"))
    assert dispatched(drive.approve("a")) == ["a"]


def test_a_gate_is_completed_by_a_grant_alone():
    drive = begun(gate("ok"), planned("b", "ok"))
    assert drive.status("ok") is Status.APPROVAL_REQUIRED
    assert dispatched(drive.approve("ok", reason="looks good")) == ["b"]
    assert drive.model.outputs["ok"] == {"approved_by": "human:ann", "reason": "looks good"}


def test_a_retry_reopens_a_failed_node_and_what_was_skipped_for_it():
    drive = begun(planned("a"), planned("b", "a"), planned("x"), planned("c", "a", "x"))
    drive.failed("x")
    drive.failed("a")
    again = drive.crash(jobs=8)
    again.begin()
    assert again.state.status is RunStatus.FAILED


def test_a_retry_leaves_alone_what_another_failure_keeps_skipped():
    drive = begun(planned("a"), planned("b", "a"), planned("x"), planned("c", "a", "x"), writing("long"))
    drive.failed("x")
    drive.failed("a")
    drive.request(RequestKind.RETRY, "a")
    assert drive.statuses() == {"a": "running", "b": "pending", "c": "skipped", "x": "failed", "long": "running"}
    drive.returned("a")
    assert drive.status("b") is Status.RUNNING
    drive.request(RequestKind.RETRY, "x")
    drive.returned("x")
    assert drive.status("c") is Status.RUNNING
    assert drive.state.nodes["a"].record.attempt == 2


def test_completed_nodes_are_not_retried():
    drive = begun(planned("a"), writing("long"))
    drive.returned("a")
    drive.request(RequestKind.RETRY, "a")
    assert drive.status("a") is Status.COMPLETED
    assert drive.model.events("request-refused", "a")


def test_interrupted_trusted_code_runs_again_only_by_a_replay_grant_for_the_next_attempt():
    """R13."""
    drive = begun(code("a"))
    drive.returned("a", Aborted(reason="timeout"))
    assert drive.state.status is RunStatus.AMBIGUOUS_CODE
    assert dispatched(drive.request(RequestKind.REPLAY, "a")) == ["a"]
    assert drive.model.grants[0].attempt == 2


@pytest.mark.parametrize(
    ("data", "becomes"),
    [
        ({"outcome": "completed", "value": {"id": 7}}, Status.COMPLETED),
        ({"outcome": "failed"}, Status.FAILED),
        ({"outcome": "retry"}, Status.RUNNING),
    ],
)
def test_a_person_settles_what_is_ambiguous(data, becomes):
    drive = begun(paid("a"))
    drive.approve("a")
    drive.failed("a")
    assert drive.state.status is RunStatus.AMBIGUOUS
    drive.request(RequestKind.SETTLE, "a", data=data)
    assert drive.status("a") is becomes


@pytest.mark.parametrize("node", [None, "a"])
@pytest.mark.parametrize(
    ("data", "becomes"),
    [
        ({"outcome": "completed", "value": {"id": 7}}, Status.COMPLETED),
        ({"outcome": "failed"}, Status.FAILED),
        ({"outcome": "retry"}, Status.CANCELLED),
    ],
)
def test_what_was_cancelled_while_nobody_knew_whether_it_happened_is_settled_and_never_made_again(node, data, becomes):
    """A crash between the two does not forget it; what waited for it is cancelled either way."""
    drive = begun(paid("a"), planned("z", "a"))
    drive.approve("a")
    drive.failed("a")
    drive.request(RequestKind.CANCEL, node)
    assert (drive.status("a"), drive.status("z")) == (Status.AMBIGUOUS, Status.CANCELLED)
    later = drive.crash()
    later.begin()
    assert not dispatched(later.request(RequestKind.SETTLE, "a", data=data))
    assert later.status("a") is becomes
    assert left(later.after).status is RunStatus.CANCELLED


def test_nothing_starts_while_a_request_that_was_waiting_is_being_judged():
    model = Model([writing("a")])
    request = Request(
        request_id="r",
        run_id=Drive(model).state.run_id,
        kind=RequestKind.CANCEL,
        principal="human:ann",
        at="2026-01-01T00:00:00.000Z",
    )
    assert model.post(request)
    drive = Drive(model)
    (case,) = kinds(drive.begin(), Judge)
    assert left(drive.send(rule(case))).status is RunStatus.CANCELLED
    assert not dispatched([*drive.now, *drive.after])


def test_a_request_seen_twice_is_judged_once():
    drive = begun(paid("a"))
    assert not drive.model.waiting
    drive.approve("a")
    consumed = [one for transaction in drive.model.transactions for one in transaction.consumed]
    assert len(consumed) == len(set(consumed)) == 1


def test_a_host_that_only_settles_requests_starts_nothing_and_hands_the_run_back():
    model = Model([paid("a"), writing("b")])
    drive = Drive(model, jobs=1)
    drive.begin()
    drive.returned("b")
    request = Request(
        request_id="r",
        run_id=drive.state.run_id,
        kind=RequestKind.APPROVE,
        node="a",
        plan_sha256=model.records["a"].plan_sha256,
        principal="human:ann",
        at="2026-01-01T00:00:00.000Z",
    )
    assert model.post(request)
    settling = Drive(model, jobs=0)
    (case,) = kinds(settling.begin(), Judge)
    assert left(settling.after) is None
    gone = left(settling.send(rule(case)))
    assert gone is not None
    assert not dispatched([*settling.now, *settling.after])
    assert model.records["a"].status is Status.READY


def test_the_longest_reason_of_a_denial_is_kept_and_ends_the_node():
    """The reason is as long as a request may have it; with the words before it, it is cut where the record ends."""
    drive = begun(paid("a"))
    plan_sha256 = drive.model.records["a"].plan_sha256
    drive.request(RequestKind.DENY, "a", plan_sha256=plan_sha256, reason="n" * 4000)
    assert drive.status("a") is Status.FAILED
    assert drive.model.records["a"].failure.message.startswith("denied by human:ann: nnn")
    assert drive.model.grants[0].reason == "n" * 4000
