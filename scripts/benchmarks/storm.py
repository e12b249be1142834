"""A claim of the whole machine in a storm of small ones: when it starts, and what that costs the small ones."""

import contextlib
import ctypes
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from scripts.benchmarks.contenders import FULL_HOUSE, SlotFiles, Units
from scripts.benchmarks.crew import crew
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, judged, ratio, unmeasured
from scripts.benchmarks.surroundings import scratch

WORKERS: Final = 16
JOB_S: Final = 0.02
PATIENCE_S: Final = 2.0
"""What a claim waits at least before room is kept for it, by default."""

GIVE_UP_S: Final = 3.5
"""A large claim that has waited so long is given up."""

PAUSE_S: Final = 0.1


class HostresUnits(Units):
    """A lease of so many units."""

    title = "hostres"

    def __init__(self, place: Path) -> None:
        self._coordinator = Coordinator(place / "machine", explicit={"unit": FULL_HOUSE}, environ={})

    @contextlib.contextmanager
    def hold(self, units: int, wait_s: float) -> Iterator[bool]:
        """Take units; see `Units`."""
        try:
            lease = self._coordinator.lease({"unit": units}, wait=wait_s)
        except HostlerError as error:
            if error.code is not Code.WAIT_TIMEOUT:
                raise
            yield False
            return
        with lease:
            yield True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Storm:
    jobs_per_s: float
    waits_s: tuple[float, ...]
    gave_up: int


def rows(effort: Effort) -> list[Row]:
    """Measure storms of both kinds in turn."""
    ours, theirs = [], []
    for _ in range(effort.storms):
        ours.append(_storm(HostresUnits, effort.storm_s))
        theirs.append(_storm(SlotFiles, effort.storm_s))
    rate, their_rate = (sum(storm.jobs_per_s for storm in storms) / len(storms) for storms in (ours, theirs))
    return [
        _beyond_patience(ours, effort.storm_s),
        ratio("small jobs of the storm / slot files", rate, their_rate, Goal(limit=0.85, at_least=True)),
        informing("small jobs of the storm, hostres", rate, "/s"),
        informing("small jobs of the storm, slot files", their_rate, "/s"),
        informing("whole-machine claims admitted, slot files", sum(len(storm.waits_s) for storm in theirs), ""),
    ]


def _beyond_patience(storms: Sequence[_Storm], storm_s: float) -> Row:
    name, goal = "whole-machine claim in a storm: job lengths beyond its patience", Goal(limit=3)
    waits_s = [wait_s for storm in storms for wait_s in storm.waits_s]
    gave_up = sum(storm.gave_up for storm in storms)
    if storm_s < GIVE_UP_S:
        return unmeasured(name, "", goal, "the storm was too short")
    longest = GIVE_UP_S if gave_up else max(waits_s)
    told = f"{len(waits_s)} admitted" + (f", {gave_up} given up after {GIVE_UP_S:g} s" if gave_up else "")
    return judged(name, max(0.0, (longest - PATIENCE_S) / JOB_S), "", goal, told)


def _storm(kind: type[Units], storm_s: float) -> _Storm:
    shared: Any = multiprocessing.get_context("fork").RawArray(ctypes.c_long, WORKERS)
    with scratch() as place, crew() as hands:
        kind(place)
        for number in range(WORKERS):
            hands.start(_small, kind, place, shared, number)
        large = hands.start(_large, kind, place, min(GIVE_UP_S, storm_s))
        for member in hands.members:
            member.hear()
        for member in hands.members:
            member.tell()
        time.sleep(PAUSE_S)
        began, before = time.monotonic(), sum(shared)
        time.sleep(storm_s)
        done, took = sum(shared) - before, time.monotonic() - began
        large.tell()
        waits_s, gave_up = large.hear()
    return _Storm(jobs_per_s=done / took, waits_s=tuple(waits_s), gave_up=gave_up)


def _small(line: Connection, kind: type[Units], place: Path, done: Any, me: int) -> None:
    units = kind(place)
    line.send("ready")
    line.recv()
    while True:
        with units.hold(1, 60.0) as held:
            if held:
                time.sleep(JOB_S)
                done[me] += 1


def _large(line: Connection, kind: type[Units], place: Path, wait_s: float) -> None:
    units = kind(place)
    waits_s, gave_up = [], 0
    line.send("ready")
    line.recv()
    while not line.poll():
        began = time.monotonic()
        with units.hold(FULL_HOUSE, wait_s) as held:
            if held:
                waits_s.append(time.monotonic() - began)
                time.sleep(JOB_S)
            else:
                gave_up += 1
        time.sleep(PAUSE_S)
    line.send((waits_s, gave_up))
