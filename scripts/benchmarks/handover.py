"""How long a free slot stays empty while others wait for it: after a release, and after the holder was killed.

A hand-over is the time from just before the release to just after the next one's acquire. Every worker asks again
only after somebody else got the slot, so equally many wait all the time.
"""

import ctypes
import itertools
import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from scripts.benchmarks.contenders import BareFifos, BareFlock, Fasteners, Hostres, Slot
from scripts.benchmarks.crew import LostError, crew
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, judged, ratio, unmeasured
from scripts.benchmarks.surroundings import scratch

WARM_HOLD_S: Final = 0.002
SETTLE_S: Final = 0.05
WARMING: Final = 20
_FORK: Final = multiprocessing.get_context("fork")


@dataclass(slots=True)
class Latencies:
    """Pooled over the rounds, in microseconds."""

    values: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def p99(self) -> float:
        """What 99 of 100 stay below."""
        return sorted(self.values)[max(0, int(len(self.values) * 0.99) - 1)]


class _Board:
    """What the workers share: how many turns are left, who had the last one, a bell for each."""

    def __init__(self, workers: int, turns: int) -> None:
        self.left: Any = _FORK.RawValue(ctypes.c_int, turns)
        self.last: Any = _FORK.RawValue(ctypes.c_int, -1)
        self.bells = [os.eventfd(0, os.EFD_CLOEXEC) for _ in range(workers)]

    def take_turn(self, worker: int) -> bool:
        """Note that *worker* has the slot, and let the one before ask again; False if no turn is left."""
        if self.left.value <= 0:
            return False
        self.left.value -= 1
        before, self.last.value = self.last.value, worker
        rung = self.bells if self.left.value == 0 else self.bells[before : before + 1] if before >= 0 else []
        for bell in rung:
            os.eventfd_write(bell, 1)
        return True

    def close(self) -> None:
        """Close the bells."""
        for bell in self.bells:
            os.close(bell)


def releases(kind: type[Slot], *, waiting: int, turns: int, hold_s: float) -> list[float]:
    """Return the hand-overs of one round, in microseconds.

    Args:
        kind: The contender.
        waiting: How many wait at any time.
        turns: Hand-overs.
        hold_s: Seconds between getting the slot and giving it back.

    """
    workers = waiting + 1
    board = _Board(workers, turns + workers)
    try:
        with scratch() as place, crew() as hands:
            for number in range(workers):
                hands.start(_take_turns, kind, place, board, number, turns, hold_s)
            for member in hands.members:
                member.hear()
            for member in hands.members:
                member.tell()
            logs = [member.hear() for member in hands.members]
    finally:
        board.close()
    turns_taken = sorted(turn for log in logs for turn in log)[workers:]
    return [(after[0] - before[2]) / 1000 for before, after in itertools.pairwise(turns_taken) if after[1] < before[2]]


def _take_turns(
    line: Connection, kind: type[Slot], place: Path, board: _Board, me: int, turns: int, hold_s: float
) -> None:
    _warm(kind, place)
    slot = kind(place)
    log = []
    line.send("ready")
    line.recv()
    while True:
        asked = time.monotonic_ns()
        slot.acquire()
        got = time.monotonic_ns()
        if not board.take_turn(me):
            slot.release()
            break
        time.sleep(WARM_HOLD_S if board.left.value >= turns else hold_s)
        gone = time.monotonic_ns()
        slot.release()
        log.append((got, asked, gone))
        os.eventfd_read(board.bells[me])
    line.send(log)


def killed(kind: type[Slot], *, waiting: int) -> float | None:
    """Return how long after SIGKILL of the holder the first waiter has the slot, in microseconds.

    None if not all waiters get it in turn.
    """
    with scratch() as place, crew() as hands:
        holder = hands.start(_hold, kind, place)
        holder.hear()
        waiters = [hands.start(_wait_once, kind, place) for _ in range(waiting)]
        for waiter in waiters:
            waiter.hear()
        time.sleep(SETTLE_S)
        at = time.monotonic_ns()
        os.kill(holder.pid, signal.SIGKILL)
        try:
            got = [waiter.hear(5.0) for waiter in waiters]
        except LostError:
            return None
        return float(min(got) - at) / 1000


def _hold(line: Connection, kind: type[Slot], place: Path) -> None:
    slot = kind(place)
    slot.acquire()
    line.send("holds")
    signal.pause()


def _wait_once(line: Connection, kind: type[Slot], place: Path) -> None:
    _warm(kind, place)
    slot = kind(place)
    line.send("asks")
    slot.acquire()
    got = time.monotonic_ns()
    slot.release()
    line.send(got)


def _warm(kind: type[Slot], place: Path) -> None:
    own = place / f"warm{os.getpid()}"
    own.mkdir()
    slot = kind(own)
    for _ in range(WARMING):
        slot.acquire()
        slot.release()


def rows(effort: Effort) -> list[Row]:
    """Measure hand-overs."""
    few, many = 2, effort.many
    contenders: tuple[type[Slot], ...] = (BareFlock, BareFifos, Fasteners, Hostres)
    warm = {(kind.title, waiting): Latencies() for kind in contenders for waiting in (few, many)}
    cold = {key: Latencies() for key in warm if key != (Fasteners.title, few)}
    dead = {kind.title: Latencies() for kind in (BareFlock, Hostres)}
    lost = 0
    for _ in range(effort.rounds):
        for waiting in (few, many):
            for kind in contenders:
                warm[kind.title, waiting].values += releases(
                    kind, waiting=waiting, turns=effort.warm, hold_s=WARM_HOLD_S
                )
                if (kind.title, waiting) in cold:
                    cold[kind.title, waiting].values += releases(
                        kind, waiting=waiting, turns=effort.cold, hold_s=effort.cold_hold_s
                    )
        for _ in range(effort.kills):
            for kind in (BareFlock, Hostres):
                latency = killed(kind, waiting=few)
                if latency is not None:
                    dead[kind.title].values.append(latency)
                else:
                    lost += kind.title == Hostres.title
    return [
        *_compared(warm, cold, few, many),
        judged("hand-over after SIGKILL: waiters lost", lost, "", Goal(limit=0)),
        _after_kill(dead),
        *_absolute("warm", warm),
        *_absolute("cold", cold),
        *(informing(f"after SIGKILL p50, {title}", row.p50, "µs") for title, row in dead.items() if row.values),
    ]


def _after_kill(dead: Mapping[str, Latencies]) -> Row:
    name, goal = "hand-over after SIGKILL p50, 2 waiting / flock", Goal(limit=2)
    if not all(latencies.values for latencies in dead.values()):
        return unmeasured(name, "×", goal, "every trial lost a waiter")
    return ratio(name, dead[Hostres.title].p50, dead[BareFlock.title].p50, goal)


def _compared(
    warm: Mapping[tuple[str, int], Latencies], cold: Mapping[tuple[str, int], Latencies], few: int, many: int
) -> Sequence[Row]:
    ours, flock, polling = Hostres.title, BareFlock.title, Fasteners.title

    def against(
        name: str, found: Mapping[tuple[str, int], Latencies], peer: str, waiting: int, limit: float, which: str = "p50"
    ) -> Row:
        words, goal = f"hand-over {name} {which}, {waiting} waiting / {peer}", Goal(limit=limit)
        mine, theirs = found[ours, waiting], found[peer, waiting]
        if not (mine.values and theirs.values):
            return unmeasured(words, "×", goal, "too few hand-overs")
        return ratio(words, getattr(mine, which), getattr(theirs, which), goal)

    return [
        against("warm", warm, flock, few, 12),
        against("warm", warm, polling, few, 0.05),
        against("warm", warm, flock, many, 6),
        against("warm", warm, polling, many, 0.333, "p99"),
        against("cold", cold, flock, few, 4),
        against("cold", cold, flock, many, 5),
        against("cold", cold, polling, many, 1),
    ]


def _absolute(name: str, found: Mapping[tuple[str, int], Latencies]) -> list[Row]:
    return [
        informing(
            f"{name} p50, {waiting} waiting, {title}", row.p50, "µs", f"p99 {row.p99:.0f} µs, n {len(row.values)}"
        )
        for (title, waiting), row in sorted(found.items(), key=lambda item: (item[0][1], item[0][0]))
        if row.values
    ]
