"""Whoever's thread handles it: an actor takes one message at a time, in order, and none is lost."""

import threading
from typing import Any

from actors.mailbox import Mailbox
from actors.shell import Shell, hand_over
from tests.support import until

TELLERS = 6
EACH = 400


class Noting(Shell):
    """Notes each message and the thread that handles it; the first one may be held up."""

    def __init__(self, *, hold: threading.Event | None = None) -> None:
        super().__init__(name="noting", parent=None)
        self.hold = hold
        self.entered = threading.Event()
        self.handled: list[tuple[Any, threading.Thread]] = []
        self.inside = 0
        self.most_inside = 0

    def handle(self, message: Any) -> None:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.entered.set()
        if self.hold is not None:
            assert self.hold.wait(60)
        self.handled.append((message, threading.current_thread()))
        self.inside -= 1


def started(hold: threading.Event | None = None) -> tuple[Any, Any]:
    """Return an actor that is through with its setup, and what it notes."""
    ref = Noting.start(hold=hold)
    noting: Any = ref._actor_weakref()
    until(lambda: not noting.actor_inbox._mine)
    return ref, noting


def test_an_idle_actor_is_stood_in_for_on_the_thread_of_the_teller():
    ref, noting = started()
    assert hand_over(ref, "here")
    assert noting.handled == [("here", threading.current_thread())]
    ref.stop(block=True, timeout=60)


def test_what_was_told_before_comes_first():
    """The actor is at its first message, the second one waits: the third may not overtake it on another thread."""
    hold = threading.Event()
    ref, noting = started(hold)
    ref.tell(1)
    assert noting.entered.wait(60)
    ref.tell(2)
    assert hand_over(ref, 3)
    assert not noting.handled
    hold.set()
    until(lambda: len(noting.handled) == 3)
    assert [message for message, _ in noting.handled] == [1, 2, 3]
    assert threading.current_thread() not in {thread for _, thread in noting.handled}
    ref.stop(block=True, timeout=60)


def test_an_actor_takes_one_message_at_a_time_and_each_tellers_in_their_order():
    ref, noting = started()

    def tell_and_hand_over(teller: int) -> None:
        for number in range(EACH):
            (ref.tell if number % 3 == 0 else lambda said: hand_over(ref, said))((teller, number))

    tellers = [threading.Thread(target=tell_and_hand_over, args=(teller,)) for teller in range(TELLERS)]
    for each in tellers:
        each.start()
    for each in tellers:
        each.join()
    until(lambda: len(noting.handled) == TELLERS * EACH)
    assert noting.most_inside == 1
    for teller in range(TELLERS):
        assert [number for (who, number), _ in noting.handled if who == teller] == list(range(EACH))
    ref.stop(block=True, timeout=60)


def test_an_actor_that_breaks_on_another_thread_takes_nothing_more_and_goes():
    ref, noting = started()

    def handle(message: Any) -> None:
        raise ValueError(message)

    noting.handle = handle
    assert hand_over(ref, "bad")
    assert ref.actor_stopped.wait(60)
    assert not hand_over(ref, "after")
    assert not noting.handled


def test_who_handles_a_message_may_take_those_that_come_next_and_fit():
    hold = threading.Event()
    ref, noting = started(hold)
    ref.tell(1)
    assert noting.entered.wait(60)
    for each in (2, 4, 6, 7, 8):
        ref.tell(each)
    assert noting.actor_inbox.take(lambda said: said % 2 == 0, 2) == [2, 4]
    assert noting.actor_inbox.take(lambda said: said % 2 == 0, 9) == [6]
    assert noting.actor_inbox.take(lambda said: said % 2 == 0, 9) == []
    hold.set()
    until(lambda: [message for message, _ in noting.handled] == [1, 7, 8])
    ref.stop(block=True, timeout=60)


def test_what_is_no_actor_is_told():
    box = Mailbox()
    assert hand_over(box, "hello")
    assert box.get(timeout=60) == "hello"
