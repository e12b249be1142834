"""What the tests of admission share: real processes that obey line by line, and waiting for a condition."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.gate import Gate
from hostres.lease import Lease
from hostres.tickets import HOLDING, TicketFolder
from hostres.top import Row, snapshot

LIMIT_S = 60.0

PRELUDE = """
import os, signal, subprocess, sys, threading, time
from hostres.coordinator import Coordinator
from hostres.errors import HostlerError
from hostres.folders import machine_folder
from hostres.gate import Gate
FOLDER = machine_folder(os.environ)
def say(*words): print(*words, flush=True)
def hear(): return sys.stdin.readline().strip()
"""

HOLDER = """
coordinator = Coordinator(FOLDER, explicit={explicit!r})
lease = coordinator.lease({claims!r}, name={name!r})
say("held", lease.ticket)
hear()
lease.release()
say("released")
hear()
"""


def eventually(condition: Callable[[], object], *, within_s: float = LIMIT_S) -> None:
    """Wait until a condition holds that nothing announces."""
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.005)


class Child:
    """A Python process that runs *code* and is talked to line by line."""

    def __init__(self, code: str, *, environ: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **(environ or {})},
        )
        self._heard = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self, *, within_s: float = LIMIT_S) -> str:
        """The next line it says."""
        assert self.process.stdout is not None
        until = time.monotonic() + within_s
        while b"\n" not in self._heard:
            assert self._readable(max(0.0, until - time.monotonic())), "it said nothing in time"
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                assert self.process.stderr is not None
                raise AssertionError(f"it ended: {self.process.stderr.read().decode()}")
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def silent(self) -> bool:
        """Whether it has said nothing that was not read yet."""
        return not self._heard and not self._readable(0)

    def _readable(self, within_s: float) -> bool:
        assert self.process.stdout is not None
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN)
        return bool(poll.poll(within_s * 1000))

    def tell(self, text: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(LIMIT_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


@contextlib.contextmanager
def children() -> Iterator[Callable[..., Child]]:
    """Start children; all are ended on leaving."""
    started: list[Child] = []

    def start(code: str, *, environ: dict[str, str] | None = None) -> Child:
        started.append(Child(code, environ=environ))
        return started[-1]

    try:
        yield start
    finally:
        for child in started:
            child.close()


def holder(claims: dict[str, int], *, explicit: dict[str, int] | None = None, name: str = "") -> str:
    """Code of a child that waits for claims, says so, and releases when told."""
    return HOLDER.format(claims=claims, explicit=explicit or {}, name=name)


def coordinator(**explicit: int) -> Coordinator:
    """This process's coordinator; underscores stand for hyphens."""
    return Coordinator(machine_folder(os.environ), explicit={key.replace("_", "-"): n for key, n in explicit.items()})


def refused(code: Code, match: str | None = None) -> "pytest.RaisesExc[HostlerError]":
    """Expect an error of a code."""
    return pytest.raises(HostlerError, match=match, check=lambda error: error.code is code)


@contextlib.contextmanager
def held(lease: Lease) -> Iterator[Lease]:
    """Hold a lease like somebody else than who asks for more inside, and release it at the end."""
    try:
        yield lease
    finally:
        lease.release()


def rows(state: str | None = None) -> list[Row]:
    """The live tickets."""
    return [row for row in snapshot(machine_folder(os.environ)).tickets if state in (None, row.state)]


def waiting(count: int) -> None:
    """Wait until *count* tickets wait."""
    eventually(lambda: len(rows("waiting")) == count)


def pid_written(path: Path) -> int:
    """The number that a process writes into a file."""
    eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def stop(child: Child) -> None:
    """Stop a process, but not while it decides: then all others would wait for it to go on."""

    def stopped() -> bool:
        os.kill(child.pid, signal.SIGSTOP)
        eventually(lambda: _state(child.pid) == "T")
        try:
            Gate.at(f"{machine_folder(os.environ)}/gate").enter(until=time.monotonic() + 0.1)
        except HostlerError:
            os.kill(child.pid, signal.SIGCONT)
            return False
        Gate.at(f"{machine_folder(os.environ)}/gate").leave()
        return True

    eventually(stopped)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def excess(capacity: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """What is held past the capacity, on the machine and inside each ticket, as an observer without the gate sees it.

    Names are read before lives: whatever is counted was held at the moment between the two.
    """
    tickets = TicketFolder(str(machine_folder(os.environ) / "t"))
    listing = tickets.scan()
    seen = {}
    for entry in listing.entries:
        if entry.state != HOLDING:
            continue
        with contextlib.suppress(HostlerError):  # its record goes with it
            claims = tickets.read(entry.number).claims
            if tickets.is_live(entry):
                seen[entry.number] = (entry, claims)
    room = {"the machine": dict(capacity)} | {f"ticket {number}": dict(claims) for number, (_, claims) in seen.items()}
    for entry, claims in seen.values():
        host = next((f"ticket {number}" for number in entry.parents if number in seen), "the machine")
        for resource, units in claims.items():
            room[host][resource] = room[host].get(resource, 0) - units
    over = {place: {name: -left for name, left in units.items() if left < 0} for place, units in room.items()}
    return {place: units for place, units in over.items() if units}
