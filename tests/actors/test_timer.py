"""Timers fire once, in order, for the last time they were set; forgotten ones do not."""

import threading

import pykka
import pytest

from actors.actions import CancelTimer, SetTimer, TimerName
from actors.host_messages import ChangeTimers, StopTimers
from actors.mailbox import Mailbox
from actors.messages import Due
from actors.timer import Timer
from hostres.errors import HostlerError


@pytest.fixture
def timer():
    actor = Timer.start()
    yield actor
    actor.stop(block=True, timeout=60)


def name(node):
    return TimerName(kind="k", node=node)


def start(box, node, seconds, owner="o"):
    return ChangeTimers(owner=owner, changes=(SetTimer(timer=name(node), seconds=seconds),), reply_to=box)


def due(node):
    return Due(timer=name(node))


def test_timers_come_in_the_order_of_their_times(timer):
    box = Mailbox()
    for node, seconds in (("late", 0.06), ("soon", 0.0), ("middle", 0.03)):
        timer.tell(start(box, node, seconds))
    assert [box.get(timeout=60) for _ in range(3)] == [due("soon"), due("middle"), due("late")]


def test_a_forgotten_timer_does_not_come_and_others_do(timer):
    box = Mailbox()
    timer.tell(start(box, "a", 0.02))
    timer.tell(start(box, "b", 0.04))
    timer.tell(start(box, "c", 0.03, owner="gone"))
    timer.tell(ChangeTimers(owner="o", changes=(CancelTimer(timer=name("a")),), reply_to=box))
    timer.tell(StopTimers(owner="gone"))
    assert box.get(timeout=60) == due("b")
    with pytest.raises(HostlerError):
        box.get(timeout=0.03)


def test_changes_of_one_message_count_in_their_order(timer):
    box = Mailbox()
    changes = (
        SetTimer(timer=name("a"), seconds=0.0),
        CancelTimer(timer=name("a")),
        CancelTimer(timer=name("b")),
        SetTimer(timer=name("b"), seconds=0.02),
        SetTimer(timer=name("c"), seconds=0.01),
    )
    timer.tell(ChangeTimers(owner="o", changes=changes, reply_to=box))
    assert [box.get(timeout=60), box.get(timeout=60)] == [due("c"), due("b")]
    with pytest.raises(HostlerError):
        box.get(timeout=0.02)


def test_setting_a_timer_again_replaces_it(timer):
    box = Mailbox()
    timer.tell(start(box, "a", 0.01))
    timer.tell(start(box, "a", 0.05))
    timer.tell(start(box, "b", 0.03))
    assert [box.get(timeout=60), box.get(timeout=60)] == [due("b"), due("a")]
    with pytest.raises(HostlerError):
        box.get(timeout=0.02)


def test_a_timer_is_set_and_forgotten_on_the_thread_of_whoever_says_so(monkeypatch):
    """No thread has to be woken for it."""
    threads, change = [], Timer._change

    def noted(*arguments):
        threads.append(threading.current_thread())
        change(*arguments)

    monkeypatch.setattr(Timer, "_change", noted)
    timer, box = Timer.start(), Mailbox()
    timer.tell(start(box, "a", 60.0))
    timer.tell(ChangeTimers(owner="o", changes=(CancelTimer(timer=name("a")),), reply_to=box))
    assert threads == [threading.current_thread()] * 2
    timer.stop(block=True, timeout=60)
    with pytest.raises(pykka.ActorDeadError):
        timer.tell(start(box, "a", 0.0))


def test_a_receiver_that_has_gone_does_not_stop_the_timer(timer):
    gone = Timer.start()
    gone.stop(block=True, timeout=60)
    box = Mailbox()
    timer.tell(start(gone, "a", 0.0))
    timer.tell(start(box, "b", 0.0))
    assert box.get(timeout=60) == due("b")
