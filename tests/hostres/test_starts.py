"""The start of a process: what is refused, what it inherits, and that nothing of ours is left by it."""

import errno
import os
import resource
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from hostres.errors import Code, HostlerError
from hostres.procfs import read_process
from tests.hostres.started import finished, start
from tests.hostres.support import LIMIT_S, children, coordinator


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
