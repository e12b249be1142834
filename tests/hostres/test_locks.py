"""Locks on open file descriptions: who has them, and who is told."""

import os
import select
import signal
import subprocess
import threading
from pathlib import Path

import fasteners
import pytest

from hostres import descriptors
from hostres.errors import Code, HostlerError
from hostres.gate import Gate
from hostres.locks import FifoLock, is_held, poke, probe
from tests.hostres.support import children, eventually


def test_they_are_locks_of_fasteners() -> None:
    assert issubclass(Gate, fasteners.InterProcessLock)
    assert issubclass(FifoLock, fasteners.InterProcessLock)


def test_a_fifo_is_locked_from_birth_and_free_when_closed(tmp_path: Path) -> None:
    lock = FifoLock.born(tmp_path, "one")
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    assert (tmp_path / "one").lstat().st_mode & 0o777 == 0o600
    assert is_held(tmp_path / "one")
    assert not os.get_inheritable(lock.fd)
    lock.release()
    assert not is_held(tmp_path / "one")
    lock.close()


def test_a_second_lock_of_the_same_process_is_refused(tmp_path: Path) -> None:
    first = FifoLock.born(tmp_path, "one")
    second = FifoLock(str(tmp_path / "one"))
    assert not second.acquire(blocking=False)
    first.close()
    assert second.acquire(blocking=False)
    second.close()


def test_a_fifo_wakes_its_owner_when_poked(tmp_path: Path) -> None:
    lock = FifoLock.born(tmp_path, "one")
    assert poke(lock.place)
    assert select.select([lock.fd], [], [], 5)[0]
    lock.drain()
    assert not select.select([lock.fd], [], [], 0)[0]
    lock.close()
    assert not poke(lock.place)
    assert not poke(tmp_path / "nobody")


def test_a_watch_hangs_up_when_the_last_copy_is_closed(tmp_path: Path) -> None:
    lock = FifoLock.born(tmp_path, "one")
    watch = probe(lock.place)
    assert watch is not None
    poll = select.poll()
    poll.register(watch, 0)
    child = subprocess.Popen(["sleep", "60"], pass_fds=[lock.fd])
    lock.close()
    assert poll.poll(0) == []
    child.kill()
    assert poll.poll(5000) == [(watch, select.POLLHUP)]
    assert probe(lock.place) is None
    child.wait()
    descriptors.close(watch)


def test_a_release_leaves_the_lock_to_a_child_that_has_a_copy(tmp_path: Path) -> None:
    lock = FifoLock.born(tmp_path, "one")
    child = subprocess.Popen(["sleep", "60"], pass_fds=[lock.fd])
    lock.release()
    assert is_held(tmp_path / "one")
    child.kill()
    child.wait()
    assert not is_held(tmp_path / "one")


def test_a_lock_that_is_dropped_frees_itself_and_complains(tmp_path: Path) -> None:
    lock = FifoLock.born(tmp_path, "one")
    with pytest.warns(ResourceWarning, match="never released"):
        del lock
    assert not is_held(tmp_path / "one")


def test_a_probe_of_an_unsafe_name_is_refused(tmp_path: Path) -> None:
    lock = FifoLock.born(tmp_path, "one")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(HostlerError, match="symbolic link"):
        probe(tmp_path / "two")
    (tmp_path / "one").chmod(0o666)
    with pytest.raises(HostlerError, match="chmod 600"):
        probe(tmp_path / "one")
    lock.close()


def test_the_gate_admits_one_thread_and_one_process_at_a_time(tmp_path: Path) -> None:
    code = f"""
        from hostres.gate import Gate
        gate = Gate.at({str(tmp_path / "gate")!r})
        for _ in range(300):
            with gate:
                value = int(open({str(tmp_path / "count")!r}).read())
                open({str(tmp_path / "count")!r}, "w").write(str(value + 1))
        say("done")
        hear()
    """
    (tmp_path / "count").write_text("0")
    gate = Gate.at(str(tmp_path / "gate"))

    def count() -> None:
        for _ in range(150):
            with gate:
                (tmp_path / "count").write_text(str(int((tmp_path / "count").read_text()) + 1))

    with children() as start:
        child = start(code)
        threads = [threading.Thread(target=count) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert child.line() == "done"
    assert (tmp_path / "count").read_text() == "600"


def test_a_gate_held_by_a_stopped_process_names_it_and_goes_on_when_it_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = f"""
        from hostres.gate import Gate
        with Gate.at({str(tmp_path / "gate")!r}):
            say("inside")
            hear()
        say("outside")
        hear()
    """
    with children() as start:
        child = start(code)
        assert child.line() == "inside"
        os.kill(child.pid, signal.SIGSTOP)
        gate = Gate.at(str(tmp_path / "gate"))
        gate.SILENCE_S = 0.05  # type: ignore[misc]
        entered = threading.Event()

        def enter() -> None:
            with gate:
                entered.set()

        thread = threading.Thread(target=enter)
        thread.start()
        eventually(lambda: f"pid {child.pid}" in caplog.text)
        assert not entered.is_set()
        os.kill(child.pid, signal.SIGCONT)
        child.tell()
        assert entered.wait(60)
        thread.join()


def test_a_gate_that_stays_closed_can_be_given_up(tmp_path: Path) -> None:
    code = f"""
        from hostres.gate import Gate
        Gate.at({str(tmp_path / "gate")!r}).enter()
        say("inside")
        hear()
    """
    with children() as start:
        child = start(code)
        child.line()
        with pytest.raises(HostlerError, match=f"pid {child.pid}", check=lambda error: error.code is Code.WAIT_TIMEOUT):
            Gate.at(str(tmp_path / "gate")).enter(until=0.0)
        child.kill()
        with Gate.at(str(tmp_path / "gate")):
            pass


def test_a_gate_whose_file_was_replaced_is_opened_anew(tmp_path: Path) -> None:
    gate = Gate.at(str(tmp_path / "gate"))
    with gate:
        before = (tmp_path / "gate").stat().st_ino
    (tmp_path / "gate").rename(tmp_path / "old")
    (tmp_path / "gate").touch(mode=0o600)
    with gate:
        assert (tmp_path / "gate").stat().st_ino != before
        other = FifoLock(str(tmp_path / "gate"))
        assert not other.acquire(blocking=False)
        other.close()


def test_a_forked_child_keeps_no_lock_and_opens_its_own_gate(tmp_path: Path) -> None:
    lock = FifoLock.born(tmp_path, "one")
    gate = Gate.at(str(tmp_path / "gate"))
    with gate:
        pass
    release, done = os.pipe()
    ready, forked = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with gate:
                os.write(forked, b"x")
                os._exit(0 if lock.fd == -1 and os.read(release, 1) == b"x" else 1)
        finally:
            os._exit(2)
    assert os.read(ready, 1) == b"x"
    lock.close()
    assert not is_held(tmp_path / "one")
    os.write(done, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for fd in (release, done, ready, forked):
        os.close(fd)
