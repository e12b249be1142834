"""One background service a home, and which runs it finds to do."""

import contextlib
import multiprocessing
import os
import select
import signal
import sqlite3
import subprocess
import sys
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from hostres import descriptors
from hostres.errors import Code, HostlerError
from store.contracts import RequestKind, Summary
from store.home import Home
from store.lifecycle import RunStatus, Status, counts
from store.reader import Reader
from store.requests import post
from store.retention.collection import collect
from store.service import NAME, ServiceIdentity, service_alive, wake_service, watch_service
from tests.store.support import CLOCK, Setting, finish_node, plan_of, request_of
from tests.support import until


def to_do(setting: Setting) -> list[str]:
    with Reader.open(setting.home) as reader:
        return [one.run_id for one in reader.to_do()]


def test_there_is_one_service_and_its_place_is_free_once_it_ends(setting: Setting) -> None:
    """A second one is told so; the kernel frees the place."""
    first = ServiceIdentity.take(setting.home)
    assert first is not None
    assert ServiceIdentity.take(setting.home) is None
    assert service_alive(setting.home)
    first.close()
    assert not service_alive(setting.home)
    again = ServiceIdentity.take(setting.home)
    assert again is not None
    again.close()


def test_a_killed_service_hangs_up_and_leaves_its_place(setting: Setting) -> None:
    """Field case 57: whoever waits for its end is told by the kernel."""
    code = (
        "import sys; from pathlib import Path; from store.home import Home; from store.service import ServiceIdentity\n"
        "it = ServiceIdentity.take(Home.open(Path(sys.argv[1]), create=True)); print(it.fd, flush=True); input()"
    )
    argv = [sys.executable, "-c", code, str(setting.home.root)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        watched = watch_service(setting.home)
        assert watched is not None
        process.kill()
        poll = select.poll()
        poll.register(watched, 0)
        assert poll.poll(10_000)
        descriptors.close(watched)
    taken = ServiceIdentity.take(setting.home)
    assert taken is not None
    taken.close()


def test_who_only_looks_whether_it_lives_keeps_nobody_from_becoming_it(setting: Setting) -> None:
    """A look takes the lock for a moment."""
    os.mkfifo(setting.home.hosts / NAME, 0o600)
    for _ in range(50):
        assert not service_alive(setting.home)
        taken = ServiceIdentity.take(setting.home)
        assert taken is not None
        taken.close()


def test_a_byte_wakes_it(setting: Setting) -> None:
    """And without a service nobody is woken."""
    assert not wake_service(setting.home)
    taken = ServiceIdentity.take(setting.home)
    assert taken is not None
    with contextlib.closing(taken):
        assert wake_service(setting.home)
        assert select.select([taken.fd], [], [], 5)[0]
        taken.drain()
        assert not select.select([taken.fd], [], [], 0)[0]


def test_its_place_on_a_file_that_is_not_private_is_refused(setting: Setting) -> None:
    """A name that leads elsewhere is no FIFO of ours."""
    (setting.home.hosts / NAME).symlink_to("/dev/null")
    with pytest.raises((HostlerError, OSError)) as refused:
        ServiceIdentity.take(setting.home)
    assert not isinstance(refused.value, HostlerError) or refused.value.code in {Code.UNAVAILABLE, Code.UNSAFE_STATE}


def test_what_was_submitted_is_to_be_done_and_what_was_only_created_is_not(setting: Setting) -> None:
    """A run that somebody is just about to take up in the foreground is theirs."""
    setting.created()
    submitted = setting.created(entrusted=True)
    assert to_do(setting) == [submitted]


def test_whoever_takes_a_run_up_in_the_foreground_takes_it_back(setting: Setting) -> None:
    """A run stopped by Ctrl-C there is not gone on with behind the back of who stopped it."""
    run = setting.created(entrusted=True)
    claimed = setting.store.claim(run, setting.identity, entrusted=False)
    assert to_do(setting) == []
    setting.accept(claimed, release=True)
    assert to_do(setting) == []


def test_what_the_service_hands_back_it_finds_again(setting: Setting) -> None:
    """Drained and started anew, it goes on."""
    run = setting.created(entrusted=True)
    claimed = setting.store.claim(run, setting.identity, entrusted=True)
    assert to_do(setting) == []
    setting.accept(claimed, release=True)
    assert to_do(setting) == [run]


def test_a_command_that_only_has_an_answer_consumed_leaves_it_where_it_is(setting: Setting) -> None:
    """None says nothing about whose it is."""
    run = setting.created(entrusted=True)
    setting.accept(setting.store.claim(run, setting.identity, entrusted=None), release=True)
    assert to_do(setting) == [run]


def test_what_a_dead_host_left_is_to_be_done_whoever_it_was(setting: Setting, tmp_path: Path) -> None:
    """Its claim stands and its lock is free."""
    run = setting.claimed(plan_of({"a": []})).fence.run_id
    assert to_do(setting) == []
    setting.identity.close()
    assert to_do(setting) == [run]


def test_what_is_asked_of_a_resting_run_of_its_own_is_to_be_done(setting: Setting) -> None:
    """An approval of a run that was handed back at rest is the service's to take up, others' runs are not."""
    own, other = setting.created(entrusted=True), setting.created()
    for run in (own, other):
        post(setting.home, request_of(run, RequestKind.CANCEL, request_id=f"cancel:{run}:*"), clock=CLOCK)
    assert to_do(setting) == [own]


def test_how_much_is_asked_of_a_run_is_told_with_it(setting: Setting) -> None:
    """A service that cannot go on with the run sees by it whether something is still to be done."""
    run, asked = setting.created(entrusted=True), list[int]()
    with Reader.open(setting.home) as reader:
        for kind in (RequestKind.CANCEL, RequestKind.BUDGET, None):
            asked.append(sum(one.asked for one in reader.to_do()))
            if kind is not None:
                post(setting.home, request_of(run, kind, request_id=kind.value), clock=CLOCK)
    assert asked == [0, 1, 2]


def test_a_request_for_a_run_that_nobody_works_on_wakes_the_service(setting: Setting) -> None:
    """It does not wait for a clock."""
    run = setting.created(entrusted=True)
    taken = ServiceIdentity.take(setting.home)
    assert taken is not None
    with contextlib.closing(taken):
        post(setting.home, request_of(run, RequestKind.CANCEL, request_id=f"cancel:{run}:*"), clock=CLOCK)
        assert until(lambda: select.select([taken.fd], [], [], 0)[0])


def test_a_removed_run_is_no_longer_the_services(setting: Setting) -> None:
    """Nothing of it is left behind."""
    run = setting.created(plan_of({"a": []}), entrusted=True)
    claimed = setting.store.claim(run, setting.identity, entrusted=True)
    done = finish_node(setting, claimed, "a", 1)
    summary = Summary(status=RunStatus.COMPLETED, counts=counts({Status.COMPLETED: 1}), outputs=None)
    setting.accept(claimed, nodes=(done,), summary=summary, release=True)
    assert collect(setting.home, before="9999-01-01T00:00:00.000Z", keep=0, now_unix_s=4e9).runs == [run]
    with contextlib.closing(sqlite3.connect(setting.home.database)) as connection:
        assert connection.execute("SELECT count(*) FROM entrusted").fetchone() == (0,)


def test_a_file_in_its_place_is_named_and_strays_beside_it_hinder_nothing(setting: Setting) -> None:
    """Field case 57: no number of a process is believed. A file would look like a wake-up that never ends."""
    for name, text in (("host.pid", "4711\n"), ("live.pid", f"{os.getpid()}\n"), ("odd", "\0"), ("nothing", "")):
        stray = setting.home.hosts / name
        stray.touch(0o600)
        stray.write_text(text)
    taken = ServiceIdentity.take(setting.home)
    assert taken is not None
    taken.close()
    place = setting.home.hosts / NAME
    place.unlink()
    place.touch(0o600)
    with pytest.raises(HostlerError, match=f"{NAME} is no FIFO") as refused:
        ServiceIdentity.take(setting.home)
    assert refused.value.code is Code.UNSAFE_STATE


def test_of_many_that_start_at_once_exactly_one_becomes_it_and_is_reached(setting: Setting) -> None:
    """Field case 58: also when the one before was just killed."""
    crowd = multiprocessing.get_context("fork")
    for _ in range(5):
        begin, taken = crowd.Barrier(12), crowd.SimpleQueue()
        processes = [crowd.Process(target=_contend, args=(setting.home, begin, taken), daemon=True) for _ in range(12)]
        for process in processes:
            process.start()
        said = [taken.get() for _ in processes]
        (winner,) = (pid for pid, is_service in said if is_service)
        assert wake_service(setting.home)
        assert taken.get() == (winner, "woken")
        os.kill(winner, signal.SIGKILL)
        for process in processes:
            process.kill()
            process.join()
        assert not service_alive(setting.home)


def _contend(home: Home, begin: Barrier, taken: "SimpleQueue[Any]") -> None:
    begin.wait(60)
    identity = ServiceIdentity.take(home)
    taken.put((os.getpid(), identity is not None))
    if identity is not None:
        select.select([identity.fd], [], [])
        taken.put((os.getpid(), "woken"))
    signal.pause()
