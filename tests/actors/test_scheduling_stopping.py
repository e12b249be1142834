"""Cancel, deadline, drain: what each asks of running work, and what the outcome becomes."""

import itertools

import pytest

from actors.actions import (
    Abort,
    AskMachine,
    Dispatch,
    EndLeftovers,
    GiveBack,
    PublicationAllowed,
    PublicationRefused,
    SetTimer,
    TimerName,
    WithdrawAsk,
)
from actors.messages import Admitted, Begin, Drain, Due, LeftoversEnded, LogCut, PublicationWanted
from actors.outcomes import Aborted, Failed
from actors.scheduling.outcomes import settled
from store.contracts import RequestKind
from store.lifecycle import MOVES, RunStatus, Status
from store.policy import Effect, FailureCode, Resume, Retry
from tests.actors.support import Drive, Model, claiming, code, dispatched, kinds, left, paid, planned, writing


def timer(kind: str, node: str = "", attempt: int = 1) -> Due:
    return Due(timer=TimerName(kind=kind, node=node, attempt=attempt))


def begun(*nodes, **options) -> Drive:
    drive = Drive(Model(nodes), **options)
    drive.begin()
    return drive


def test_cancelling_a_run_ends_what_waits_withdraws_what_queues_and_stops_what_runs():
    """R8."""
    drive = begun(writing("runs"), claiming("queues"), writing("waits", "runs"))
    actions = drive.request(RequestKind.CANCEL)
    assert drive.statuses() == {"runs": "running", "queues": "cancelled", "waits": "cancelled"}
    assert [(abort.node, abort.reason) for abort in kinds(actions, Abort)] == [("runs", "cancel")]
    assert [withdrawn.node for withdrawn in kinds(actions, WithdrawAsk)] == ["queues"]
    gone = left(drive.returned("runs", Aborted(reason="cancel")))
    assert gone.status is RunStatus.CANCELLED
    assert drive.statuses() == {"runs": "cancelled", "queues": "cancelled", "waits": "cancelled"}


def test_a_cancelled_run_says_cancelled_only_when_nothing_of_it_runs():
    drive = begun(writing("a"))
    drive.request(RequestKind.CANCEL)
    assert drive.state.status is RunStatus.RUNNING


def test_admitted_work_that_may_not_be_cancelled_is_let_finish():
    drive = begun(writing("a", cancellable=False), writing("b", "a"))
    assert not kinds(drive.request(RequestKind.CANCEL), Abort)
    drive.returned("a")
    assert drive.statuses() == {"a": "completed", "b": "cancelled"}


def test_cancelling_a_node_reaches_what_depends_on_it_and_nothing_else():
    drive = begun(planned("a"), planned("b", "a"), planned("c", "b"), planned("d", "a"))
    drive.request(RequestKind.CANCEL, "b")
    assert drive.statuses() == {"a": "running", "b": "cancelled", "c": "cancelled", "d": "pending"}
    assert dispatched(drive.returned("a")) == ["d"]


def test_a_run_whose_last_work_failed_before_it_was_cancelled_still_ends():
    drive = begun(writing("a"), writing("b", "a"))
    drive.request(RequestKind.CANCEL)
    assert left(drive.failed("a")).status is RunStatus.CANCELLED


def test_an_admission_that_comes_after_the_cancel_is_given_back():
    drive = begun(claiming("a"), writing("b"))
    drive.request(RequestKind.CANCEL)
    actions = drive.send(Admitted(node="a", number=1, ticket=3, admitted_boot_ns=1))
    assert [back.node for back in kinds(actions, GiveBack)] == ["a"]


def test_a_crash_does_not_forget_that_a_running_node_was_cancelled():
    drive = begun(writing("a"))
    drive.request(RequestKind.CANCEL)
    again = drive.crash()
    again.begin()
    recover(again)
    assert again.statuses() == {"a": "cancelled"}
    assert again.state.status is RunStatus.CANCELLED


def recover(drive: Drive, **remaining: str) -> list:
    (asked,) = kinds(drive.now, EndLeftovers)
    return drive.send(LeftoversEnded(nodes=asked.nodes, ended={}, remaining=remaining))


def test_a_node_out_of_time_is_stopped_and_fails_with_timeout():
    drive = begun(writing("a", max_seconds=3), planned("b", "a"))
    actions = drive.send(timer("deadline", "a"))
    assert [abort.reason for abort in kinds(actions, Abort)] == ["timeout"]
    drive.returned("a", Aborted(reason="timeout"))
    assert drive.statuses() == {"a": "failed", "b": "skipped"}
    assert drive.state.nodes["a"].record.failure.code is FailureCode.TIMEOUT


def test_a_log_that_the_disk_did_not_take_is_an_event_and_changes_nothing_else():
    drive = begun(writing("a"))
    cut = LogCut(node="a", attempt=1, stream="stderr", missing=9, why="No space left on device")
    assert drive.send(cut) == []
    assert drive.model.events("log-cut", "a") == [
        {"stream": "stderr", "bytes": 9, "message": "No space left on device"}
    ]
    assert drive.statuses() == {"a": "running"}


def test_a_callback_that_ignores_its_deadline_is_given_up_on_and_its_late_result_only_logged():
    drive = begun(writing("a"), writing("other"))
    (overdue,) = [set_ for set_ in kinds(drive.send(timer("deadline", "a")), SetTimer) if set_.timer.kind == "overdue"]
    assert overdue.seconds > 5
    drive.send(timer("overdue", "a"))
    assert drive.status("a") is Status.FAILED
    drive.returned("a", attempt=1)
    assert drive.status("a") is Status.FAILED
    assert drive.model.events("late-result", "a")


def test_a_node_that_waits_too_long_for_the_machine_fails_without_an_attempt():
    drive = begun(claiming("a"))
    actions = drive.send(timer("wait", "a"))
    assert kinds(actions, WithdrawAsk)
    assert drive.state.nodes["a"].record.attempt == 0
    assert drive.state.nodes["a"].record.failure.code is FailureCode.TIMEOUT


def test_a_timer_of_an_earlier_attempt_changes_nothing():
    drive = begun(writing("a"))
    assert not kinds(drive.send(timer("deadline", "a", attempt=9)), Abort)
    assert drive.status("a") is Status.RUNNING


def test_a_drained_run_hands_back_what_waits_and_interrupts_what_runs_after_the_grace():
    drive = begun(writing("runs"), claiming("queues"), writing("waits", "runs"))
    drive.send(Drain(grace_s=5))
    assert drive.status("queues") is Status.READY
    assert kinds(drive.send(timer("drain", attempt=0)), Abort)
    gone = left(drive.returned("runs", Aborted(reason="drain")))
    assert gone.drained
    assert drive.statuses() == {"runs": "ready", "queues": "ready", "waits": "pending"}
    assert drive.model.transactions[-1].release


def test_on_a_full_disk_what_runs_comes_to_its_end_what_waits_is_given_back_and_the_run_handed_back():
    """Field case 48."""
    drive = begun(writing("runs"), claiming("queues"), writing("waits", "runs"))
    actions = drive.send(timer("retry", "runs"), full=True)
    assert drive.status("queues") is Status.READY
    assert kinds(actions, WithdrawAsk)
    assert not kinds(actions, Abort)
    assert left(actions) is None
    actions = drive.returned("runs", full=True)
    assert not dispatched(actions)
    assert left(actions).drained
    assert drive.statuses() == {"runs": "completed", "queues": "ready", "waits": "ready"}


def test_a_run_goes_on_where_there_is_room_again_before_it_was_handed_back():
    drive = begun(writing("runs"), claiming("queues"), writing("waits", "runs"))
    drive.send(timer("retry", "runs"), full=True)
    actions = drive.returned("runs")
    assert [action.node for action in kinds(actions, AskMachine)] == ["queues"]
    assert dispatched(actions) == ["waits"]


def test_a_run_that_rests_on_a_full_disk_is_kept_and_goes_on_when_there_is_room_and_a_word():
    drive = begun(paid("call"), release_at_rest=False)
    assert left(drive.send(timer("retry", "call"), full=True)) is None
    assert drive.status("call") is Status.APPROVAL_REQUIRED
    drive.approve("call")
    assert drive.status("call") is Status.RUNNING


def test_a_run_that_is_taken_up_on_a_full_disk_is_handed_back_untouched():
    drive = Drive(Model([writing("a")]))
    actions = drive.send(Begin(requests=()), full=True)
    assert not dispatched(actions)
    assert left(actions).drained
    assert drive.statuses() == {"a": "ready"}


def test_asked_again_a_drain_kills_sooner_and_gives_up_only_after_that():
    drive = begun(writing("deaf"))
    drive.send(Drain(grace_s=5))
    first = drive.send(timer("drain", attempt=0))
    again = drive.send(Drain(grace_s=1))
    graces = [kinds(actions, Abort)[0].grace_s for actions in (first, again)]
    waits = [
        set_.seconds for actions in (first, again) for set_ in kinds(actions, SetTimer) if set_.timer.kind == "overdue"
    ]
    assert graces == [5, 1]
    assert all(wait > grace for wait, grace in zip(waits, graces, strict=True))
    assert waits[1] < waits[0]
    assert left(drive.send(timer("overdue", "deaf"))).drained


@pytest.mark.parametrize(("drains", "grace_s"), [(1, 5), (2, 1)])
def test_what_still_runs_after_the_grace_of_a_drain_has_less_between_term_and_kill_if_asked_twice(
    drains: int, grace_s: float
) -> None:
    """Who asks again, before anything was told to stop, waits a second for that too, not five."""
    drive = begun(paid("call"), writing("encode"))
    drive.approve("call")
    for _ in range(drains):
        drive.send(Drain(grace_s=1))
    stopped = [abort for kind in ("give-way", "drain") for abort in kinds(drive.send(timer(kind, attempt=0)), Abort)]
    assert [(abort.node, abort.grace_s) for abort in stopped] == [("encode", grace_s), ("call", grace_s)]


def test_asked_three_times_a_drain_waits_no_longer_for_anything():
    drive = begun(writing("a"))
    drive.send(Drain(grace_s=10))
    assert not kinds(drive.send(Drain(grace_s=1)), Abort)
    assert [abort.grace_s for abort in kinds(drive.send(Drain(grace_s=1)), Abort)] == [1]


def test_what_would_become_ambiguous_has_the_whole_grace_and_what_can_be_made_again_gives_way():
    drive = begun(paid("call"), writing("encode"), code("count"))
    drive.approve("call")
    actions = drive.send(Drain(grace_s=8))
    seconds = {set_.timer.kind: set_.seconds for set_ in kinds(actions, SetTimer)}
    assert seconds == {"give-way": 4, "drain": 8}
    assert [abort.node for abort in kinds(drive.send(timer("give-way", attempt=0)), Abort)] == ["encode"]
    stopped = [abort.node for abort in kinds(drive.send(timer("drain", attempt=0)), Abort)]
    assert sorted(stopped) == ["call", "count"]


def test_where_nothing_would_become_ambiguous_all_have_the_whole_grace():
    drive = begun(writing("encode"))
    drive.send(Drain(grace_s=8))
    assert not kinds(drive.send(timer("give-way", attempt=0)), Abort)


def test_what_finishes_within_the_grace_of_a_drain_counts():
    drive = begun(writing("a"), writing("b", "a"))
    drive.send(Drain(grace_s=5))
    assert not dispatched(drive.returned("a"))
    assert drive.statuses() == {"a": "completed", "b": "ready"}


def test_a_drained_attempt_with_an_unknown_effect_rests_as_ambiguous():
    drive = begun(paid("a"))
    drive.approve("a")
    drive.send(Drain(grace_s=0))
    drive.send(timer("drain", attempt=0))
    drive.returned("a", Aborted(reason="drain"))
    assert drive.status("a") is Status.AMBIGUOUS


def test_trusted_code_that_was_stopped_may_have_done_anything():
    drive = begun(code("a"))
    drive.request(RequestKind.CANCEL)
    drive.returned("a", Aborted(reason="cancel"))
    assert drive.status("a") is Status.AMBIGUOUS_CODE


class Box:
    def tell(self, message):
        raise AssertionError(message)


def test_a_publication_is_let_through_only_when_that_is_durable():
    drive = begun(writing("a"))
    drive.now.clear()
    drive.after.clear()
    drive.send(PublicationWanted(node="a", attempt=1, reply_to=Box()))
    (answer,) = [action for action in drive.after if hasattr(action, "answer")]
    assert isinstance(answer.answer, PublicationAllowed)
    assert drive.model.records["a"].gate_passed


@pytest.mark.parametrize("why", ["timeout", "cancel", "old attempt"])
def test_a_publication_after_the_end_is_refused(why):
    drive = begun(writing("a"), planned("other"))
    if why == "timeout":
        drive.send(timer("deadline", "a"))
    if why == "cancel":
        drive.request(RequestKind.CANCEL)
    actions = drive.send(PublicationWanted(node="a", attempt=0 if why == "old attempt" else 1, reply_to=Box()))
    (answer,) = [action for action in actions if hasattr(action, "answer")]
    assert isinstance(answer.answer, PublicationRefused)
    assert not drive.model.records["a"].gate_passed


@pytest.mark.parametrize(
    ("reason", "becomes"), [("drain", Status.READY), ("cancel", Status.CANCELLED), ("deadline", Status.FAILED)]
)
def test_who_hears_of_a_stop_by_its_refused_publication_was_stopped_and_did_not_fail(reason, becomes):
    drive = begun(writing("a"))
    if reason == "cancel":
        drive.request(RequestKind.CANCEL)
    elif reason == "drain":
        drive.send(Drain(grace_s=0))
        drive.send(timer("drain", attempt=0))
    else:
        drive.send(timer("deadline", "a"))
    refused = drive.send(PublicationWanted(node="a", attempt=1, reply_to=Box()))
    (answer,) = [action.answer for action in refused if hasattr(action, "answer")]
    drive.returned("a", Failed(code=answer.code, message=answer.message, todo=answer.todo))
    assert drive.status("a") is becomes
    if reason == "deadline":
        assert drive.state.nodes["a"].record.failure.code is FailureCode.TIMEOUT


OUTCOMES = [
    Failed(code=FailureCode.SUBPROCESS, message="m", todo="t"),
    Failed(code=FailureCode.INVALID_DATA, message="m", todo="t", dispatched=False),
    *(Aborted(reason=reason) for reason in ("cancel", "timeout", "drain")),
    Aborted(reason="timeout", left=("ffmpeg (pid 1)",)),
]


@pytest.mark.parametrize(
    ("outcome", "resume", "trusted", "gate"), list(itertools.product(OUTCOMES, Resume, [False, True], [False, True]))
)
def test_every_outcome_of_every_class_is_a_legal_move_and_says_why(outcome, resume, trusted, gate):
    status, failure = settled(outcome, resume=resume, trusted=trusted, gate_passed=gate)
    assert status in MOVES[Status.RUNNING]
    assert (failure is None) == (status in {Status.CANCELLED, Status.READY})
    if isinstance(outcome, Failed) and not outcome.dispatched:
        assert status is Status.FAILED
    elif isinstance(outcome, Aborted) and outcome.left:
        may_be_repeated = not trusted and (
            resume in {Resume.DETERMINISTIC, Resume.EXPLICIT_CODE_REPLAY}
            or (resume in {Resume.VERIFIED_RECEIPT, Resume.RECOVERABLE_TRANSACTION} and not gate)
        )
        assert (status is Status.BLOCKED) is may_be_repeated, "a retry must not repeat what may have happened"
    elif trusted:
        assert status is Status.AMBIGUOUS_CODE
    elif resume in {Resume.AMBIGUOUS_AFTER_DISPATCH, Resume.NON_RESUMABLE_LIVE}:
        assert status in {Status.AMBIGUOUS, Status.CANCELLED}


def test_local_effects_are_not_asked_about():
    for effect in (Effect.PURE, Effect.LOCAL_READ, Effect.LOCAL_DERIVED_WRITE, Effect.PROJECT_MUTATION):
        drive = begun(planned("a", policy=writing("a").policy.model_copy(update={"effect": effect})))
        assert drive.status("a") is Status.RUNNING


def test_an_ask_is_never_taken_back_before_it_was_made():
    """Both wait for the disk: the ask for its intent, so the withdrawal must not overtake it."""
    drive = Drive(Model([claiming("a")]))
    drive.begin()
    drive.request(RequestKind.CANCEL)
    told = [type(action).__name__ for action in drive.after]
    assert told.index("AskMachine") < told.index("WithdrawAsk")
    assert not kinds(drive.now, WithdrawAsk)


def test_a_late_answer_to_an_earlier_ask_does_not_admit_a_node_that_asks_again():
    node = claiming("a")
    node = node.model_copy(update={"policy": node.policy.model_copy(update={"retry": Retry(attempts=2)})})
    drive = Drive(Model([node]))
    drive.begin()
    (timer,) = [action.timer for action in kinds(drive.after, SetTimer) if action.timer.kind == "wait"]
    drive.send(Due(timer=timer))
    assert [ask.number for ask in kinds(drive.after, AskMachine)] == [1, 2]
    late = drive.send(Admitted(node="a", number=1, ticket=1, admitted_boot_ns=1))
    assert [back.number for back in kinds(late, GiveBack)] == [1]
    assert drive.status("a") is Status.QUEUED
    drive.send(Admitted(node="a", number=2, ticket=2, admitted_boot_ns=2))
    assert [each.ask for each in kinds(drive.after, Dispatch)] == [2]


@pytest.mark.parametrize("make", [code, paid, writing])
@pytest.mark.parametrize(
    ("reason", "status"), [("cancel", Status.CANCELLED), ("drain", Status.READY), ("timeout", Status.FAILED)]
)
def test_what_was_stopped_before_its_code_was_reached_is_never_ambiguous(make, reason, status):
    """R9: a worker process that was still loading has done nothing, whatever the class of its node."""
    policy = make("a").policy
    trusted = policy.effect is Effect.TRUSTED_CODE
    outcome = Aborted(reason=reason, dispatched=False)
    found, failure = settled(outcome, resume=policy.resume, trusted=trusted, gate_passed=False)
    assert found is status
    assert (failure is None) is (status is not Status.FAILED)


def test_trusted_code_that_a_drain_stopped_in_time_goes_on_without_a_grant():
    """It was never called, so there is nothing that a person would have to allow again."""
    drive = begun(code("a"))
    drive.send(Drain(grace_s=0))
    gone = left(drive.returned("a", Aborted(reason="drain", dispatched=False)))
    assert gone is not None
    assert drive.statuses() == {"a": "ready"}
    again = drive.crash()
    again.begin()
    assert dispatched(recover(again)) == ["a"]
