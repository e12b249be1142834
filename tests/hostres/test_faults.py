"""What the system may do to the machine folder and the processes that share it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hostres.coordinator import Admitted, NotAdmitted
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, holder, rows, waiting

HOSTLER = (sys.executable, "-m", "hostler")


def refused(code: Code, match: str | None = None) -> "pytest.RaisesExc[HostlerError]":
    return pytest.raises(HostlerError, match=match, check=lambda error: error.code is code)


def hostler(*arguments: str, by: Sequence[str] = HOSTLER) -> "subprocess.CompletedProcess[str]":
    command = [*by, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


# -- the disk ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of its own below the machine folder."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", place], check=False)
    if done.returncode:
        pytest.skip("one may not mount here")
    monkeypatch.setenv("HOSTLER_MACHINE_DIR", str(place / "machine"))
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(place: Path) -> Path:
    filler = place / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return filler


def test_a_full_disk_refuses_newcomers_and_hands_over_to_those_who_wait(small_disk: Path) -> None:
    with coordinator(x=1) as machine, children() as start:
        lease = machine.lease({"x": 1})
        child = start(holder({"x": 1}))
        waiting(1)
        filler = fill(small_disk)
        with refused(Code.UNAVAILABLE, "free some space"):
            machine.lease({"x": 1})
        assert len(rows()) == 2
        lease.release()
        child.line()
        child.tell()
        child.line()
        filler.unlink()
        machine.lease({"x": 1}, wait=0).release()
    assert rows() == []


def test_a_read_only_folder_refuses_to_admit_and_can_still_be_looked_at(small_disk: Path) -> None:
    assert hostler("exec", "--claim", "ffmpeg=1", "--", "true").returncode == 0
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = hostler("exec", "--claim", "ffmpeg=1", "--", "true")
    assert done.returncode == 69
    assert "make the file system writable" in done.stderr
    assert "nothing is admitted" in hostler("top").stdout
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert hostler("exec", "--claim", "ffmpeg=1", "--", "true").returncode == 0


def test_a_folder_deleted_under_live_tickets_is_noticed_by_all_of_them() -> None:
    waiter = """
        try:
            Coordinator(FOLDER).lease({"x": 1})
        except HostlerError as error:
            say(error.code)
    """
    with coordinator(x=1) as machine, children() as start:
        lease = machine.lease({"x": 1})
        child = start(waiter)
        waiting(1)
        shutil.rmtree(machine_folder(os.environ))
        with refused(Code.OWNERSHIP_LOST):
            lease.assert_owned()
        lease.release()
        assert child.line() in ("unavailable", "wait-aborted")
        with machine.lease({"x": 1}, wait=0) as fresh:
            fresh.assert_owned()
            other = start(holder({"x": 1}))
            waiting(1)
        other.line()


def test_a_folder_made_anew_by_another_process_sends_all_waiters_of_the_old_one_away() -> None:
    """None of them waits for what will never come, and none is counted in the new one."""
    waiter = """
        try:
            Coordinator(FOLDER).lease({"x": 1})
        except HostlerError as error:
            say(error.code)
    """
    folder = machine_folder(os.environ)
    with coordinator(x=1) as machine, children() as start:
        lease = machine.lease({"x": 1})
        old = []
        for count in (1, 2, 3, 4):
            old.append(start(waiter))
            waiting(count)
        folder.rename(folder.with_name("gone"))
        newcomer = start(holder({"x": 1}, explicit={"x": 1}))
        assert newcomer.line().startswith("held 1")
        assert {child.line() for child in old} <= {"unavailable", "wait-aborted"}
        with refused(Code.OWNERSHIP_LOST):
            lease.assert_owned()
        lease.release()
        assert [row.pid for row in rows()] == [newcomer.pid]
        shutil.rmtree(folder.with_name("gone"))


# -- descriptors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", range(6, 12))
def test_with_few_descriptors_exec_runs_or_says_so_in_one_line(limit: int) -> None:
    done = hostler("exec", "--claim", "ffmpeg=2", "--", "true", by=("prlimit", f"--nofile={limit}", *HOSTLER))
    if done.returncode:
        assert (done.returncode, done.stderr.count("\n")) == (69, 1), done.stderr
        assert "raise the limit of open files" in done.stderr
    assert rows() == []
    with coordinator() as machine:
        machine.lease({"ffmpeg": 2}, wait=0).release()


def test_an_inherited_descriptor_that_the_child_closes_holds_nothing() -> None:
    code = "import os, sys; os.close(int(sys.argv[1])); print('closed', flush=True); sys.stdin.read()"
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(lease.fd)],
            pass_fds=[lease.fd], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == b"closed\n"
        lease.release()
        machine.lease({"x": 1}, wait=0).release()
        assert child.poll() is None
        child.communicate()


def test_whatever_fails_under_a_lease_gives_it_back() -> None:
    """Field case 39."""
    with coordinator(x=1) as machine:
        for argv, error in (
            (["no-such-program"], HostlerError),
            (["false"], subprocess.CalledProcessError),
            (["sh", "-c", "kill -9 $$"], subprocess.CalledProcessError),
            (["sleep", "600"], subprocess.TimeoutExpired),
        ):
            with pytest.raises(error), machine.lease({"x": 1}, wait=0) as lease:
                lease.run(argv, timeout=0.05 if argv[0] == "sleep" else None)
            assert rows() == []


# -- other processes ---------------------------------------------------------------------------------------------------


def test_a_stopped_process_inside_the_gate_is_named_and_others_go_on_when_it_continues() -> None:
    code = """
        coordinator = Coordinator(FOLDER)
        with coordinator.machine._gate:
            say("in")
            os.kill(os.getpid(), signal.SIGSTOP)
        say("out")
        hear()
    """
    with children() as start:
        child = start(code)
        child.line()
        command = [*HOSTLER, "exec", "--claim", "ffmpeg=1", "--", "echo", "ran"]
        waiter = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert waiter.stderr is not None
        assert f"held by pid {child.pid} (" in waiter.stderr.readline()
        os.kill(child.pid, signal.SIGCONT)
        assert waiter.communicate(timeout=LIMIT_S) == ("ran\n", "")
        assert child.line() == "out"


def test_of_five_hundred_waiters_a_release_makes_one_or_two_look() -> None:
    with coordinator(x=1) as machine, coordinator() as crowd:
        lease = machine.lease({"x": 1})
        answers: list[Admitted | NotAdmitted] = []
        asks = [crowd.ask({"x": 1}, notify=answers.append) for _ in range(500)]
        eventually(lambda: all(ask.ticket is not None or ask.settled for ask in asks))
        for _ in range(3):
            before, admitted = crowd.machine.looks - crowd.machine.safety_net_looks, len(answers)
            lease.release()
            eventually(lambda admitted=admitted: len(answers) > admitted)  # type: ignore[misc]
            answer = answers[-1]
            assert isinstance(answer, Admitted)
            assert len(answers) == admitted + 1
            assert crowd.machine.looks - crowd.machine.safety_net_looks - before <= 3
            lease = answer.lease
        for ask in asks:
            ask.withdraw()
        lease.release()
    assert rows() == []


# -- clocks ------------------------------------------------------------------------------------------------------------


JUMPING = """
import itertools, runpy, sys, time
jumps_s = itertools.cycle([3600 * float(hours) for hours in sys.argv.pop(1).split(",")])
now_s, now_ns = time.time, time.time_ns
time.time = lambda: now_s() + next(jumps_s)
time.time_ns = lambda: now_ns() + int(next(jumps_s) * 1e9)
runpy.run_module("hostler", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("hours", ["3", "-3", "0,3,-3"])
def test_a_program_whose_wall_clock_is_hours_off_or_jumps_shares_the_machine(hours: str) -> None:
    """Field case 72."""
    shifted = (sys.executable, "-c", JUMPING, hours)
    with coordinator(ffmpeg=2) as machine, machine.lease({"ffmpeg": 2}) as lease:
        began = time.monotonic()
        done = hostler("exec", "--claim", "ffmpeg=1", "--wait", "0.3s", "--", "true", by=shifted)
        assert (done.returncode, done.stderr.count("\n")) == (75, 1)
        assert 0.3 <= time.monotonic() - began < 10
        command = [*shifted, "exec", "--claim", "ffmpeg=1", "--", "echo", "ran"]
        waiter = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        waiting(1)
        (row,) = rows("waiting")
        assert row.for_s < 60
        lease.release()
        assert waiter.communicate(timeout=LIMIT_S)[0] == "ran\n"
        assert machine.safety_net_progress == 0


def test_a_container_whose_boot_clock_is_shifted_waits_no_longer_and_no_less_than_others() -> None:
    shift = "100000000"
    shifted = ("unshare", "-T", "--boottime", shift)
    if subprocess.run([*shifted, "true"], capture_output=True, check=False).returncode:
        pytest.skip("one may not make a time namespace here")
    with coordinator(ffmpeg=2) as machine:
        lease = machine.lease({"ffmpeg": 2})
        command = [*shifted, *HOSTLER, "exec", "--claim", "ffmpeg=1", "--", "cat", "/proc/self/timens_offsets"]
        waiter = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        waiting(1)
        eventually(lambda: rows("waiting")[0].for_s > 0)
        assert rows("waiting")[0].for_s < 60
        lease.release()
        assert shift in waiter.communicate(timeout=LIMIT_S)[0]
        assert machine.safety_net_progress == 0
