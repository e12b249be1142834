"""Timers fire once, in order, for the last time they were set; forgotten ones do not."""

import pytest

from actors.actions import TimerName
from actors.mailbox import Mailbox
from actors.messages import Due, StartTimer, StopTimer, StopTimers
from actors.timer import Timer
from hostres.errors import HostlerError


@pytest.fixture
def timer():
    actor = Timer.start()
    yield actor
    actor.stop(block=True, timeout=5)


def start(box, node, seconds, owner="o"):
    return StartTimer(owner=owner, timer=TimerName(kind="k", node=node), seconds=seconds, reply_to=box)


def due(node):
    return Due(timer=TimerName(kind="k", node=node))


def test_timers_come_in_the_order_of_their_times(timer):
    box = Mailbox()
    for node, seconds in (("late", 0.06), ("soon", 0.0), ("middle", 0.03)):
        timer.tell(start(box, node, seconds))
    assert [box.get(timeout=5) for _ in range(3)] == [due("soon"), due("middle"), due("late")]


def test_a_forgotten_timer_does_not_come_and_others_do(timer):
    box = Mailbox()
    timer.tell(start(box, "a", 0.02))
    timer.tell(start(box, "b", 0.04))
    timer.tell(start(box, "c", 0.03, owner="gone"))
    timer.tell(StopTimer(owner="o", timer=TimerName(kind="k", node="a")))
    timer.tell(StopTimers(owner="gone"))
    assert box.get(timeout=5) == due("b")
    with pytest.raises(HostlerError):
        box.get(timeout=0.03)


def test_setting_a_timer_again_replaces_it(timer):
    box = Mailbox()
    timer.tell(start(box, "a", 0.01))
    timer.tell(start(box, "a", 0.05))
    timer.tell(start(box, "b", 0.03))
    assert [box.get(timeout=5), box.get(timeout=5)] == [due("b"), due("a")]
    with pytest.raises(HostlerError):
        box.get(timeout=0.02)


def test_a_receiver_that_has_gone_does_not_stop_the_timer(timer):
    gone = Timer.start()
    gone.stop(block=True, timeout=5)
    box = Mailbox()
    timer.tell(start(gone, "a", 0.0))
    timer.tell(start(box, "b", 0.0))
    assert box.get(timeout=5) == due("b")
