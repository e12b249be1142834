"""Helper threads start work at once, are used again, and never keep a process from leaving."""

import threading

from actors.threads import WorkThreads
from tests.support import until


def test_all_work_starts_at_once_however_much_there_is():
    threads = WorkThreads("t")
    together = threading.Barrier(9)
    for _ in range(8):
        threads.start(lambda: together.wait(5))
    together.wait(5)


def test_a_thread_is_used_again_and_is_a_daemon():
    threads, seen = WorkThreads("t"), []
    for _ in range(20):
        done = threading.Event()
        threads.start(lambda done=done: (seen.append(threading.current_thread()), done.set()))
        assert done.wait(5)
        until(lambda: threads.busy == 0)
    assert len(set(seen)) == 1
    assert seen[0].daemon


def test_busy_counts_what_is_under_way():
    threads, go = WorkThreads("t"), threading.Event()
    threads.start(lambda: go.wait(5))
    assert threads.busy == 1
    go.set()
    until(lambda: threads.busy == 0)


def test_what_work_starts_at_its_end_follows_on_its_thread_and_the_rest_on_others():
    threads, seen, rest = WorkThreads("t"), {}, threading.Event()

    def note(name: str) -> None:
        seen[name] = threading.current_thread()

    def amid() -> None:
        note("amid")
        rest.set()

    def work() -> None:
        note("work")
        threads.start(amid)
        assert rest.wait(5)  # it runs beside this one, not after it
        threads.end_here()
        threads.start(lambda: note("next"))
        threads.start(lambda: note("other"))

    threads.start(work)
    assert threads.wait_idle(5)
    assert seen["next"] is seen["work"]
    assert seen["amid"] is not seen["work"]
    assert seen["other"] is not seen["work"]
