"""A process is ended with all that descends from it, and nothing else is."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from hostres.procfs import Process, all_processes, read_process, send_signal
from tests.hostres.started import PYTHON, TREE, alive, start
from tests.hostres.support import LIMIT_S, coordinator, eventually, pid_written

RECORDER = """
import os, signal, sys, time
def note(*_):
    with open(sys.argv[1], "a") as file:
        file.write("TERM\\n")
signal.signal(signal.SIGTERM, note)
with open(sys.argv[1], "a") as file:
    file.write("ready\\n")
while open(sys.argv[1]).read().count("TERM") < 1:
    time.sleep(0.01)
time.sleep(0.3)
"""


DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        with open(sys.argv[1], "w") as file:
            file.write(f"{os.getpid()}\\n")
        os.execve("/bin/sleep", ["sleep", "600"], {} if sys.argv[2:] else dict(os.environ))
    os._exit(0)
os.wait()
"""


def test_a_tree_is_ended_whole_with_its_own_sessions(tmp_path: Path) -> None:
    """Field case 2."""
    process = start("sh", "-c", TREE.format(tmp_path))
    pids = [process.pid, pid_written(tmp_path / "child"), pid_written(tmp_path / "session")]
    ended = process.end(grace_s=LIMIT_S, reason="cancel")
    assert ended.left == ()
    assert ended.exit is not None
    assert ended.exit.signal == signal.SIGTERM
    assert not any(alive(pid) for pid in pids)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)  # reaped


def test_who_is_deaf_to_the_request_is_killed_after_the_grace() -> None:
    told = threading.Event()
    deaf = 'trap "" TERM INT HUP; echo deaf; while :; do sleep 1; done'
    process = start("sh", "-c", deaf, on_stdout=lambda _: told.set())
    told.wait(LIMIT_S)
    began = time.monotonic()
    ended = process.end(grace_s=0.3, reason="timeout")
    assert 0.3 <= time.monotonic() - began < 3
    assert ended.left == ()
    assert ended.exit is not None
    assert (ended.exit.signal, ended.exit.asked_by) == (signal.SIGKILL, "timeout")


def test_who_asked_may_shorten_the_grace_while_it_lasts_and_nobody_else() -> None:
    told = threading.Event()
    deaf = 'trap "" TERM INT HUP; echo deaf; while :; do sleep 1; done'
    process = start("sh", "-c", deaf, on_stdout=lambda _: told.set())
    told.wait(LIMIT_S)
    asked = [
        threading.Thread(target=process.end, kwargs={"grace_s": 600.0, "reason": "drain"}),
        threading.Thread(target=process.end, kwargs={"grace_s": 0.0, "reason": "end of its program"}),
    ]
    for thread in asked:
        thread.start()
        eventually(lambda: process._patience is not None)
    assert process.wait(0.3) is None, "what was left to end by itself ended the grace of a drain"
    ended = process.end(grace_s=0.0, reason="drain")
    assert ended.exit is not None
    assert (ended.exit.signal, ended.exit.asked_by) == (signal.SIGKILL, "drain")
    for thread in asked:
        thread.join(LIMIT_S)


def test_each_process_gets_exactly_one_request(tmp_path: Path) -> None:
    """Field case 6."""
    note = tmp_path / "note"
    command = f"'{PYTHON}' -c '{RECORDER}' {note} & '{PYTHON}' -c '{RECORDER}' {note}2 & wait"
    process = start("sh", "-c", f"trap : TERM; {command}; wait")
    for path in (note, tmp_path / "note2"):
        eventually(lambda path=path: path.exists() and "ready" in path.read_text())  # type: ignore[misc]
    assert process.end(grace_s=LIMIT_S, reason="cancel").left == ()
    assert note.read_text() == "ready\nTERM\n"
    assert (tmp_path / "note2").read_text() == "ready\nTERM\n"


@pytest.mark.parametrize("bare", [False, True], ids=["marker", "descriptor"])
def test_a_daemon_is_found_by_its_marker_or_by_the_lease_it_inherited(tmp_path: Path, *, bare: bool) -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        more = ("bare",) if bare else ()
        process = start(PYTHON, "-c", DAEMON, tmp_path / "pid", *more, lease_fds=[lease.fd])
        assert process.wait(LIMIT_S) is not None
        pid = pid_written(tmp_path / "pid")
        other = start("sleep", "600", lease_fds=[lease.fd])
        assert alive(pid)
        assert process.end(grace_s=LIMIT_S, reason="cleanup").left == ()
        assert not alive(pid)
        assert alive(other.pid)  # under the same lease, but not of this tree
        other.end(grace_s=LIMIT_S, reason="cleanup")


def test_who_only_looks_at_a_ticket_is_not_of_the_tree_that_holds_it() -> None:
    """Another host looks at the tickets of all, and may do so just when a tree is being ended."""
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        process = start("sleep", "600", lease_fds=[lease.fd])
        path = os.readlink(f"/proc/self/fd/{lease.fd}")
        script = f"exec 7<>'{path}'; sleep 600 & echo $!; wait"
        looker = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
        assert looker.stdout is not None
        pid = int(looker.stdout.readline())
        assert process.end(grace_s=LIMIT_S, reason="cleanup").left == ()
        spared = alive(looker.pid) and alive(pid)
        for each in (looker.pid, pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        looker.communicate()
        assert spared


def test_a_stopped_process_is_ended_too() -> None:
    process = start("sleep", "600")
    os.kill(process.pid, signal.SIGSTOP)
    eventually(lambda: getattr(read_process(process.pid), "state", "") == "T")
    ended = process.end(grace_s=LIMIT_S, reason="cancel")
    assert ended.exit is not None
    assert ended.exit.signal == signal.SIGTERM


def test_many_threads_may_end_it_at_once() -> None:
    process = start("sleep", "600")
    ended: list[object] = []
    threads = [
        threading.Thread(target=lambda: ended.append(process.end(grace_s=LIMIT_S, reason="all"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert len(ended) == 8
    assert all(one == ended[0] for one in ended)


def test_a_number_that_another_process_has_got_is_not_signalled() -> None:
    other = subprocess.Popen(["sleep", "600"])
    now = read_process(other.pid)
    assert now is not None
    stale = Process(pid=other.pid, start_time=now.start_time - 1)
    assert not send_signal(stale, signal.SIGKILL)
    assert alive(other.pid)
    assert send_signal(now, signal.SIGKILL)
    other.wait()


def test_processes_that_come_and_go_all_the_time_are_ended_too(tmp_path: Path) -> None:
    process = start("sh", "-c", 'trap "" TERM; while :; do setsid sleep 600 & sleep 0.02; done')
    eventually(lambda: len(_of_session_or_below(process.pid)) > 4)
    assert process.end(grace_s=0.2, reason="cancel").left == ()
    assert _of_session_or_below(process.pid) == []


def _of_session_or_below(pid: int) -> list[int]:
    return [one.pid for one in all_processes().values() if pid in (one.session, one.parent) and not one.gone]
