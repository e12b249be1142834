"""An attempt is made again only when nothing of those before it lives, whatever the reason for which it is made again."""

from actors.actions import EndLeftovers, TimerName
from actors.messages import Drain, Due, LeftoversEnded
from actors.outcomes import Aborted
from store.contracts import RequestKind
from store.lifecycle import Status
from store.policy import FailureCode, Retry
from tests.actors.support import Drive, Model, dispatched, kinds, left, writing


def begun(**policy) -> Drive:
    drive = Drive(Model([writing("a", **policy), writing("b", "a"), writing("other")]))
    drive.begin()
    return drive


def handed_back() -> Drive:
    """Return the next owner of a run whose host was stopped in the middle of the node."""
    drive = begun()
    drive.returned("other")
    drive.send(Drain(grace_s=0))
    drive.send(Due(timer=TimerName(kind="drain")))
    assert left(drive.returned("a", Aborted(reason="drain")))
    return Drive(drive.model)


def told(drive: Drive, actions: list, **remaining: str) -> list:
    (asked,) = kinds(actions, EndLeftovers)
    assert asked.nodes == ("a",)
    found = {"a": ("ffmpeg (pid 41)",)}
    return drive.send(LeftoversEnded(nodes=asked.nodes, ended=found, remaining=remaining))


def test_what_could_not_be_ended_is_tried_again_before_a_person_gets_another_attempt():
    drive = begun()
    drive.returned("a", Aborted(reason="timeout", left=("ffmpeg (pid 41)",)))
    assert drive.status("a") is Status.BLOCKED
    actions = drive.request(RequestKind.RETRY, "a")
    assert not dispatched(actions)
    assert dispatched(told(drive, actions)) == ["a"]
    assert drive.model.events("leftover", "a") == [{"ended": ["ffmpeg (pid 41)"]}]


def test_what_still_cannot_be_ended_fails_its_node_and_is_named():
    drive = begun()
    drive.returned("a", Aborted(reason="timeout", left=("ffmpeg (pid 41)",)))
    assert not dispatched(told(drive, drive.request(RequestKind.RETRY, "a"), a="ffmpeg (pid 41)"))
    failure = drive.state.nodes["a"].record.failure
    assert (drive.status("a"), failure.code) == (Status.FAILED, FailureCode.CONFLICT)
    assert "pid 41" in failure.message
    assert "hostler retry" in failure.todo


def test_a_new_owner_looks_for_leftovers_of_a_node_that_was_handed_back():
    again = handed_back()
    actions = again.begin()
    assert not dispatched(actions)
    assert dispatched(told(again, actions)) == ["a"]


def test_an_attempt_that_ended_whole_is_followed_by_the_next_at_once():
    drive = begun(retry=Retry(attempts=2))
    assert dispatched(drive.failed("a")) == ["a"]


def given_up(drive: Drive, attempt: int = 1) -> list:
    drive.send(Due(timer=TimerName(kind="deadline", node="a", attempt=attempt)))
    return drive.send(Due(timer=TimerName(kind="overdue", node="a", attempt=attempt)))


def test_no_attempt_starts_beside_one_that_was_given_up_on_and_still_runs_here():
    drive = begun(retry=Retry(attempts=2))
    assert not dispatched(given_up(drive))
    assert drive.status("a") is Status.FAILED
    assert "has not ended" in drive.state.nodes["a"].record.failure.message
    drive.request(RequestKind.RETRY, "a")
    assert drive.status("a") is Status.FAILED
    drive.returned("a", attempt=1)
    assert dispatched(told(drive, drive.request(RequestKind.RETRY, "a"))) == ["a"]


def test_what_an_earlier_attempt_says_once_more_does_not_end_the_one_that_still_runs():
    drive = begun(retry=Retry(attempts=2))
    assert dispatched(drive.failed("a")) == ["a"]
    given_up(drive, 2)
    drive.returned("a", attempt=1)
    assert not dispatched(drive.request(RequestKind.RETRY, "a"))
    assert "attempt 2 of it was given up on" in drive.state.nodes["a"].record.failure.message


def test_a_retry_that_is_due_later_waits_for_what_was_given_up_on_to_end():
    drive = begun(retry=Retry(attempts=2, delays=(9.0,)))
    given_up(drive)
    assert drive.status("a") is Status.CORRECTIVE
    drive.returned("a", attempt=1)
    actions = drive.send(Due(timer=TimerName(kind="retry", node="a", attempt=1)))
    assert dispatched(told(drive, actions)) == ["a"]


def test_a_run_is_handed_back_only_when_its_leftovers_have_been_looked_for():
    again = handed_back()
    actions = [*again.begin(), *again.request(RequestKind.CANCEL)]
    assert again.statuses() == {"a": "cancelled", "b": "cancelled", "other": "completed"}
    assert left(actions) is None
    assert left(told(again, actions)) is not None
