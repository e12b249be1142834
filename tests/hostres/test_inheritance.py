"""Capacity follows the work: whoever has the descriptor holds it, and nobody else."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, holder, pid_written, rows, waiting


def test_a_holder_killed_outright_is_followed_by_the_next_waiter() -> None:
    """A3: no manual step, and no safety net."""
    with children() as start, coordinator(x=1) as machine:
        first = start(holder({"x": 1}, explicit={"x": 1}))
        first.line()
        second = start(
            """
            coordinator = Coordinator(FOLDER)
            lease = coordinator.lease({"x": 1})
            say(coordinator.safety_net_looks, coordinator.safety_net_progress)
            hear()
            """
        )
        waiting(1)
        first.kill()
        assert second.line().split()[1] == "0"
        assert [row.processes[0].pid for row in rows("admitted")] == [second.pid]
        second.kill()
        machine.lease({"x": 1}, wait=LIMIT_S).release()
        assert machine.safety_net_progress == 0


def test_children_and_grandchildren_of_a_killed_holder_keep_the_capacity_until_the_last_exits(tmp_path: Path) -> None:
    """A4."""
    with children() as start, coordinator(x=1) as machine:
        child = start(
            f"""
            lease = Coordinator(FOLDER, explicit={{"x": 1}}).lease({{"x": 1}})
            code = "sleep 600 & echo $! > {tmp_path}/grandchild; echo $$ > {tmp_path}/child; wait"
            subprocess.Popen(["sh", "-c", code], pass_fds=[lease.fd], env={{**os.environ, **lease.environment}})
            say("held")
            hear()
            """
        )
        child.line()
        grandchild, shell = pid_written(tmp_path / "grandchild"), pid_written(tmp_path / "child")
        child.kill()
        for pid in (shell, grandchild):
            (row,) = rows("admitted")
            assert pid in {process.pid for process in row.processes}
            assert child.pid not in {process.pid for process in row.processes}
            with pytest.raises(HostlerError, check=lambda error: error.code is Code.WAIT_TIMEOUT):
                machine.lease({"x": 1}, wait=0)
            os.kill(pid, signal.SIGKILL)
            eventually(partial(_holds_nothing, pid))
        machine.lease({"x": 1}, wait=LIMIT_S).release()


def _holds_nothing(pid: int) -> bool:
    return all(process.pid != pid for row in rows() for process in row.processes)


def test_a_waiter_is_told_when_the_last_child_exits() -> None:
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        child = subprocess.Popen(["sleep", "600"], pass_fds=[lease.fd])
        lease.release()
        assert [row.processes[0].pid for row in rows("admitted")] == [child.pid]
        admitted = threading.Event()

        def wait() -> None:
            machine.lease({"x": 1}).release()
            admitted.set()

        thread = threading.Thread(target=wait)
        thread.start()
        waiting(1)
        assert not admitted.is_set()
        child.kill()
        assert admitted.wait(LIMIT_S)
        thread.join()
        child.wait()
        assert machine.safety_net_progress == 0


def test_a_child_that_was_not_passed_the_descriptor_holds_nothing() -> None:
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        child = subprocess.Popen(["sleep", "600"])
        lease.release()
        machine.lease({"x": 1}, wait=LIMIT_S).release()
        child.kill()
        child.wait()


def test_spawns_racing_in_other_threads_do_not_inherit_the_descriptor() -> None:
    with coordinator(x=1) as machine:
        stop = threading.Event()
        strangers: list[subprocess.Popen[bytes]] = []

        def spawn() -> None:
            while not stop.is_set() and len(strangers) < 200:
                strangers.append(subprocess.Popen(["sleep", "600"], close_fds=len(strangers) % 2 == 0))

        threads = [threading.Thread(target=spawn) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(60):
                with machine.lease({"x": 1}, wait=LIMIT_S) as lease:
                    subprocess.Popen(["true"], pass_fds=[lease.fd]).wait()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert strangers
        assert rows() == []
        for stranger in strangers:
            stranger.kill()
            stranger.wait()


def test_a_fork_without_exec_holds_nothing_and_can_ask_for_itself() -> None:
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        ready, forked = os.pipe()
        release, done = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                lost = False
                try:
                    lease.assert_owned()
                except HostlerError as error:
                    lost = error.code is Code.OWNERSHIP_LOST
                os.write(forked, b"x")
                if lost and os.read(release, 1) == b"x":
                    machine.lease({"x": 1}, wait=LIMIT_S).release()
                    code = 0
            finally:
                os._exit(code)
        assert os.read(ready, 1) == b"x"
        lease.release()
        machine.lease({"x": 1}, wait=0).release()
        os.write(done, b"x")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        for fd in (ready, forked, release, done):
            os.close(fd)


def test_a_process_that_forks_while_its_threads_ask_leaves_nothing_held() -> None:
    code = """
        coordinator = Coordinator(FOLDER, explicit={"x": 1})
        stop = threading.Event()
        def ask():
            while not stop.is_set():
                coordinator.lease({"x": 1}).release()
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads: thread.start()
        pids = []
        for _ in range(40):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            pids.append(pid)
        stop.set()
        for thread in threads: thread.join()
        say(*pids)
        hear()
    """
    with children() as start, coordinator(x=1) as machine:
        child = start(code)
        pids = [int(word) for word in child.line().split()]
        machine.lease({"x": 1}, wait=LIMIT_S).release()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        child.kill()


def test_a_multiprocessing_pool_does_not_pin_the_capacity() -> None:
    code = """
        import multiprocessing
        coordinator = Coordinator(FOLDER, explicit={"x": 1})
        lease = coordinator.lease({"x": 1})
        for method in ("fork", "spawn"):
            process = multiprocessing.get_context(method).Process(target=signal.pause)
            process.start()
        say("started")
        hear()
        lease.release()
        say("released")
        hear()
        for process in multiprocessing.active_children():
            process.kill()
            process.join()
        say("over")
    """
    with children() as start, coordinator(x=1) as machine:
        child = start(code)
        child.line()
        child.tell()
        child.line()
        machine.lease({"x": 1}, wait=LIMIT_S).release()
        child.tell()
        assert child.line() == "over"


def test_a_process_that_imports_only_hostres_may_ask() -> None:
    code = (
        "import sys; from hostres.coordinator import Coordinator; from hostres.folders import machine_folder; import os;"
        "Coordinator(machine_folder(os.environ)).lease({'ffmpeg': 1}).release();"
        "heavy = {'pydantic', 'pykka', 'rich', 'orjson', 'sqlite3', 'psutil', 'platformdirs', 'hostler'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_after_any_number_of_killed_holders_all_capacity_is_there() -> None:
    """Field case 39: 60 holders, four at a time, are named and killed; what they held is free at once."""
    machine = coordinator(x=4)
    crowd = multiprocessing.get_context("fork")
    with machine:
        for _ in range(15):
            held = crowd.SimpleQueue()
            holders = [crowd.Process(target=_hold, args=(held,), daemon=True) for _ in range(4)]
            for each in holders:
                each.start()
            pids = {held.get() for _ in holders}
            assert {process.pid for row in rows("admitted") for process in row.processes} == pids
            for each in holders:
                each.kill()
                each.join()
            machine.lease({"x": 4}, wait=0).release()


def _hold(held: "SimpleQueue[int]") -> None:
    lease = coordinator(x=4).lease({"x": 1}, wait=LIMIT_S)
    held.put(os.getpid())
    signal.pause()
    lease.release()
