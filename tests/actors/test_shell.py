"""Every way in which an actor can break ends in one obituary and no half-changed state."""

import queue
from typing import Any

import pykka
import pytest

from actors.host_messages import Died
from actors.mailbox import Mailbox
from actors.shell import Shell, tell
from hostres.errors import Code, HostlerError


class Breaking(Shell):
    def __init__(self, *, parent, seen: queue.SimpleQueue[Any], breaks_in: str = "handle") -> None:
        super().__init__(name="breaking", parent=parent)
        self.seen = seen
        self.breaks_in = breaks_in

    def setup(self) -> None:
        if self.breaks_in == "setup":
            raise OSError("no disk")

    def handle(self, message: Any) -> None:
        if isinstance(message, BaseException):
            raise message
        self.seen.put(message)

    def teardown(self) -> None:
        self.seen.put("torn down")
        if self.breaks_in == "teardown":
            raise OSError("no disk")


@pytest.mark.parametrize("error", [ValueError("v"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_a_handler_raises_is_reported_once_and_nothing_is_handled_after_it(error):
    """Field case 84: what was queued at its death is dropped, and another actor is none the worse."""
    parent, seen = Mailbox(), queue.SimpleQueue()
    other = Breaking.start(parent=None, seen=queue.SimpleQueue())
    actor = Breaking.start(parent=parent, seen=seen)
    actor.tell("before")
    actor.tell(error)
    actor.tell("after")
    died = parent.get(timeout=60)
    assert isinstance(died, Died)
    assert died.error is error
    assert died.urn == actor.actor_urn
    actor.actor_stopped.wait(60)
    assert [seen.get(timeout=60), seen.get(timeout=60)] == ["before", "torn down"]
    assert seen.empty()
    assert other.is_alive()
    other.stop()


def test_a_setup_that_fails_is_reported():
    parent = Mailbox()
    Breaking.start(parent=parent, seen=queue.SimpleQueue(), breaks_in="setup")
    assert isinstance(parent.get(timeout=60).error, OSError)


def test_a_teardown_that_fails_does_not_keep_the_actor():
    actor = Breaking.start(parent=None, seen=queue.SimpleQueue(), breaks_in="teardown")
    actor.stop(block=True, timeout=60)
    assert not actor.is_alive()


def test_telling_an_actor_that_has_gone_is_no_error_and_says_so():
    actor = Breaking.start(parent=None, seen=queue.SimpleQueue())
    actor.stop(block=True, timeout=60)
    assert not tell(actor, "hello")


def test_an_unknown_message_breaks_the_actor_rather_than_vanish():
    class Plain(Shell):
        pass

    parent = Mailbox()
    Plain.start(name="plain", parent=parent).tell(object())
    assert isinstance(parent.get(timeout=60).error, TypeError)


def test_a_mailbox_that_gets_no_answer_says_so():
    with pytest.raises(HostlerError) as caught:
        Mailbox().get(timeout=0.01)
    assert caught.value.code is Code.UNAVAILABLE


def test_actor_threads_do_not_keep_a_process_alive():
    assert Shell.use_daemon_thread
    assert issubclass(Shell, pykka.ThreadingActor)
