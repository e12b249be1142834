"""Retries: one rule, counted failures, delays that a restart keeps."""

from dataclasses import replace

import pytest

from actors.actions import SetTimer
from actors.messages import Drain, Due, LeftoversEnded, NotAdmitted
from actors.outcomes import Aborted, Failed
from actors.scheduling.retrying import RETRY
from hostres.errors import Code
from store.contracts import RequestKind
from store.lifecycle import RunStatus, Status
from store.policy import FailureCode, Policy, Resume, Retry
from tests.actors.support import Drive, Model, claiming, dispatched, kinds, left, writing


def drive(**retry) -> Drive:
    made = Drive(Model([writing("a", retry=Retry(**retry)), writing("b", "a")]))
    made.begin()
    return made


def waits(actions) -> list[float]:
    return [action.seconds for action in kinds(actions, SetTimer) if action.timer.kind == RETRY]


def due(made: Drive) -> list:
    (*_, timer) = [action.timer for action in kinds(made.now, SetTimer) if action.timer.kind == RETRY]
    return made.send(Due(timer=timer))


def test_without_a_policy_a_failure_is_final():
    made = drive()
    made.failed("a")
    assert made.statuses() == {"a": "failed", "b": "skipped"}


def test_a_retry_without_delay_starts_in_the_same_transaction():
    made = drive(attempts=2)
    before = len(made.model.transactions)
    assert dispatched(made.failed("a")) == ["a"]
    assert len(made.model.transactions) == before + 1
    made.returned("a")
    assert made.state.nodes["a"].record.attempt == 2
    assert made.status("b") is Status.RUNNING


def test_a_delayed_retry_waits_for_its_time_and_no_longer():
    made = drive(attempts=3, delays=(2.0, 5.0))
    assert waits(made.failed("a")) == [2.0]
    assert made.status("a") is Status.CORRECTIVE
    assert made.state.status is RunStatus.RUNNING
    assert dispatched(due(made)) == ["a"]
    assert waits(made.failed("a")) == [5.0]
    due(made)
    made.failed("a")
    assert made.status("a") is Status.FAILED
    assert made.state.nodes["a"].record.failures == 3


def test_the_wait_survives_a_crash_and_is_never_longer_than_it_was():
    """Field case 73."""
    made = drive(attempts=2, delays=(60.0,))
    made.failed("a")
    record = made.model.records["a"]
    assert record.due_at == "2026-01-01T00:01:02.000Z"  # a minute after the second in which it failed
    again = made.crash()
    again.clock = 31
    again.begin()
    assert waits(again.now) == [30.0]
    set_back = made.crash()
    set_back.clock = 0
    set_back.begin()
    assert waits(set_back.now) == [60.0], "by the wall it would be 61 s: a clock that was set back lengthens nothing"


def test_a_timer_of_an_earlier_try_does_not_shorten_the_wait_for_the_next():
    made = drive(attempts=3, delays=(2.0, 5.0))
    made.failed("a")
    (first,) = [action.timer for action in kinds(made.now, SetTimer) if action.timer.kind == RETRY]
    made.send(Due(timer=first))
    made.failed("a")
    assert not dispatched(made.send(Due(timer=first)))
    assert made.status("a") is Status.CORRECTIVE


def test_a_failure_whose_code_is_not_listed_is_not_tried_again():
    made = drive(attempts=5, codes=(FailureCode.UNAVAILABLE,))
    made.failed("a", FailureCode.INVALID_DATA)
    assert made.status("a") is Status.FAILED


def test_exhausted_attempts_block_where_the_policy_says_so():
    made = drive(attempts=2, exhausted="block")
    made.failed("a")
    made.failed("a")
    assert made.status("a") is Status.BLOCKED
    assert made.status("b") is Status.PENDING
    made.request(RequestKind.RETRY, "a")
    assert made.status("a") is Status.RUNNING
    assert made.state.nodes["a"].record.failures == 0


def test_an_interruption_is_no_failure():
    made = drive(attempts=2, delays=(9.0,))
    again = made.crash()
    again.begin()
    again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert again.state.nodes["a"].record.failures == 0
    assert again.status("a") is Status.RUNNING


def test_a_cancel_ends_what_waits_for_its_next_try():
    made = drive(attempts=2, delays=(9.0,))
    made.failed("a")
    made.request(RequestKind.CANCEL)
    assert made.statuses() == {"a": "cancelled", "b": "cancelled"}
    due(made)
    assert made.status("a") is Status.CANCELLED


def test_a_refused_admission_counts_as_a_failure():
    node = claiming("a")
    node = node.model_copy(update={"policy": node.policy.model_copy(update={"retry": Retry(attempts=2)})})
    made = Drive(Model([node]))
    made.begin()
    made.send(NotAdmitted(node="a", number=1, code=Code.UNAVAILABLE, message="disk full", todo="make room"))
    assert made.status("a") is Status.QUEUED
    assert made.state.nodes["a"].record.failures == 1
    made.send(NotAdmitted(node="a", number=2, code=Code.UNAVAILABLE, message="disk full", todo="make room"))
    assert made.status("a") is Status.FAILED


def test_what_may_have_happened_is_never_tried_again_by_itself():
    policy = Policy(effect="paid-cloud", resume=Resume.AMBIGUOUS_AFTER_DISPATCH, retry=Retry(attempts=9))
    node = writing("a").model_copy(update={"policy": policy})
    made = Drive(Model([node]))
    made.begin()
    made.approve("a")
    made.failed("a", FailureCode.PROVIDER_TRANSIENT)
    assert made.status("a") is Status.AMBIGUOUS


def test_a_timeout_is_retried_like_any_other_failure():
    made = drive(attempts=2)
    assert dispatched(made.returned("a", Aborted(reason="timeout"))) == ["a"]


@pytest.mark.parametrize("draining", [False, True])
def test_a_run_that_only_waits_for_a_try_is_running_until_it_is_handed_back(draining):
    made = drive(attempts=2, delays=(9.0,))
    actions = made.failed("a")
    assert left(actions) is None
    if draining:
        assert left(made.send(Drain(grace_s=1))) is not None
        assert made.model.records["a"].status is Status.CORRECTIVE


def test_a_failure_may_say_that_a_try_cannot_help_before_some_time():
    """Field case 96: a service that says when to ask again is not asked before; the policy may wait for longer."""
    made = drive(attempts=3, delays=(2.0,))
    code = FailureCode.PROVIDER_TRANSIENT
    asked = Failed(code=code, message="429", todo="", after_s=90.0)
    assert waits(made.returned("a", asked)) == [90.0]
    due(made)
    assert waits(made.returned("a", replace(asked, after_s=0.5))) == [2.0]


@pytest.mark.parametrize(
    "code",
    sorted(
        set(FailureCode) - set(Retry().codes) - {FailureCode.CANCELLED, FailureCode.AMBIGUOUS, FailureCode.INCOMPATIBLE}
    ),
)
def test_what_cannot_pass_by_itself_fails_at_once(code: FailureCode):
    """Field case 96: a missing input, a refused key, an empty account: trying the same again would cost, not help."""
    made = drive(attempts=5)
    made.returned("a", Failed(code=code, message="m", todo="", after_s=1.0))
    assert made.status("a") is Status.FAILED
