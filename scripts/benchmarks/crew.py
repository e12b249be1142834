"""Forked processes that a benchmark sets to work, each on a line to it; they end with it, however it ends."""

import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Final

LIMIT_S: Final = 120.0
"""Whoever says nothing for so long is lost."""

_FORK: Final = multiprocessing.get_context("fork")
_PR_SET_PDEATHSIG: Final = 1


class LostError(Exception):
    """A process did not answer."""


@dataclass(frozen=True, slots=True)
class Member:
    """A process of the crew."""

    process: BaseProcess
    line: Connection

    @property
    def pid(self) -> int:
        """Its number."""
        assert self.process.pid is not None
        return self.process.pid

    def hear(self, limit_s: float = LIMIT_S) -> Any:
        """Return what it says next.

        Raises:
            LostError: It says nothing in time, or has ended.

        """
        try:
            if not self.line.poll(limit_s):
                raise LostError(f"process {self.pid} said nothing for {limit_s:g} s")
            return self.line.recv()
        except (EOFError, OSError):
            raise LostError(f"process {self.pid} ended early") from None

    def tell(self, word: object = None) -> None:
        """Say something to it."""
        self.line.send(word)


class Crew:
    """Starts processes; ends them all when it is left."""

    def __init__(self) -> None:
        self.members: list[Member] = []

    def start(self, work: Callable[..., None], *args: object) -> Member:
        """Start `work(line, *args)` in a process of its own."""
        ours, theirs = _FORK.Pipe()
        process = _FORK.Process(target=_serve, args=(work, ours, theirs, os.getpid(), args), daemon=True)
        process.start()
        theirs.close()
        member = Member(process, ours)
        self.members.append(member)
        return member

    def end(self) -> None:
        """End all of them."""
        for member in self.members:
            member.process.kill()
        for member in self.members:
            member.process.join()
            member.line.close()
        self.members.clear()


@contextlib.contextmanager
def crew() -> Iterator[Crew]:
    """Give a crew, and end it afterwards."""
    found = Crew()
    try:
        yield found
    finally:
        found.end()


def _serve(
    work: Callable[..., None], ours: Connection, theirs: Connection, parent: int, args: tuple[object, ...]
) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.disable()  # a collection would touch, and so copy, every page shared with the parent
    ours.close()
    work(theirs, *args)
