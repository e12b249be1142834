"""A program gets what it is given and nothing else, however it is started."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hostres import descriptors, posix_spawn, spawning, trees
from hostres.command import Command
from hostres.errors import Code, HostlerError
from hostres.exits import Exit
from hostres.process import Supervised
from hostres.procfs import read_process, send_signal
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, pid_written


@pytest.fixture(params=["subprocess", "posix_spawn", "trampoline"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make every start take one of the ways."""
    monkeypatch.setattr(spawning, "signals_need_reset", lambda: request.param != "subprocess")
    if request.param == "trampoline":
        monkeypatch.setattr(posix_spawn, "library", lambda: None)
    if request.param == "posix_spawn":
        monkeypatch.setattr(subprocess, "Popen", None)
    return str(request.param)


def outcome(*argv: str | Path, **more: object) -> tuple[bytes, Exit]:
    told: list[bytes] = []
    given = {"env": dict(os.environ), "on_stdout": told.append, **more}
    process = Supervised.start(argv, **given)  # type: ignore[arg-type]
    done = process.wait(LIMIT_S)
    assert process.end(grace_s=LIMIT_S, reason="cleanup").left == ()
    assert done is not None
    return b"".join(told), done


def test_arguments_folder_environment_and_code_are_as_given(way: str, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text('#!/bin/sh\necho "$@"; pwd; echo $GIVEN; echo err >&2; exit 7\n')
    (tmp_path / "tool").chmod(0o755)
    errors: list[bytes] = []
    said, done = outcome(
        "./tool", "a b", "caf\udce9", cwd=tmp_path, env={**os.environ, "GIVEN": "x\udce9"}, on_stderr=errors.append
    )
    assert said == b"a b caf\xe9\n" + os.fsencode(tmp_path.resolve()) + b"\nx\xe9\n"
    assert (errors, done.code) == ([b"err\n"], 7)


def test_its_own_name_is_what_it_was_called_by(way: str) -> None:
    said, _ = outcome("sh", "-c", "tr '\\0' '\\n' < /proc/$$/cmdline | head -1")
    assert said == b"sh\n"


def test_it_leads_a_session_and_has_only_its_streams_and_leases(way: str) -> None:
    script = "ls -l /proc/$$/fd; ps -o sid=,pid= -p $$"
    with coordinator() as machine, machine.lease({}) as one, machine.lease({}) as other, open("/dev/null") as ours:
        os.set_inheritable(ours.fileno(), True)
        said, _ = outcome("sh", "-c", script, lease_fds=[one.fd, other.fd])
        *lines, last = said.decode().splitlines()
        listed = {int(line.split()[-3]) for line in lines if " -> " in line}
        assert listed == {0, 1, 2, one.fd, other.fd}
        assert len(set(last.split())) == 1
        assert not os.get_inheritable(one.fd)


@pytest.mark.parametrize("kind", ["nothing", "bytes", "file"])
def test_it_reads_nothing_or_bytes_or_a_file(way: str, kind: str, tmp_path: Path) -> None:
    content = b"x" * 3_000_000
    (tmp_path / "input").write_bytes(content)
    stdin = {"nothing": None, "bytes": content, "file": tmp_path / "input"}[kind]
    said, _ = outcome("wc", "-c", stdin=stdin)
    assert int(said) == (0 if stdin is None else len(content))


def test_what_cannot_be_started_leaves_nothing_open(way: str, tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\0odd")
    (tmp_path / "odd").chmod(0o755)
    before = sorted(os.listdir("/proc/self/fd"))
    for more in ({}, {"stdin": b"x"}, {"stdin": tmp_path / "missing"}):
        if way == "trampoline" and "missing" not in str(more):
            continue  # there it is Python that cannot become the program: 126
        with pytest.raises(HostlerError, check=lambda error: error.code is Code.UNAVAILABLE):
            outcome(tmp_path / "odd", **more)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_signals_are_reset_without_another_python(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "subprocess":
        monkeypatch.undo()
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        said, _ = outcome("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        signal.signal(signal.SIGHUP, before)
    assert [int(line.split()[1], 16) for line in said.splitlines()] == [0, 0]


def test_a_reset_is_needed_only_where_something_would_be_inherited() -> None:
    assert not spawning.signals_need_reset()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert spawning.signals_need_reset()
    finally:
        signal.signal(signal.SIGHUP, before)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        assert spawning.signals_need_reset()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])


def test_a_program_without_standard_streams_may_start_others() -> None:
    code = """
        from hostres.process import Supervised
        said = os.dup(1)
        os.set_inheritable(said, False)
        for fd in (0, 1, 2):
            os.close(fd)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        told = []
        process = Supervised.start(["sh", "-c", "cat; echo out; echo err >&2"], env=dict(os.environ), stdin=b"in ",
                                   on_stdout=told.append, on_stderr=told.append)
        process.wait(60)
        process.end(grace_s=0, reason="cleanup")
        os.write(said, b"".join(sorted(told)).replace(b"\\n", b" ") + b"\\n")
    """
    with children() as start:
        assert start(code).line().split() in (["err", "in", "out"], ["err", "out", "in"])


# -- what it used, and what is left ------------------------------------------------------------------------------------

BUSY = "for _ in range(3_000_000): pass"


def test_what_its_children_used_counts_once_they_were_waited_for() -> None:
    _, done = outcome("sh", "-c", f'{sys.executable} -c "{BUSY}"; true')
    assert done.cpu_seconds > 0.03


def test_what_could_not_be_ended_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"setsid sleep 600 >/dev/null 2>&1 & echo $! > {tmp_path}/pid; wait"
    process = Supervised.start(["sh", "-c", script], env=dict(os.environ))
    pid = pid_written(tmp_path / "pid")
    eventually(lambda: getattr(read_process(pid), "session", 0) == pid)
    send: Callable[..., bool] = send_signal
    with monkeypatch.context() as patch:
        patch.setattr(trees, "KILL_S", 0.1)
        patch.setattr(trees, "send_signal", lambda one, number: one.pid == pid or send(one, number))
        ended = process.end(grace_s=0.1, reason="cancel")
    assert [(one.pid, one.command) for one in ended.left] == [(pid, "sleep 600")]
    assert ended.exit is not None
    os.kill(pid, signal.SIGKILL)


def forked(seconds: float) -> int:
    """Fork a child that lives for a while, and return its number."""
    pid = os.fork()
    if pid == 0:
        time.sleep(seconds)
        os._exit(0)
    return pid


def test_a_child_that_is_forked_while_a_program_reads_does_not_keep_it_from_the_end(way: str) -> None:
    """It had a copy of what we write to; the program waited for its end for as long as the child lived."""
    process = Supervised.start(["sh", "-c", "sleep 0.3; wc -c"], env=dict(os.environ), stdin=b"x" * 1_000_000)
    child = forked(LIMIT_S)
    try:
        done = process.wait(LIMIT_S / 3)
        assert done is not None
        assert done.code == 0
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        process.end(grace_s=0, reason="cleanup")


def test_fork_waits_until_a_program_has_been_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Amid its start there are copies of its own ends of our pipes, by which it would seem to go on."""
    amid, children = threading.Event(), []
    start = spawning._spawned

    def slow(command: Command, source: int) -> spawning.Child:
        child = start(command, source)
        amid.set()
        time.sleep(0.2)
        order.append("started")
        return child

    def fork() -> None:
        amid.wait(LIMIT_S)
        children.append(forked(0))
        order.append("forked")

    order: list[str] = []
    monkeypatch.setattr(spawning, "_spawned", slow)
    thread = threading.Thread(target=fork)
    thread.start()
    outcome("true")
    thread.join(LIMIT_S)
    os.waitpid(children[0], 0)
    assert order == ["started", "forked"]


def in_a_fork(work: Callable[[], bool]) -> bool:
    """Return what *work* says in a forked child."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_forked_child_has_no_copy_of_the_pipes_to_a_program(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one of what it writes, it would not be ended by SIGPIPE once this program is gone."""
    started: list[spawning.Child] = []
    real = spawning._spawned

    def noted(command: Command, source: int) -> spawning.Child:
        started.append(real(command, source))
        return started[-1]

    monkeypatch.setattr(spawning, "_spawned", noted)
    process = Supervised.start(["cat"], env=dict(os.environ), stdin=b"x" * 1_000_000)
    (child,) = started
    ends = [end.fileno() for end in (child.stdin, child.stdout, child.stderr) if end is not None]
    nothing = os.stat(os.devnull).st_rdev
    try:
        assert len(ends) == 3
        assert in_a_fork(lambda: {os.fstat(fd).st_rdev for fd in ends} == {nothing})
    finally:
        process.end(grace_s=0, reason="cleanup")


@pytest.mark.parametrize("fed", [True, False])
def test_a_forked_child_keeps_no_lease_though_no_descriptor_is_left(fed: bool) -> None:
    with coordinator(x=1) as machine:
        program = Supervised.start(["sleep", "60"], env=dict(os.environ), stdin=b"x" * 1_000_000 if fed else None)
        lease = machine.lease({"x": 1})
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        filled: list[int] = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
        try:
            with contextlib.suppress(OSError):
                while True:
                    filled.append(os.open(os.devnull, os.O_RDONLY))
            child = forked(LIMIT_S)
        finally:
            for fd in filled:
                os.close(fd)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        try:
            lease.release()
            machine.lease({"x": 1}, wait=LIMIT_S / 3).release()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            program.end(grace_s=0, reason="cleanup")


def test_a_signal_handler_that_forks_amid_a_step_of_admission_waits_for_no_start_that_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    amid, go_on = threading.Event(), threading.Event()
    real = spawning._spawned

    def slow(command: Command, source: int) -> spawning.Child:
        child = real(command, source)
        amid.set()
        go_on.wait(LIMIT_S)
        return child

    monkeypatch.setattr(spawning, "_spawned", slow)
    thread = threading.Thread(target=outcome, args=("cat",), kwargs={"stdin": b"x"}, daemon=True)
    thread.start()
    assert amid.wait(LIMIT_S)
    with descriptors.guard:  # what a handler forks now, waits for the start
        go_on.set()
        thread.join(LIMIT_S / 3)
        assert not thread.is_alive()
