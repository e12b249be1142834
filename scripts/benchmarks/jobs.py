"""How fast running workers put small programs through two slots."""

import shutil
import subprocess
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from scripts.benchmarks.contenders import FifoTokens, HostresPair, PortalockerSemaphore, Slot
from scripts.benchmarks.crew import crew
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, ratio, unmeasured
from scripts.benchmarks.surroundings import scratch

WORKERS: Final = 8
TRUE: Final = shutil.which("true") or "/bin/true"


def rows(effort: Effort) -> list[Row]:
    """Measure rounds of `true`, one contender after the other."""
    kinds: list[type[Slot]] = [kind for kind in (HostresPair, FifoTokens, PortalockerSemaphore) if kind.installed]
    spent = {kind.title: 0.0 for kind in kinds}
    for _ in range(effort.rounds):
        for kind in kinds:
            spent[kind.title] += _through(kind, effort.jobs)
    name = f"{effort.jobs} × true, 2 slots, {WORKERS} workers"
    ours = spent[HostresPair.title]
    to_semaphore = Goal(limit=0.333)
    return [
        ratio(f"{name} / FIFO tokens", ours, spent[FifoTokens.title], Goal(limit=1.6)),
        ratio(f"{name} / portalocker", ours, spent[PortalockerSemaphore.title], to_semaphore)
        if PortalockerSemaphore.title in spent
        else unmeasured(f"{name} / portalocker", "×", to_semaphore, "portalocker is not installed"),
        *(informing(f"{name}, {title}", 1000 * value / effort.rounds, "ms") for title, value in spent.items()),
    ]


def _through(kind: type[Slot], jobs: int) -> float:
    with scratch() as place, crew() as hands:
        kind(place)  # the first one makes what all share
        for number in range(WORKERS):
            hands.start(_work, kind, place, jobs // WORKERS + (number < jobs % WORKERS))
        for member in hands.members:
            member.hear()
        began = time.monotonic()
        for member in hands.members:
            member.tell()
        for member in hands.members:
            member.hear()
        return time.monotonic() - began


def _work(line: Connection, kind: type[Slot], place: Path, jobs: int) -> None:
    slot = kind(place)
    line.send("ready")
    line.recv()
    for _ in range(jobs):
        inherited = slot.acquire()
        subprocess.run([TRUE], pass_fds=inherited, check=True)
        slot.release()
    line.send("done")
