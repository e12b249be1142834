"""Reconciliation: what an attempt did is found out once, under a lease of its own, or left to a later owner."""

import pytest

from actors.actions import (
    Abort,
    AnswerPublication,
    AskMachine,
    EndLeftovers,
    PublicationAllowed,
    PublicationRefused,
    Reconcile,
    SetTimer,
    WithdrawAsk,
)
from actors.messages import Admitted, Drain, Due, LeftoversEnded, NotAdmitted, PublicationWanted, Returned
from actors.outcomes import Aborted, Failed, Finding, Found
from actors.scheduling.operators import as_value
from actors.scheduling.retrying import RETRY
from actors.scheduling.state import Port
from hostres.errors import Code
from store.amounts import Budget
from store.contracts import RequestKind
from store.lifecycle import RunStatus, Status
from store.plans import RunLimits
from store.policy import Effect, FailureCode, Policy, Resume, Retry
from tests.actors.support import Drive, Model, dispatched, kinds, left, planned

PORTS = {("test.work", 1): frozenset({Port.RECONCILE})}
RECOVERABLE = (Resume.VERIFIED_RECEIPT, Resume.RECOVERABLE_TRANSACTION)
UNKNOWABLE = (Resume.AMBIGUOUS_AFTER_DISPATCH, Resume.NON_RESUMABLE_LIVE)
LOST = Failed(code=FailureCode.PROVIDER_TRANSIENT, message="connection lost", todo="")


class Mailbox:
    def __init__(self) -> None:
        self.told: list = []

    def tell(self, message) -> None:
        self.told.append(message)


def node(resume: Resume, **policy):
    return planned("a", policy=Policy(effect=Effect.PROJECT_MUTATION, resume=resume, **policy))


def running(resume: Resume = Resume.VERIFIED_RECEIPT, *, gate: bool = True, **policy) -> Drive:
    made = Drive(Model([node(resume, **policy), planned("b", "a")]), ports=PORTS)
    made.begin()
    if policy.get("claims"):
        made.admitted("a")
    if gate:
        made.send(PublicationWanted(node="a", attempt=1, reply_to=Mailbox()))
    return made


def taken_over(made: Drive) -> Drive:
    again = made.crash(ports=PORTS)
    again.begin()
    (asked,) = kinds(again.now, EndLeftovers)
    again.send(LeftoversEnded(nodes=asked.nodes, ended={}, remaining={}))
    return again


def found(made: Drive, outcome) -> list:
    return made.send(Returned(node="a", attempt=1, outcome=outcome, release=None, reconciling=True))


def test_an_error_after_the_gate_is_reconciled_once_and_what_it_did_is_kept():
    """R10."""
    made = running()
    actions = made.returned("a", LOST)
    assert [(each.attempt, each.gate_passed) for each in kinds(actions, Reconcile)] == [(1, True)]
    assert made.status("a") is Status.RUNNING
    found(made, as_value({"id": 7}))
    assert made.status("a") is Status.COMPLETED
    assert made.state.outputs["a"] == {"id": 7}
    assert dispatched(made.now) == ["b"]
    assert len(kinds(made.after, Reconcile)) == 1


@pytest.mark.parametrize("resume", RECOVERABLE)
def test_an_error_before_the_gate_needs_no_reconciliation(resume):
    made = running(resume, gate=False)
    assert not kinds(made.returned("a", LOST), Reconcile)
    assert made.status("a") is Status.FAILED


@pytest.mark.parametrize("resume", [*RECOVERABLE, *UNKNOWABLE])
def test_an_interrupted_attempt_is_reconciled_by_the_next_owner(resume):
    again = taken_over(running(resume))
    assert kinds(again.after, Reconcile)
    found(again, as_value({}))
    assert again.status("a") is Status.COMPLETED
    assert again.state.nodes["a"].record.attempt == 1


@pytest.mark.parametrize(
    ("resume", "finding", "becomes"),
    [
        (Resume.VERIFIED_RECEIPT, Finding.RETRY, Status.RUNNING),
        (Resume.RECOVERABLE_TRANSACTION, Finding.RETRY, Status.RUNNING),
        (Resume.AMBIGUOUS_AFTER_DISPATCH, Finding.RETRY, Status.AMBIGUOUS),
        (Resume.NON_RESUMABLE_LIVE, Finding.RETRY, Status.AMBIGUOUS),
        (Resume.VERIFIED_RECEIPT, Finding.AMBIGUOUS, Status.INCOMPATIBLE),
        (Resume.RECOVERABLE_TRANSACTION, Finding.AMBIGUOUS, Status.INCOMPATIBLE),
        (Resume.AMBIGUOUS_AFTER_DISPATCH, Finding.AMBIGUOUS, Status.AMBIGUOUS),
        (Resume.NON_RESUMABLE_LIVE, Finding.AMBIGUOUS, Status.AMBIGUOUS),
        *((resume, Finding.INCOMPATIBLE, Status.INCOMPATIBLE) for resume in (*RECOVERABLE, *UNKNOWABLE)),
    ],
)
def test_every_finding_has_its_answer_in_every_class(resume, finding, becomes):
    again = taken_over(running(resume))
    found(again, Found(finding=finding, message="because"))
    assert again.status("a") is becomes
    assert again.state.nodes["a"].record.attempt == (2 if becomes is Status.RUNNING else 1)


def test_a_reconciliation_has_a_machine_lease_of_its_own():
    again = taken_over(running(claims={"ffmpeg": 1}))
    (ask,) = kinds(again.after, AskMachine)
    assert (ask.number, dict(ask.claims)) == (1, {"ffmpeg": 1})
    assert not kinds(again.after, Reconcile)
    again.send(Admitted(node="a", number=1, ticket=9, admitted_boot_ns=1))
    assert kinds(again.after, Reconcile)
    assert again.model.events("node-running", "a")[-1]["reconciling"] is True


@pytest.mark.parametrize("outcome", [LOST, Aborted(reason="timeout")])
def test_a_reconciliation_that_fails_leaves_the_node_running_for_a_later_owner(outcome):
    made = running()
    made.returned("a", LOST)
    actions = found(made, outcome)
    gone = left(actions)
    assert gone is not None
    assert gone.drained
    assert gone.status is RunStatus.RUNNING
    assert made.model.records["a"].status is Status.RUNNING
    again = taken_over(made)
    found(again, as_value({}))
    assert again.status("a") is Status.COMPLETED


def test_what_else_can_go_on_does_before_the_run_is_handed_back():
    made = Drive(Model([node(Resume.VERIFIED_RECEIPT), planned("z")]), ports=PORTS)
    made.begin()
    made.send(PublicationWanted(node="a", attempt=1, reply_to=Mailbox()))
    made.returned("a", LOST)
    assert left(found(made, LOST)) is None
    assert left(made.returned("z")) is not None


def test_a_reconciliation_that_hangs_is_stopped_at_its_deadline_and_given_up_on():
    """R11."""
    made = running()
    made.returned("a", LOST)
    timers = [action.timer for action in kinds(made.after, SetTimer) if action.timer.kind == "deadline"]
    actions = made.send(Due(timer=timers[-1]))
    assert [(each.reason, each.reconciling) for each in kinds(actions, Abort)] == [("timeout", True)]
    (overdue,) = [action.timer for action in kinds(actions, SetTimer) if action.timer.kind == "overdue"]
    assert left(made.send(Due(timer=overdue))) is not None
    assert made.model.records["a"].status is Status.RUNNING


def test_a_deadline_of_the_attempt_that_crosses_its_end_does_not_stop_the_reconciliation():
    made = running(claims={"ffmpeg": 1})
    (deadline,) = [action.timer for action in kinds(made.after, SetTimer) if action.timer.kind == "deadline"]
    made.returned("a", LOST)
    assert not kinds(made.send(Due(timer=deadline)), Abort)
    made.admitted("a")
    assert not kinds(made.send(Due(timer=deadline)), Abort)
    found(made, as_value({}))
    assert made.status("a") is Status.COMPLETED


def test_a_machine_without_room_defers_and_so_does_one_that_refuses():
    for how in ("wait", "refuse"):
        again = taken_over(running(claims={"ffmpeg": 1}))
        if how == "wait":
            (timer,) = [action.timer for action in kinds(again.after, SetTimer) if action.timer.kind == "wait"]
            actions = again.send(Due(timer=timer))
            assert kinds(actions, WithdrawAsk)
        else:
            message = NotAdmitted(node="a", number=1, code=Code.INVALID_CLAIMS, message="never fits", todo="")
            actions = again.send(message)
        assert left(actions) is not None
        assert again.model.records["a"].status is Status.RUNNING


def test_a_cancelled_run_may_still_adopt_what_was_done():
    made = running()
    made.returned("a", LOST)
    actions = made.request(RequestKind.CANCEL)
    assert not kinds(actions, Abort)
    found(made, as_value({}))
    assert made.statuses() == {"a": "completed", "b": "cancelled"}
    assert made.state.status is RunStatus.CANCELLED


def test_in_a_cancelled_run_what_was_not_done_is_not_done_again():
    made = running()
    made.request(RequestKind.CANCEL)
    made.returned("a", Aborted(reason="cancel"))
    found(made, Found(finding=Finding.RETRY))
    assert made.status("a") is Status.CANCELLED


def test_a_drained_host_leaves_it_to_the_next_one():
    made = running()
    made.send(Drain(grace_s=1))
    assert left(made.returned("a", LOST)) is not None
    assert not kinds(made.after, Reconcile)
    waiting = taken_over(running(claims={"ffmpeg": 1}))
    actions = waiting.send(Drain(grace_s=1))
    assert kinds(actions, WithdrawAsk)
    assert left(actions) is not None


def test_a_late_result_of_the_attempt_does_not_settle_its_reconciliation():
    made = running()
    made.returned("a", LOST)
    made.returned("a", as_value({"late": True}), attempt=1)
    assert made.status("a") is Status.RUNNING
    assert made.model.events("late-result")


def test_only_the_reconciliation_may_write_while_it_runs():
    made = running()
    made.returned("a", LOST)
    mailbox = Mailbox()
    late = made.send(PublicationWanted(node="a", attempt=1, reply_to=mailbox))
    ours = made.send(PublicationWanted(node="a", attempt=1, reply_to=mailbox, reconciling=True))
    assert isinstance(kinds(late, AnswerPublication)[0].answer, PublicationRefused)
    assert isinstance(kinds(ours, AnswerPublication)[0].answer, PublicationAllowed)


def test_without_a_reconciler_what_may_have_been_written_is_incompatible():
    made = Drive(Model([node(Resume.VERIFIED_RECEIPT)]))
    made.begin()
    made.send(PublicationWanted(node="a", attempt=1, reply_to=Mailbox()))
    made.returned("a", LOST)
    assert made.status("a") is Status.INCOMPATIBLE


def test_a_host_that_only_settles_requests_finds_nothing_out():
    for options in ({"ports": PORTS, "jobs": 0}, {"jobs": 0}):
        again = running().crash(**options)
        if "ports" not in options:
            again.state.ports = {}
        again.begin()
        again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
        assert not kinds(again.after, Reconcile)
        assert again.model.records["a"].status is Status.RUNNING
        assert again.state.left


def retried(node: str, made: Drive) -> list:
    (timer,) = [action.timer for action in kinds(made.now, SetTimer) if action.timer.kind == RETRY]
    return made.send(Due(timer=timer))


NOTHING_DONE = Found(finding=Finding.RETRY)
FAILURES = (LOST, Aborted(reason="timeout"), Aborted(reason="stall"))


@pytest.mark.parametrize("outcome", FAILURES)
@pytest.mark.parametrize(("exhausted", "ends"), [("fail", Status.FAILED), ("block", Status.BLOCKED)])
def test_an_attempt_that_failed_and_did_nothing_ends_its_node_where_no_try_is_left(outcome, exhausted, ends):
    """One rule for every next try: a finding does not go round it."""
    made = running(retry=Retry(attempts=2, exhausted=exhausted))
    for attempt in (1, 2):
        made.returned("a", outcome)
        assert made.status("a") is Status.RUNNING
        actions = made.send(Returned(node="a", attempt=attempt, outcome=NOTHING_DONE, release=None, reconciling=True))
        if attempt == 1:
            assert dispatched(actions) == ["a"]
            made.send(PublicationWanted(node="a", attempt=2, reply_to=Mailbox()))
    assert made.status("a") is ends
    record = made.model.records["a"]
    assert (record.attempt, record.failures) == (2, 2)
    assert record.failure is not None
    assert record.failure.code is not FailureCode.INCOMPATIBLE


def test_the_next_try_of_what_did_nothing_is_put_off_as_its_policy_or_the_failure_says():
    for retry, after_s, seconds in ((Retry(attempts=2, delays=(7.0,)), None, 7.0), (Retry(attempts=2), 9.0, 9.0)):
        made = running(retry=retry)
        made.returned("a", Failed(code=LOST.code, message="later", todo="", after_s=after_s))
        found(made, NOTHING_DONE)
        assert made.status("a") is Status.CORRECTIVE
        assert [each.seconds for each in kinds(made.now, SetTimer) if each.timer.kind == RETRY] == [seconds]
        assert dispatched(retried("a", made)) == ["a"]


def test_what_is_no_failure_that_may_pass_is_not_made_again_because_it_did_nothing():
    made = running(retry=Retry(attempts=16))
    made.returned("a", Failed(code=FailureCode.INTERNAL, message="a key that is not there", todo=""))
    found(made, NOTHING_DONE)
    assert made.status("a") is Status.FAILED
    assert made.model.records["a"].failure.message == "a key that is not there"
    assert made.status("b") is Status.SKIPPED


def test_each_retry_of_what_did_nothing_costs_one_of_the_budgets_and_none_is_made_beyond_them():
    limits = RunLimits(budget=Budget(retries=1))
    nodes = [node(Resume.VERIFIED_RECEIPT, retry=Retry(attempts=9))]
    made = Drive(Model(nodes, limits=limits), ports=PORTS)
    made.begin()
    for attempt in (1, 2):
        made.send(PublicationWanted(node="a", attempt=attempt, reply_to=Mailbox()))
        made.returned("a", LOST)
        made.send(Returned(node="a", attempt=attempt, outcome=NOTHING_DONE, release=None, reconciling=True))
    assert made.status("a") is Status.FAILED
    assert "is not tried again" in made.model.records["a"].failure.message
    assert made.state.shares is not None
    assert made.state.shares.books.left(None, "retries") == 0


@pytest.mark.parametrize("outcome", [*FAILURES, Aborted(reason="timeout", left=("ffmpeg",))])
def test_a_failure_counts_too_where_a_later_owner_finds_out_that_it_did_nothing(outcome):
    """The failure was durable before anybody was asked; only an interruption is no failure."""
    made = running()
    made.returned("a", outcome)
    assert made.model.records["a"].failure is not None
    again = taken_over(made)
    found(again, NOTHING_DONE)
    assert again.status("a") is Status.FAILED
    assert again.model.records["a"].attempt == 1


def test_what_was_interrupted_and_did_nothing_is_made_again_and_counts_as_no_failure():
    limits = RunLimits(budget=Budget(retries=0))
    made = Drive(Model([node(Resume.VERIFIED_RECEIPT)], limits=limits), ports=PORTS)
    made.begin()
    for attempt in (1, 2, 3):
        made.send(PublicationWanted(node="a", attempt=attempt, reply_to=Mailbox()))
        if attempt == 2:
            made.send(Drain(grace_s=0))
            made.returned("a", Aborted(reason="drain"))
        made = taken_over(made)
        made.send(Returned(node="a", attempt=attempt, outcome=NOTHING_DONE, release=None, reconciling=True))
        assert (made.status("a"), made.model.records["a"].attempt) == (Status.RUNNING, attempt + 1)
    assert made.model.records["a"].failures == 0


def test_what_gave_itself_up_and_did_nothing_is_cancelled():
    made = running()
    made.returned("a", Aborted(reason="cancel"))
    found(made, NOTHING_DONE)
    assert made.status("a") is Status.CANCELLED


def test_whoever_asks_for_another_try_of_it_is_not_bound_by_its_policy():
    made = running()
    made.request(RequestKind.RECOVER, "a")
    made.returned("a", Aborted(reason="recover"))
    assert dispatched(found(made, NOTHING_DONE)) == ["a"]


def test_a_recovery_of_what_had_failed_and_could_not_be_found_out_makes_it_again():
    made = Drive(Model([node(Resume.VERIFIED_RECEIPT), planned("z")]), ports=PORTS)
    made.begin()
    made.send(PublicationWanted(node="a", attempt=1, reply_to=Mailbox()))
    made.returned("a", LOST)
    found(made, LOST)
    made.request(RequestKind.RECOVER, "a")
    made.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert dispatched(found(made, NOTHING_DONE)) == ["a"]


@pytest.mark.parametrize("message", ["x" * 5000, "\ud800"])
def test_what_a_reconciler_says_is_stored_as_far_as_it_can_be(message):
    for finding, resume in (
        (Finding.INCOMPATIBLE, Resume.VERIFIED_RECEIPT),
        (Finding.AMBIGUOUS, Resume.NON_RESUMABLE_LIVE),
    ):
        again = taken_over(running(resume))
        found(again, Found(finding=finding, message=message))
        assert again.model.records["a"].failure is not None
    made = running()
    made.returned("a", LOST)
    assert left(found(made, Failed(code=FailureCode.INTERNAL, message=message * 100, todo=""))) is not None
    (told,) = made.model.events("cleanup-error", "a")
    assert len(told["message"]) < 4100
