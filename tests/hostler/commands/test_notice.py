"""What a waiting command says, and what it must not disturb."""

import os
import signal
import threading
from pathlib import Path

import pytest

from hostler.commands.notice import Notice
from hostres.coordinator import Coordinator, Patience
from hostres.folders import machine_folder
from hostres.place import Place, place_of_this_process
from tests.hostres.support import children, coordinator, holder, waiting
from tests.support import until


def test_its_thread_takes_no_signal_and_ours_takes_all() -> None:
    before, threads = set(os.listdir("/proc/self/task")), threading.active_count()
    ours = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with Notice(machine_folder(os.environ)):
        (task,) = set(os.listdir("/proc/self/task")) - before
        fields = dict(line.split(":\t") for line in Path(f"/proc/self/task/{task}/status").read_text().splitlines())
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGTSTP):
            assert int(fields["SigBlk"], 16) & 1 << (number - 1)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == ours
    until(lambda: threading.active_count() == threads)  # nobody waits for it; it sees that it is over when it wakes


def test_without_room_for_its_thread_the_wait_is_not_told_of_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was an internal error of `hostler exec`."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with Notice(machine_folder(os.environ)), coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        lease.assert_owned()


def test_a_short_wait_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Notice(machine_folder(os.environ)):
        pass
    assert capsys.readouterr().err == ""


def test_the_place_of_a_process_that_does_not_wait_is_none() -> None:
    assert place_of_this_process(machine_folder(os.environ)) is None
    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        assert place_of_this_process(machine_folder(os.environ)) is None


def test_the_place_tells_the_first_thing_that_is_short_and_how_many_are_before() -> None:
    code = """
        from hostres.place import place_of_this_process
        machine = Coordinator(FOLDER)
        ask = machine.ask({"y": 2, "x": 1}, notify=print)
        while (place := place_of_this_process(FOLDER)) is None or not place.resource:
            time.sleep(0.005)
        say(place)
        hear()
        ask.withdraw()
    """
    endless = Patience(factor=0, least_s=3600, most_s=3600)  # else what is free is kept for the first after 2 s
    with (
        Coordinator(machine_folder(os.environ), explicit={"x": 1, "y": 2}, patience=endless) as machine,
        machine.lease({"y": 1}),
        children() as start,
    ):
        start(holder({"y": 2}))
        waiting(1)
        child = start(code)
        assert child.line() == "waiting for y (1 of 2 free): 1 before you"
    assert str(Place(resource="", free=0, capacity=0, before=0)) == "waiting: 0 before you"
