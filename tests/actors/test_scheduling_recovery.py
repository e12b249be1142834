"""A new owner after a crash: every stored status, every class."""

import pytest

from actors.actions import EndLeftovers
from actors.messages import LeftoversEnded
from store.lifecycle import RunStatus, Status
from store.policy import Effect, FailureCode, Policy, Resume
from tests.actors.support import Drive, Model, claiming, code, dispatched, kinds, planned, writing


def crashed(*nodes) -> Drive:
    drive = Drive(Model(nodes))
    drive.begin()
    return drive.crash()


def ended(drive: Drive, remaining: dict | None = None, found: dict | None = None) -> list:
    (asked,) = kinds(drive.now, EndLeftovers)
    return drive.send(LeftoversEnded(nodes=asked.nodes, ended=found or {}, remaining=remaining or {}))


def test_completed_nodes_are_reused_and_said_so_in_one_event():
    drive = Drive(Model([writing("a"), writing("b"), writing("c", "a", "b")]))
    drive.begin()
    drive.returned("a")
    drive.returned("b")
    again = drive.crash()
    again.begin()
    ended(again)
    assert dispatched(again.after) == ["c"]
    assert again.model.events("nodes-reused") == [{"nodes": 2}]


def test_nothing_interrupted_runs_again_before_its_leftovers_are_ended():
    drive = crashed(writing("a"))
    drive.begin()
    assert not dispatched([*drive.now, *drive.after])
    assert dispatched(ended(drive)) == ["a"]
    assert drive.state.nodes["a"].record.attempt == 2


def test_a_queued_node_was_never_dispatched_and_is_simply_ready():
    drive = crashed(claiming("a"))
    drive.begin()
    assert not kinds(drive.now, EndLeftovers)
    assert drive.state.nodes["a"].record.attempt == 0
    assert drive.status("a") is Status.QUEUED


@pytest.mark.parametrize(
    ("resume", "becomes"),
    [
        (Resume.DETERMINISTIC, Status.RUNNING),
        (Resume.VERIFIED_RECEIPT, Status.INCOMPATIBLE),
        (Resume.RECOVERABLE_TRANSACTION, Status.INCOMPATIBLE),
        (Resume.AMBIGUOUS_AFTER_DISPATCH, Status.AMBIGUOUS),
        (Resume.NON_RESUMABLE_LIVE, Status.AMBIGUOUS),
    ],
)
def test_every_class_has_its_answer_to_an_interruption(resume, becomes):
    policy = Policy(effect=Effect.PROJECT_MUTATION, resume=resume)
    drive = crashed(planned("a", policy=policy))
    drive.begin()
    ended(drive)
    assert drive.status("a") is becomes


def test_interrupted_trusted_code_rests_and_what_depends_on_it_waits():
    """R13."""
    drive = crashed(code("a"), planned("b", "a"))
    drive.begin()
    ended(drive)
    assert drive.statuses() == {"a": "ambiguous-code", "b": "pending"}
    assert drive.state.status is RunStatus.AMBIGUOUS_CODE


def test_what_could_not_be_ended_blocks_its_node_and_is_named():
    drive = crashed(writing("a"))
    drive.begin()
    ended(drive, remaining={"a": "ffmpeg (pid 41)"})
    assert drive.status("a") is Status.BLOCKED
    assert drive.state.nodes["a"].record.failure.code is FailureCode.CONFLICT
    assert "pid 41" in drive.state.nodes["a"].record.failure.message


def test_ended_leftovers_are_logged():
    drive = crashed(writing("a"))
    drive.begin()
    ended(drive, found={"a": ("ffmpeg (pid 41)",)})
    assert drive.model.events("leftover", "a") == [{"ended": ["ffmpeg (pid 41)"]}]


def test_a_new_owner_writes_under_its_own_generation():
    drive = crashed(writing("a"))
    drive.begin()
    ended(drive)
    assert drive.model.transactions[-1].fence.generation == 2
