"""What waiting costs while nothing happens."""

import signal
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from scripts.benchmarks.contenders import Fasteners, Hostres, Slot
from scripts.benchmarks.crew import Member, crew
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, ratio
from scripts.benchmarks.surroundings import scratch

NAME: Final = "CPU of an idle waiter"
SETTLED: Final = 1.25
"""So many times as long as they are watched they wait before: what is done once is over.

In a full run that is longer than the longest pause of a waiter between two looks at its own sign, so that each of them
is seen as it is all the time.
"""


def rows(effort: Effort) -> list[Row]:
    """Measure the processor time of many waiters of a slot that stays taken."""
    mean: dict[str, list[float]] = {Hostres.title: [], Fasteners.title: []}
    worst: dict[str, list[float]] = {Hostres.title: [], Fasteners.title: []}
    for _ in range(max(1, effort.rounds // 2)):
        for kind in (Hostres, Fasteners):
            spent = _spent(kind, effort)
            mean[kind.title].append(statistics.mean(spent))
            worst[kind.title].append(max(spent))
    ours, theirs = statistics.mean(mean[Hostres.title]), statistics.mean(mean[Fasteners.title])
    return [
        ratio(f"{NAME}, mean of {effort.many} / fasteners", ours, theirs, Goal(limit=0.1)),
        informing(f"{NAME}, mean, hostres", ours, "ms/s"),
        informing(f"{NAME}, the busiest, hostres", statistics.mean(worst[Hostres.title]), "ms/s"),
        informing(f"{NAME}, mean, fasteners", theirs, "ms/s"),
    ]


def _spent(kind: type[Slot], effort: Effort) -> list[float]:
    """Return the milliseconds of processor time that each waiter spends in a second."""
    with scratch() as place, crew() as hands:
        hands.start(_hold, kind, place).hear()
        waiters = [hands.start(_wait, kind, place) for _ in range(effort.many)]
        for waiter in waiters:
            waiter.hear()
        time.sleep(SETTLED * effort.idle_s)
        began = time.monotonic()
        before = [_cpu_ns(waiter) for waiter in waiters]
        time.sleep(effort.idle_s)
        after = [_cpu_ns(waiter) for waiter in waiters]
        took = time.monotonic() - began
        return [(late - early) / 1e6 / took for early, late in zip(before, after, strict=True)]


def _cpu_ns(member: Member) -> int:
    # the clock of another process, as clock_getcpuclockid(3) makes it
    return time.clock_gettime_ns((~member.pid << 3) | 2)


def _hold(line: Connection, kind: type[Slot], place: Path) -> None:
    slot = kind(place)
    slot.acquire()
    line.send("holds")
    signal.pause()


def _wait(line: Connection, kind: type[Slot], place: Path) -> None:
    slot = kind(place)
    line.send("asks")
    slot.acquire()
