"""What taking and giving back costs when nobody else wants it."""

import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path

from scripts.benchmarks.contenders import Fasteners, FileLock, HostresThree, Slot, SnakemakeLeases
from scripts.benchmarks.crew import crew
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, ratio, unmeasured
from scripts.benchmarks.surroundings import scratch

BATCH = 20
NAME = "acquire + release of three resources"


def rows(effort: Effort) -> list[Row]:
    """Measure on disk, where the machine folder lies unless it was moved, and for comparison in memory."""
    disk, memory = _medians(effort, on_disk=True), _medians(effort, on_disk=False)
    ours = disk[HostresThree.title]
    limits = {Fasteners.title: 3, FileLock.title: 0.5, SnakemakeLeases.title: 0.1}
    return [
        *(
            ratio(f"{NAME} / {peer}", ours, disk[peer], Goal(limit=limit))
            if peer in disk
            else unmeasured(f"{NAME} / {peer}", "×", Goal(limit=limit), f"{peer} is not installed")
            for peer, limit in limits.items()
        ),
        *(informing(f"acquire + release on disk, {title}", value, "µs") for title, value in disk.items()),
        *(informing(f"acquire + release in memory, {title}", value, "µs") for title, value in memory.items()),
        informing("acquire + release on disk, hostres beside another process's lease", _beside(effort), "µs"),
    ]


def _medians(effort: Effort, *, on_disk: bool) -> dict[str, float]:
    """Return the median batch of each contender, in microseconds a pair; batches are interleaved."""
    kinds: list[type[Slot]] = [kind for kind in (HostresThree, Fasteners, FileLock, SnakemakeLeases) if kind.installed]
    times: dict[str, list[float]] = {kind.title: [] for kind in kinds}
    with scratch(on_disk=on_disk) as place:
        slots: list[Slot] = []
        for kind in kinds:
            own = place / kind.title
            own.mkdir(mode=0o700)
            slots.append(kind(own))
        for slot in slots:
            _batch(slot)
        for _ in range(max(1, effort.rounds * effort.pairs // BATCH)):
            for slot in slots:
                times[slot.title].append(_batch(slot))
    return {title: statistics.median(values) for title, values in times.items()}


def _beside(effort: Effort) -> float:
    """Return the median batch where another process holds something else, in microseconds a pair."""
    with scratch(on_disk=True) as place, crew() as hands:
        slot = HostresThree(place)
        _batch(slot)
        hands.start(_hold, place).hear()
        return statistics.median(_batch(slot) for _ in range(max(1, effort.rounds * effort.pairs // BATCH)))


def _hold(line: Connection, place: Path) -> None:
    slot = HostresThree(place)
    slot.acquire()
    line.send("holds")
    line.recv()


def _batch(slot: Slot) -> float:
    began = time.perf_counter()
    for _ in range(BATCH):
        slot.acquire()
        slot.release()
    return (time.perf_counter() - began) / BATCH * 1e6
