"""A signal becomes a message at once, whatever the main thread is doing."""

import os
import signal
import threading
from queue import Empty, SimpleQueue

import pytest

from hostler.interrupts import Continued, Interrupted, Interrupts, Suspended


def test_each_signal_is_a_message_that_says_how_manyeth_it_is():
    inbox = SimpleQueue()
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts(inbox):
        os.kill(os.getpid(), signal.SIGINT)
        assert inbox.get(timeout=60) == Interrupted(times=1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert inbox.get(timeout=60) == Interrupted(times=2)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_going_on_after_a_stop_is_a_message_too_and_no_interruption():
    inbox = SimpleQueue()
    with Interrupts(inbox):
        os.kill(os.getpid(), signal.SIGCONT)
        assert inbox.get(timeout=60) == Continued()
        os.kill(os.getpid(), signal.SIGINT)
        assert inbox.get(timeout=60) == Interrupted(times=1)
    assert signal.getsignal(signal.SIGCONT) is signal.SIG_DFL


def test_a_signal_is_heard_while_the_main_thread_never_comes_back_to_python():
    """The lost wake-up of a handler: it would run only when the wait is over."""
    inbox, told = SimpleQueue(), threading.Event()
    lock = threading.Lock()
    lock.acquire()

    def release():
        # the signal goes to this thread, so that nothing interrupts the wait of the main thread
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        try:
            inbox.get(timeout=60)
            told.set()
        except Empty:
            pass
        lock.release()

    with Interrupts(inbox):
        threading.Thread(target=release).start()
        lock.acquire()
    assert told.is_set()


def test_what_was_ignored_stays_ignored():
    inbox = SimpleQueue()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts(inbox):
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
            assert inbox.get(timeout=60) == Interrupted(times=1)
        with pytest.raises(Empty):
            inbox.get_nowait()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_z_is_a_message_only_where_something_is_shown():
    inbox = SimpleQueue()
    with Interrupts(inbox, shows=True):
        os.kill(os.getpid(), signal.SIGTSTP)
        assert inbox.get(timeout=60) == Suspended()
        os.kill(os.getpid(), signal.SIGINT)
        assert inbox.get(timeout=60) == Interrupted(times=1)
    with Interrupts(inbox):
        assert signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL
