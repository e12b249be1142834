"""Programs that stand behind others: nice and ionice as real processes, their children and ourselves have them."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from pydantic import BaseModel

from hostler import Host, Policy, operation, workflow
from hostres import niceness, posix_spawn, spawning
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.niceness import Niceness, born_nice, lower_session
from hostres.settings import machine_settings
from tests.hostres.support import LIMIT_S, eventually

HOSTLER = (sys.executable, "-m", "hostler")
OWN = os.getpriority(os.PRIO_PROCESS, 0)
NICE = max(7, OWN)
ASK = """
import os, psutil
io = psutil.Process().ionice()
print(os.getpriority(os.PRIO_PROCESS, 0), int(io.ioclass), io.value, flush=True)
"""
TWICE = f"import subprocess, sys\ncode = {ASK!r}\nexec(code)\nsubprocess.run([sys.executable, '-c', code], check=True)"
IDLE = f"{NICE} 3 0\n"

needs_autogroups = pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="needs autogroups")


def configure(text: str) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text(f"[machine]\n{text}\n")


def configured() -> Coordinator:
    return Coordinator(machine_folder(os.environ), settings=machine_settings(os.environ))


def ours() -> tuple[int, int]:
    return os.getpriority(os.PRIO_PROCESS, 0), int(psutil.Process().ionice().ioclass)


@pytest.mark.parametrize("way", ["subprocess", "posix_spawn", "trampoline"])
def test_a_supervised_program_and_its_child_are_nice_from_birth_and_we_are_not(
    way: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawning, "signals_need_reset", lambda: way != "subprocess")
    if way == "trampoline":
        monkeypatch.setattr(posix_spawn, "library", lambda: None)
    configure('nice = 7\nionice = "idle"')
    before = ours()
    with configured() as machine, machine.lease({}) as lease:
        lease.run([sys.executable, "-c", TWICE])
    assert capfd.readouterr().out == IDLE * 2
    assert ours() == before


def test_a_level_of_io_is_one_too(capfd: pytest.CaptureFixture[str]) -> None:
    configure("ionice = 6")
    with configured() as machine, machine.lease({}) as lease:
        lease.run([sys.executable, "-c", ASK])
    assert capfd.readouterr().out == f"{OWN} 2 6\n"


@pytest.mark.parametrize("tty", [(), ("--tty",)])
def test_a_command_of_exec_is_nice_and_exec_itself_is_not(tty: tuple[str, ...]) -> None:
    configure('nice = 7\nionice = "idle"')
    code = f"{ASK}\nprint(os.getpriority(os.PRIO_PROCESS, os.getppid()), int(psutil.Process(os.getppid()).ionice().ioclass))"
    command = [*HOSTLER, "exec", *tty, "--", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == [*IDLE.split(), str(OWN), "0"]


def test_who_is_nicer_already_stays_so(capfd: pytest.CaptureFixture[str]) -> None:
    configure("nice = 7")
    code = f"import os; os.setpriority(os.PRIO_PROCESS, 0, 12); os.execvp({HOSTLER[0]!r}, {[*HOSTLER, 'exec', '--', 'nice']!r})"
    subprocess.run([sys.executable, "-c", code], timeout=LIMIT_S, check=True)
    assert capfd.readouterr().out == f"{max(12, OWN)}\n"


class Nothing(BaseModel):
    pass


class Said(BaseModel):
    text: str


@operation("test.claims-none", version=1, policy=Policy(effect="local-read"))
def claims_none(ctx, input: Nothing) -> Said:
    return Said(text=ctx.run([sys.executable, "-c", ASK]).stdout.decode())


@operation("test.claims-one", version=1, policy=Policy(effect="local-read", claims={"local-io": 1}))
def claims_one(ctx, input: Nothing) -> Said:
    return Said(text=ctx.run([sys.executable, "-c", ASK]).stdout.decode())


@workflow("nice", version=1)
def nice(build):
    return {key: build.call(what, key=key, input={})["text"] for key, what in (("a", claims_none), ("b", claims_one))}


def test_the_programs_of_nodes_are_nice_whether_or_not_they_claim_anything() -> None:
    configure('nice = 7\nionice = "idle"')
    with Host() as host:
        assert host.submit(nice).wait(timeout=LIMIT_S).outputs == {"a": IDLE, "b": IDLE}


@needs_autogroups
def test_a_session_of_its_own_stands_behind_other_sessions_too(capfd: pytest.CaptureFixture[str]) -> None:
    """Where Linux shares by sessions, the niceness of a process counts within its session alone."""
    configure("nice = 7")
    with configured() as machine, machine.lease({}) as lease:
        process = lease.popen(["cat"], stdin=Path("/dev/zero"), on_stdout=lambda _: None)
        try:
            eventually(lambda: Path(f"/proc/{process.pid}/autogroup").read_text().endswith("nice 7\n"))
        finally:
            process.end(grace_s=1, reason="cleanup")


@needs_autogroups
def test_a_session_that_the_system_does_not_hear_of_at_once_is_lowered_later(monkeypatch: pytest.MonkeyPatch) -> None:
    deaf, wished = threading.Semaphore(0), []
    write: Callable[[int, bytes], int] = os.write

    def hear(fd: int, data: bytes) -> int:
        wished.append(data)
        if not deaf.acquire(blocking=False):
            raise BlockingIOError
        return write(fd, data)

    monkeypatch.setattr(os, "write", hear)
    monkeypatch.setattr(niceness, "AGAIN_S", 0.001)
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        lower_session(process.pid, Niceness(nice=3))
        eventually(lambda: len(wished) > 2)
        deaf.release()
        eventually(lambda: Path(f"/proc/{process.pid}/autogroup").read_text().endswith("nice 3\n"))
    finally:
        process.kill()
        process.wait()


def test_what_starting_raises_reaches_who_asked() -> None:
    with pytest.raises(ZeroDivisionError):
        born_nice(Niceness(nice=1), lambda: 1 // 0)
    configure("nice = 7")
    with configured() as machine, machine.lease({}) as lease, pytest.raises(HostlerError) as missing:
        lease.run(["no-such-program"])
    assert missing.value.code is Code.NOT_FOUND


def test_a_system_that_does_not_allow_it_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setpriority", refuse)
    configure("nice = 7")
    with configured() as machine, machine.lease({}) as lease, pytest.raises(HostlerError) as refused:
        lease.run(["true"])
    assert refused.value.code is Code.UNAVAILABLE
    assert "nice 7 of the configuration cannot be set" in refused.value.what


@pytest.mark.parametrize(
    "text",
    ["nice = -1", "nice = 20", "nice = true", 'nice = "low"', "ionice = 8", 'ionice = "realtime"', "ionice = 1.0",
     "ionice = false", 'memory = "real"', "memory = 1"],
)  # fmt: skip
def test_what_is_no_niceness_is_named_with_its_line(text: str) -> None:
    configure(text)
    with pytest.raises(HostlerError) as refused:
        machine_settings(os.environ)
    assert refused.value.code is Code.INVALID_PROFILE
    assert refused.value.what == f"{os.environ['HOSTLER_CONFIG']} line 2: machine.{text} is not right"


def test_machine_show_and_doctor_show_it() -> None:
    configure('nice = 7\nionice = "idle"')
    for arguments in (("machine", "show"), ("doctor",)):
        done = subprocess.run([*HOSTLER, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert "programs run with nice 7, ionice idle" in done.stdout
