"""Supervised processes: drained, bounded, ended whole, reaped."""

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.leftovers import end_leftovers, find_leftovers
from hostres.logs import read_log
from hostres.process import Supervised
from hostres.procfs import Process, all_processes, read_process, send_signal
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, pid_written

PYTHON = sys.executable


def start(*argv: str | Path, env: dict[str, str] | None = None, **more: object) -> Supervised:
    return Supervised.start(argv, env={**os.environ, **(env or {})}, **{"stdout_log": None, "stderr_log": None, **more})  # type: ignore[arg-type]


def finished(process: Supervised) -> tuple[int | None, int | None, str | None]:
    done = process.wait(LIMIT_S)
    assert done is not None
    ended = process.end(grace_s=0.0, reason="cleanup")
    assert ended.exit == done
    assert ended.left == ()
    return done.code, done.signal, done.asked_by


def alive(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and not process.gone


def test_the_exit_code_the_signal_and_who_asked_are_told_apart() -> None:
    """Field case 17."""
    assert finished(start("sh", "-c", "exit 3")) == (3, None, None)
    assert finished(start("sh", "-c", "kill -9 $$")) == (None, signal.SIGKILL, None)
    process = start("sleep", "600")
    ended = process.end(grace_s=LIMIT_S, reason="cancel")
    assert ended.exit is not None
    assert (ended.exit.code, ended.exit.signal, ended.exit.asked_by) == (None, signal.SIGTERM, "cancel")
    assert process.end(grace_s=0, reason="later") == ended


def test_both_outputs_are_logged_and_told_as_bytes(tmp_path: Path) -> None:
    told: list[bytes] = []
    process = start(
        PYTHON, "-c", r"import os; os.write(1, b'caf\xe9\0out'); os.write(2, b'\xff\n')",
        stdout_log=tmp_path / "out", stderr_log=tmp_path / "err", on_stdout=told.append,
    )  # fmt: skip
    assert finished(process)[0] == 0
    assert (tmp_path / "out").read_bytes() == b"".join(told) == b"caf\xe9\0out"
    assert (tmp_path / "err").read_bytes() == b"\xff\n"


def test_all_that_it_wrote_is_logged_when_it_counts_as_ended(tmp_path: Path) -> None:
    for _ in range(40):
        process = start(
            "sh", "-c", "seq 10000; seq 10000 >&2", stdout_log=tmp_path / "out", stderr_log=tmp_path / "err"
        )
        assert process.wait(LIMIT_S) is not None
        sizes = (tmp_path / "out").stat().st_size, (tmp_path / "err").stat().st_size
        process.end(grace_s=0, reason="cleanup")
        assert sizes == (48894, 48894)


def test_it_reads_nothing_or_what_it_is_given() -> None:
    for stdin in (None, b"", b"x" * 3_000_000):
        told: list[bytes] = []
        process = start("wc", "-c", stdin=stdin, on_stdout=told.append)
        assert finished(process)[0] == 0
        assert int(b"".join(told)) == len(stdin or b"")


def test_a_program_that_does_not_read_its_input_is_not_waited_for() -> None:
    assert finished(start("true", stdin=b"x" * 3_000_000))[0] == 0


def test_it_has_its_own_session_and_none_of_our_descriptors() -> None:
    """Field case 8: no terminal that it could be stopped by."""
    told: list[bytes] = []
    with open("/dev/null") as ours:
        os.set_inheritable(ours.fileno(), True)
        process = start("sh", "-c", "ls /proc/$$/fd; ps -o sid= -p $$; echo $$; cat", on_stdout=told.append)
        assert finished(process)[0] == 0
    words = b"".join(told).split()
    assert words[-1] == words[-2] == str(process.pid).encode()
    assert set(words[:-2]) == {b"0", b"1", b"2"}


NOISY = """
import os, sys, threading
block = b"n" * (1 << 20)
fed = []
def feed():
    count = 0
    while piece := os.read(0, 1 << 16):
        count += len(piece)
    fed.append(count)
thread = threading.Thread(target=feed)
thread.start()
for number in range({blocks}):
    os.write(1 + number % 2, block)
thread.join()
os.write(1, b"fed %d" % fed[0])
"""


def test_any_volume_on_both_streams_is_drained_with_flat_memory_while_input_is_fed(tmp_path: Path) -> None:
    """Field case 14: 200 MB in alternating blocks of 1 MB, 20 MB of input meanwhile."""
    code = f"""
        import resource
        from pathlib import Path
        from hostres.process import Supervised
        give = b"i" * 20_000_000
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        process = Supervised.start(
            [sys.executable, "-c", {NOISY.format(blocks=200)!r}], env=dict(os.environ), stdin=give,
            stdout_log=Path({str(tmp_path / "out")!r}), stderr_log=Path({str(tmp_path / "err")!r}))
        done = process.wait(60)
        process.end(grace_s=0, reason="cleanup")
        say(done.code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        hear()
    """
    with children() as begin:
        code_text, grown_kib = begin(code).line(within_s=60).split()
    assert code_text == "0"
    assert int(grown_kib) < 8 * 1024
    kept = b"".join(read_log(tmp_path / "out"))
    assert kept.endswith(b"fed 20000000")
    assert kept.startswith(b"nnnn")
    assert b"[hostler: 100663308 bytes dropped here]" in kept
    assert len(kept) < (4 << 20) + 100
    assert {path.name for path in tmp_path.iterdir()} == {"out", "err"}


def test_much_error_output_before_the_input_is_read_does_not_block() -> None:
    """Field case 14."""
    code = "import os; os.write(2, b'e' * 10_000_000); os.write(1, str(len(os.read(0, 100))).encode())"
    told: list[bytes] = []
    assert finished(start(PYTHON, "-c", code, stdin=b"hello", on_stdout=told.append))[0] == 0
    assert b"".join(told) == b"5"


def test_a_line_of_50_mb_without_an_end_is_no_trouble(tmp_path: Path) -> None:
    """Field case 26."""
    process = start("sh", "-c", "head -c 50000000 /dev/zero", stdout_log=tmp_path / "out", keep_bytes=1 << 16)
    assert finished(process)[0] == 0
    assert (tmp_path / "out").stat().st_size < (1 << 16) + 100


def test_a_callback_that_fails_does_not_stop_the_stream(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(piece: bytes) -> None:
        raise ValueError("mine")

    process = start("seq", "100000", on_stdout=fail, stdout_log=tmp_path / "out")
    assert finished(process)[0] == 0
    assert (tmp_path / "out").read_bytes().endswith(b"100000\n")
    assert caplog.text.count("ValueError: mine") == 1


def test_what_is_left_in_the_background_does_not_hold_up_the_end(tmp_path: Path) -> None:
    process = start("sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; echo said", stdout_log=tmp_path / "out")
    done = process.wait(LIMIT_S)
    assert done is not None
    assert done.code == 0
    assert b"".join(read_log(tmp_path / "out")) == b"said\n"
    pid = pid_written(tmp_path / "pid")
    assert alive(pid)
    assert process.end(grace_s=LIMIT_S, reason="cleanup").left == ()
    assert not alive(pid)


# -- trees -------------------------------------------------------------------------------------------------------------

TREE = "sleep 600 & echo $! > {0}/child; setsid sh -c 'echo $$ > {0}/session; exec sleep 600' & wait"
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


# -- the start ---------------------------------------------------------------------------------------------------------


def refused(code: Code) -> "pytest.RaisesExc[HostlerError]":
    return pytest.raises(HostlerError, check=lambda error: error.code is code)


def test_what_cannot_be_started_is_refused(tmp_path: Path) -> None:
    with refused(Code.NOT_FOUND):
        start("no-such-program")
    with refused(Code.NOT_FOUND):
        start("true", cwd=tmp_path / "nowhere")
    (tmp_path / "data").write_text("")
    with refused(Code.UNAVAILABLE):
        start(tmp_path / "data")
    (tmp_path / "data").chmod(0o755)
    with refused(Code.UNAVAILABLE):
        start(tmp_path / "data", stdout_log=tmp_path / "log")
    for argv in ((), ("true", "a\0b")):
        with refused(Code.INVALID_DATA):
            start(*argv)
    with refused(Code.UNAVAILABLE):
        start("true", "x" * 5_000_000)
    for bad in ({"a": "b\0c"}, {"a=b": "c"}, {"": "c"}):
        with refused(Code.INVALID_DATA):
            start("true", env=bad)


def test_seventeen_leases_are_refused_before_the_spawn(tmp_path: Path) -> None:
    """R14."""
    with coordinator() as machine:
        leases = [machine.lease({}) for _ in range(17)]
        with refused(Code.INVALID_DATA):
            start("touch", tmp_path / "started", lease_fds=[lease.fd for lease in leases])
        assert not (tmp_path / "started").exists()
        sixteen = [lease.fd for lease in leases[:16]]
        assert finished(start("true", lease_fds=[*sixteen, *sixteen]))[0] == 0
        for lease in leases:
            lease.release()


SIGNALS = """
from hostres.process import Supervised
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
told = []
environ = {**os.environ, "LC_ALL": "C", "ODD": "caf\\udce9"}
code = "grep -E '^Sig(Blk|Ign)' /proc/self/status; env | sort | grep -av -e ^PWD -e ^_= -e ^HOSTLER_PROCESS"
process = Supervised.start(["sh", "-c", code], env=environ, stdout_log=None, stderr_log=None, on_stdout=told.append)
pid = process.wait(60) and process.pid
process.end(grace_s=0, reason="cleanup")
lines = b"".join(told).splitlines()
masks = [int(line.split()[1], 16) for line in lines[:2]]
expected = sorted(os.fsencode(f"{k}={v}") for k, v in environ.items() if k not in ("PWD", "_", "HOSTLER_PROCESS"))
got = sorted(line for line in lines[2:] if not line.startswith((b"SHLVL=", b"OLDPWD=")))
expected = [line for line in expected if not line.startswith((b"SHLVL=", b"OLDPWD=")) and b"\\n" not in line]
say(masks, sorted(set(expected) - set(got)), sorted(name for name in set(got) - set(expected) if name.startswith(b"LC_")))
hear()
"""


def test_blocked_and_ignored_signals_are_not_inherited_and_the_environment_is_whole() -> None:
    with children() as begin:
        assert begin(SIGNALS).line() == "[0, 0] [] []"


def test_it_tells_what_it_used() -> None:
    code = "x = bytearray(60_000_000)\nfor _ in range(2_000_000): pass"
    process = start(PYTHON, "-c", code)
    done = process.wait(LIMIT_S)
    process.end(grace_s=0, reason="cleanup")
    assert done is not None
    assert done.peak_bytes > 60_000_000
    assert 0.01 < done.cpu_seconds < 10


def test_nothing_of_ours_is_left_open_or_running_after_many_starts() -> None:
    finished(start("true"))
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for number in range(40):
        finished(start("sh", "-c", f"exit {number % 3}", stdin=b"x" if number % 2 else None))
        with pytest.raises(HostlerError):
            start("no-such-program")
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


def test_without_descriptors_the_start_fails_clean_and_later_ones_work() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = max(int(name) for name in os.listdir("/proc/self/fd"))
    try:
        for room in range(3, 14):
            resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + room, hard))
            try:
                process = start("true", stdin=b"x")
            except HostlerError as error:
                assert error.code is Code.UNAVAILABLE  # noqa: PT017
                continue
            assert process.wait(LIMIT_S) is not None
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            process.end(grace_s=0, reason="cleanup")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert finished(start("true"))[0] == 0


def test_a_process_that_cannot_be_looked_at_for_want_of_a_descriptor_is_not_taken_for_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Field case 45: it would go on with nobody to attend to it, beside the next attempt."""
    real, open_ = os.open, "/proc/"

    def full(path: Any, *more: Any, **named: Any) -> int:
        if str(path).startswith(open_) and str(path).endswith("/stat"):
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, *more, **named)

    before = set(psutil.Process().children())
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(OSError, match="Too many"):
            read_process(os.getpid())
        with pytest.raises(HostlerError) as refused:
            start("sleep", "600")
    assert refused.value.code is Code.UNAVAILABLE
    assert set(psutil.Process().children()) == before


# -- leftovers ---------------------------------------------------------------------------------------------------------


def test_the_processes_of_a_killed_host_are_found_by_their_run_and_ended_whole(tmp_path: Path) -> None:
    host = f"""
        from hostres.process import Supervised
        environ = {{**os.environ, "HOSTLER_RUN": "run_a", "HOSTLER_NODE": "film/encode"}}
        Supervised.start(["sh", "-c", {TREE.format(tmp_path)!r}], env=environ, stdout_log=None, stderr_log=None)
        say("started")
        hear()
    """
    with children() as begin:
        child = begin(host)
        child.line()
        pids = {pid_written(tmp_path / "child"), pid_written(tmp_path / "session")}
        child.kill()
        found = find_leftovers("run_a")
        assert pids < {one.pid for one in found}
        assert {one.node for one in found} == {"film/encode"}
        assert ("sleep", "600") in {one.command for one in found}
        assert find_leftovers("run_b") == []
        assert end_leftovers(found, grace_s=LIMIT_S) == []
        assert not any(alive(pid) for pid in pids)
        assert find_leftovers("run_a") == []
    assert end_leftovers([], grace_s=0) == []


def test_what_threw_its_environment_away_is_found_by_the_ticket_that_it_inherited_and_its_host_is_not() -> None:
    host = """
        from hostres.coordinator import Coordinator
        from hostres.folders import machine_folder
        from hostres.process import Supervised
        machine = Coordinator(machine_folder(os.environ), explicit={"x": 1})
        lease = machine.lease({"x": 1}, name="run_a film/encode")
        child = Supervised.start(["sh", "-c", "exec env -i sleep 600"], env={**os.environ}, lease_fds=[lease.fd])
        say(child.pid)
        hear()
    """
    folder = machine_folder(os.environ)
    with children() as begin:
        child = begin(host)
        pid = int(child.line())
        eventually(lambda: [one.command for one in find_leftovers("run_a", folder)] == [("sleep", "600")])
        assert find_leftovers("run_a") == []
        assert find_leftovers("run_b", folder) == []
        (found,) = find_leftovers("run_a", folder)
        assert (found.pid, found.node) == (pid, "film/encode")
        child.kill()
        assert end_leftovers([found], grace_s=LIMIT_S, machine_folder=folder) == []
        assert not alive(pid)


def test_neither_we_nor_those_we_descend_from_are_leftovers() -> None:
    code = """
        from hostres.leftovers import find_leftovers
        say([one.pid for one in find_leftovers("run_a")])
        inner = subprocess.run([sys.executable, "-c",
            "from hostres.leftovers import find_leftovers; print([one.pid for one in find_leftovers('run_a')])"],
            capture_output=True, text=True, check=True)
        say(inner.stdout.strip())
    """
    with children() as begin:
        child = begin(code, environ={"HOSTLER_RUN": "run_a"})
        assert child.line() == "[]"
        assert child.line() == "[]"


def test_the_first_process_of_a_container_reaps_what_its_processes_leave_and_nothing_else(tmp_path: Path) -> None:
    """Field case 10: zombies pile up where nobody else takes them, and no exit status of a step is stolen."""
    namespace = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("one may not make a process namespace here")
    code = """
        import os, subprocess, sys, time
        from pathlib import Path
        from hostres.process import Supervised
        from hostres.procfs import all_processes
        own = subprocess.Popen(["sh", "-c", "exit 7"], start_new_session=True)
        def run(script):
            process = Supervised.start(["sh", "-c", script], env=dict(os.environ))
            done = process.wait(60)
            process.end(grace_s=0, reason="cleanup")
            return done.code
        print([run(f"(sleep 0.1 &); exit {number}") for number in range(5)])
        print([run(f"(setsid setsid -w sleep 600 &); sleep 0.1; exit {number}") for number in range(3)])
        daemon = "import os, time; os.setsid(); time.sleep(2.5)"
        bare = subprocess.Popen([sys.executable, "-c", "pass"])
        first = Supervised.start(["sh", "-c", f"{sys.executable} -c '{daemon}' & sleep 0.5"], env=dict(os.environ))
        first.wait(60)
        until = time.monotonic() + 20
        def zombies():
            return {pid for pid, process in all_processes().items() if process.gone and process.parent == 1}
        while zombies() != {own.pid, bare.pid} or len(all_processes()) > 3:
            assert time.monotonic() < until, zombies()
            time.sleep(0.05)
        print(own.wait(), bare.wait())
    """
    done = subprocess.run(
        [*namespace, sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = ["[0, 1, 2, 3, 4]", "[0, 1, 2]", "7 0"]
    assert (done.stdout.splitlines(), done.returncode) == (said, 0), done.stderr
