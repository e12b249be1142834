"""Helper threads start work at once, are used again, and never keep a process from leaving."""

import threading
from functools import partial

import pytest

from actors.threads import WorkThreads
from tests.support import until


def test_all_work_starts_at_once_however_much_there_is():
    threads = WorkThreads("t")
    together = threading.Barrier(9)
    for _ in range(8):
        threads.start(lambda: together.wait(60))
    together.wait(60)


def test_a_thread_is_used_again_and_is_a_daemon():
    threads, seen = WorkThreads("t"), []
    for _ in range(20):
        done = threading.Event()
        threads.start(lambda done=done: (seen.append(threading.current_thread()), done.set()))
        assert done.wait(60)
        until(lambda: threads.busy == 0)
    assert len(set(seen)) == 1
    assert seen[0].daemon


def test_busy_counts_what_is_under_way():
    threads, go = WorkThreads("t"), threading.Event()
    threads.start(lambda: go.wait(60))
    assert threads.busy == 1
    go.set()
    until(lambda: threads.busy == 0)


def test_of_much_work_at_once_one_thread_at_a_time_is_sent_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes sends for the next one, before it does what it has taken."""
    made: list[threading.Thread] = []
    begin = threading.Thread.start

    def never_comes(thread: threading.Thread) -> None:
        made.append(thread)

    monkeypatch.setattr(threading.Thread, "start", never_comes)
    threads, last = WorkThreads("t"), threading.Event()
    done: list[tuple[int, int]] = []

    def note(number: int) -> None:
        done.append((number, len(made)))

    for number in range(50):
        threads.start(partial(note, number))
    assert (len(made), threads.busy, threads.behind) == (1, 50, True)
    threads.start(last.set)
    begin(made[0])
    assert last.wait(60)
    assert threads.wait_idle(5)
    assert done == [(number, 2) for number in range(50)], "the second one never came, so there is no third"
    assert not threads.behind


def test_work_for_which_there_can_be_no_thread_is_refused_and_later_work_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system says so only when a thread is started."""

    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads, done, late = WorkThreads("t"), threading.Event(), threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", full)
        with pytest.raises(OSError, match="no further thread can be started"):
            threads.start(done.set)
    assert (threads.busy, threads.behind) == (0, False)
    threads.start(late.set)
    assert late.wait(60)
    assert not done.is_set()


def test_what_work_starts_at_its_end_follows_on_its_thread_and_the_rest_beside_it() -> None:
    """So nothing that is handed on waits for what follows."""
    threads, seen, rest = WorkThreads("t"), {}, threading.Barrier(2)

    def note(name: str) -> None:
        seen[name] = threading.current_thread()
        rest.wait(60)

    def work() -> None:
        threads.start(lambda: note("amid"))
        note("work")
        threads.end_here()
        threads.start(lambda: note("next"))
        threads.start(lambda: note("other"))

    threads.start(work)
    assert threads.wait_idle(5)
    assert seen["next"] is seen["work"]
    assert seen["amid"] is not seen["work"]
    assert seen["other"] is not seen["work"]


def test_work_that_breaks_costs_neither_its_thread_nor_what_follows_on_it() -> None:
    """It must not raise; where it does all the same, nobody else's work is lost with it."""
    threads, done = WorkThreads("t"), threading.Event()

    def breaks() -> None:
        threads.end_here()
        threads.start(done.set)
        raise SystemExit(1)

    threads.start(breaks)
    assert done.wait(60)
    assert threads.wait_idle(60)


def test_threads_that_are_retired_go_at_once_and_work_that_comes_later_is_done() -> None:
    """Each closed host left one for half a minute; a program that opens many has as many."""
    threads, go, late = WorkThreads("retired"), threading.Event(), threading.Event()
    both = threading.Barrier(3)

    def meet() -> None:
        both.wait(60)

    def stay() -> None:
        go.wait(60)

    for _ in range(2):
        threads.start(meet)
    both.wait(60)
    threads.start(stay)
    assert len(named("retired")) >= 2
    threads.retire()
    until(lambda: len(named("retired")) == 1, timeout=5)
    go.set()
    until(lambda: not named("retired"), timeout=5)
    threads.start(late.set)
    assert late.wait(60)
    until(lambda: not named("retired"), timeout=5)


def named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]
