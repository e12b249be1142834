"""Limits of a run as a whole: its time, and how much of it is active."""

from actors.actions import Abort, SetTimer
from actors.messages import Due
from actors.outcomes import Aborted
from actors.scheduling.decide import LIMIT
from store.lifecycle import RunStatus, Status
from store.plans import RunLimits
from store.policy import FailureCode
from tests.actors.support import Drive, Model, claiming, dispatched, gate, kinds, planned, writing


def limits(actions) -> list[SetTimer]:
    return [action for action in kinds(actions, SetTimer) if action.timer.kind == LIMIT]


def test_no_more_nodes_are_active_than_the_graph_allows():
    drive = Drive(Model([planned(key) for key in "abc"], limits=RunLimits(active=2)), jobs=8)
    drive.begin()
    assert dispatched(drive.now) == ["a", "b"]


def test_a_run_without_a_limit_sets_no_timer():
    drive = Drive(Model([planned("a")]))
    assert not limits(drive.begin())


def test_when_its_time_is_over_what_waits_is_cancelled_and_what_runs_is_stopped():
    nodes = [writing("runs", cancellable=False), claiming("queues"), gate("rests"), planned("waits", "runs")]
    drive = Drive(Model(nodes, limits=RunLimits(seconds=60)))
    (timer,) = limits(drive.begin())
    assert timer.seconds == 60
    actions = drive.send(Due(timer=timer.timer))
    assert drive.statuses() == {"runs": "running", "queues": "cancelled", "rests": "cancelled", "waits": "cancelled"}
    failure = drive.state.nodes["queues"].record.failure
    assert failure is not None
    assert failure.code is FailureCode.TIMEOUT
    assert [abort.reason for abort in kinds(actions, Abort)] == ["timeout"]
    drive.returned("runs", Aborted(reason="timeout"))
    assert drive.status("runs") is Status.CANCELLED
    assert drive.state.status is RunStatus.CANCELLED


def test_the_limit_counts_from_the_first_start_through_restarts():
    model = Model([writing("a")], limits=RunLimits(seconds=60))
    Drive(model).begin()
    again = Drive(model)
    again.clock = 20
    (timer,) = limits(again.begin())
    assert timer.seconds == 40
    late = Drive(model)
    late.clock = 75
    assert limits(late.begin())[0].seconds == 0


def test_a_clock_that_was_set_back_lengthens_nothing():
    """Field cases 72 and 73."""
    model = Model([writing("a")], limits=RunLimits(seconds=60))
    first = Drive(model)
    first.clock = 30
    first.begin()
    assert limits(Drive(model).begin())[0].seconds == 60
