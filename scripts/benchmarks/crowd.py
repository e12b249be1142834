"""How many processes wake when one slot changes hands and a crowd waits for it.

Counted twice: by the kernel, whose counter of voluntary switches moves in whoever woke and slept again, and by
hostres, which counts how often a waiter looked.
"""

import contextlib
import os
import statistics
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Final

import hostres.coordinator
from scripts.benchmarks.contenders import Hostres
from scripts.benchmarks.crew import LIMIT_S, Crew, LostError, Member, crew
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, judged
from scripts.benchmarks.surroundings import scratch

SETTLE_S: Final = 0.03
ONLY_EVENTS_S: Final = (600.0, 600.0, 600.0)
"""Nobody looks unprompted, so a lost wake-up would stop all."""
SMALL: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    woken: float
    looks: float
    latency_us: float


def rows(effort: Effort) -> list[Row]:
    """Measure a small queue and the largest."""
    sizes = (min(SMALL, effort.crowd // 2), effort.crowd)
    found = {size: _found(size, effort.crowd_releases) for size in sizes}
    large = found[effort.crowd]
    name = f"one release, {effort.crowd} waiting"
    told = {f"one release, {size} waiting": each for size, each in found.items()}
    return [
        judged(f"{name}: processes woken", large.woken, "", Goal(limit=3), "mean, by the kernel's count"),
        informing(f"one release, {sizes[0]} waiting: processes woken", found[sizes[0]].woken, ""),
        *(informing(f"{words}: looks of the next one", each.looks, "", "") for words, each in told.items()),
        *(
            informing(f"{words}: until the next one has it", each.latency_us, "µs", "p50")
            for words, each in told.items()
        ),
    ]


def _found(waiting: int, releases: int) -> _Found:
    with scratch() as place, crew() as hands:
        Hostres(place)
        holder = hands.start(_hold_in_turn, place)
        holder.tell()
        holder.hear()
        queue = [hands.start(_hold_in_turn, place) for _ in range(waiting)]
        for count, member in enumerate(queue, 1):  # one after the other: so many at once would measure the gate
            member.tell()
            _until_queued(place, count)
        return _watch(hands, holder, min(releases, waiting - 1))


def _watch(hands: Crew, holder: Member, releases: int) -> _Found:
    lines = {member.line: member for member in hands.members}
    woken, looks, latencies = [], [], []
    for _ in range(releases):
        time.sleep(SETTLE_S)
        before = {member: _switches(member) for member in hands.members if member is not holder}
        released = time.monotonic_ns()
        holder.tell()
        speaking = set(wait(list(lines), LIMIT_S))
        heard = [member for line, member in lines.items() if line in speaking]
        if not heard:
            raise LostError("nobody took the free slot")
        released_by, holder = holder, heard[0]
        got, looked = holder.hear()
        time.sleep(SETTLE_S)
        woken.append(sum(_switches(member) > count for member, count in before.items() if member is not released_by))
        latencies.append((got - released) / 1000)
        looks.append(looked)
    return _Found(
        woken=statistics.mean(woken),
        looks=statistics.mean(looks),
        latency_us=statistics.median(latencies),
    )


def _hold_in_turn(line: Connection, place: Path) -> None:
    hostres.coordinator.SAFETY_NET_S = ONLY_EVENTS_S  # so that what is counted is what a release wakes
    slot = Hostres(place)
    machine = slot.coordinator.machine
    line.recv()
    slot.acquire()
    line.send((time.monotonic_ns(), machine.looks))
    line.recv()
    slot.release()
    line.recv()


def _until_queued(place: Path, waiting: int) -> None:
    tickets = place / "machine" / "t"
    until = time.monotonic() + LIMIT_S
    while sum(name.startswith(("w.", "n.")) for name in os.listdir(tickets)) < waiting:  # noqa: PTH208  in a loop
        if time.monotonic() > until:
            raise LostError(f"the {waiting}th process never queued up")
        time.sleep(0.0005)


def _switches(member: Member) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{member.pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                return int(line.split()[1])
    return 0
