"""A program whose other parts take the news of how our children end: nothing raw comes of it, and nothing is made up."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostres import process
from hostres.children import require_heard_ends
from hostres.command import Command
from hostres.errors import Code
from hostres.lease import Lease
from hostres.spawning import Child, spawn
from tests.hostres.started import alive, finished, start
from tests.hostres.support import LIMIT_S, coordinator, pid_written, refused


@pytest.fixture
def lease() -> Iterator[Lease]:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        yield lease


def test_a_program_that_ignores_sigchld_is_told_so_before_anything_is_started(lease: Lease, tmp_path: Path) -> None:
    """The kernel forgets each child as it ends; what the program has set is not ours to change."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with refused(Code.CONFLICT, "ignores SIGCHLD"):
            lease.run(["touch", str(tmp_path / "started")])
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGCHLD, before)
    require_heard_ends()
    assert not (tmp_path / "started").exists()


def steal(child: Child) -> Child:
    """Wait for a child as a thread that waits for any does."""
    os.waitpid(child.pid, 0)
    return child


@pytest.mark.parametrize("when", ["before we look", "after"])
def test_of_a_program_for_which_another_part_has_waited_only_the_output_is_known(
    when: str, lease: Lease, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is not said to have succeeded, nor to have failed; what it has left running is ended all the same."""
    if when == "before we look":
        monkeypatch.setattr(process, "spawn", lambda command: steal(spawn(command)))
    else:
        reap = process.Supervised._reap

        def late(self: process.Supervised) -> None:
            os.waitpid(self.pid, 0)
            reap(self)

        monkeypatch.setattr(process.Supervised, "_reap", late)
    script = f"sleep 600 >/dev/null 2>&1 & echo $! > {tmp_path}/pid; echo said; exit 3"
    said: list[bytes] = []
    done = lease.run(["sh", "-c", script], check=False, on_stdout=said.append)
    assert (done.unseen, done.code, done.signal, done.peak_bytes) == (True, None, None, None)
    assert b"".join(said) == b"said\n"
    left = pid_written(tmp_path / "pid")
    assert not alive(left)
    with refused(Code.CONFLICT, "nobody has seen how sh ended"):
        lease.run(["sh", "-c", script])


def test_a_stolen_program_that_cannot_be_attended_to_is_refused_as_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing left to end, or to wait for."""

    def full(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(process, "spawn", lambda command: steal(spawn(command)))
    with monkeypatch.context() as patch:
        patch.setattr("os.eventfd", full)
        with refused(Code.UNAVAILABLE, "cannot be attended to"):
            start("true")
    assert finished(start("true")) == (None, None, None)


def test_a_number_that_is_another_process_s_by_now_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stolen child's number is free, and may be given to a process that is nobody's business here."""
    stranger = os.getppid()

    def reused(command: Command) -> Child:
        child = steal(spawn(command))
        child.pid = stranger
        return child

    monkeypatch.setattr(process, "spawn", reused)
    one = start("true")
    done = one.wait(LIMIT_S)
    assert done is not None
    assert done.unseen
    assert one.end(grace_s=0, reason="cleanup").left == ()
    os.kill(stranger, 0)
