"""What a durable transition costs in the store and in its actor, against SQLite's bare commits."""

import statistics
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, Final

from actors.host_messages import Commit
from actors.mailbox import Mailbox
from actors.messages import Committed
from actors.run_store import RunStore as Actor
from scripts.benchmarks.bare_commits import BareCommits
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Goal, Row, informing, judged, ratio
from scripts.benchmarks.stored_runs import ROWS, Stored
from scripts.benchmarks.surroundings import scratch
from store.transactions import Transaction

NODES: Final = 40
BATCH: Final = 32
CROWD: Final = 32
FLOOR: Final = "bare commits"


class _Writer:
    """Where the actor answers one writer."""

    def __init__(self, transitions: Iterator[Transaction], answers: "SimpleQueue[_Writer]") -> None:
        self._transitions = transitions
        self._answers = answers
        self._number = 0

    def commit(self) -> Commit:
        """Return its next commit."""
        self._number += 1
        return Commit(number=self._number, transaction=next(self._transitions), reply_to=self)

    def tell(self, message: Any) -> None:
        """Hear that it is durable."""
        if not isinstance(message, Committed):
            raise AssertionError(message)  # noqa: TRY004 - not a matter of types
        self._answers.put(self)


class _Subject:
    """One store with its actor, and runs to write."""

    def __init__(self, stored: Stored, runs: int) -> None:
        self.stored = stored
        self.transitions = [stored.transitions(NODES) for _ in range(runs)]
        self.actor = Actor.start(open_store=lambda: stored.store, identity=stored.identity, timer=Mailbox())

    def alone(self) -> None:
        """One after the other, straight into the store."""
        for _ in range(BATCH):
            _accept(self.stored.store.write([next(self.transitions[0])]))

    def group(self) -> None:
        """One of each of many runs, in one group."""
        _accept(self.stored.store.write([next(one) for one in self.transitions[:CROWD]]))

    def group_of_one(self) -> None:
        """As many of one run, in one group."""
        _accept(self.stored.store.write([next(self.transitions[0]) for _ in range(CROWD)]))

    def through_actor(self, writers: int, each: int) -> int:
        """Let writers hand in their next transition as soon as their last is durable; return the commits made."""
        before = self.stored.store.commits
        answers: SimpleQueue[_Writer] = SimpleQueue()
        for transitions in self.transitions[:writers]:
            self.actor.tell(_Writer(transitions, answers).commit())
        waiting, left = writers, writers * (each - 1)
        while waiting:
            writer = answers.get()
            waiting -= 1
            if left:
                left -= 1
                waiting += 1
                self.actor.tell(writer.commit())
        return self.stored.store.commits - before

    def close(self) -> None:
        """End the actor, which closes the store, and the host."""
        self.actor.stop(block=True)
        self.stored.identity.close()


def _accept(answers: list[Any]) -> None:
    if any(answers):
        raise AssertionError(answers)


def rows(effort: Effort) -> list[Row]:
    """Measure batches in turn; medians count."""
    loads = (1, 4, 16, CROWD)
    rates: dict[str, list[float]] = {}
    commits: dict[int, list[float]] = {load: [] for load in loads}
    with scratch(on_disk=True) as place:
        bare, subject = BareCommits(place), _Subject(Stored(place / "home"), CROWD)
        ways: dict[str, tuple[int, Callable[[], object]]] = {
            FLOOR: (BATCH, lambda: bare.commit(BATCH)),
            "store, 1 writer": (BATCH, subject.alone),
            f"store, {CROWD} queued": (CROWD, subject.group),
            f"store, {CROWD} queued of one run": (CROWD, subject.group_of_one),
        }
        for way in ways.values():
            way[1]()
        for _ in range(max(1, effort.rounds * effort.batches)):
            for name, (number, way) in ways.items():
                rates.setdefault(name, []).append(number / _seconds(way))
            for load in loads:
                each = max(2, BATCH // load)
                began = time.perf_counter()
                made = subject.through_actor(load, each)
                rates.setdefault(f"actor, {load}", []).append(load * each / (time.perf_counter() - began))
                commits[load].append(load * each / made)
        subject.close()
        bare.close()
    rate = {name: statistics.median(found) for name, found in rates.items()}
    group = {load: statistics.median(found) for load, found in commits.items()}
    floor = rate[FLOOR]
    alone, queued = Goal(limit=0.8, at_least=True), Goal(limit=10, at_least=True)
    return [
        ratio("transitions, 1 writer, store / bare commits", rate["store, 1 writer"], floor, alone),
        ratio("transitions, 1 writer, actor / bare commits", rate["actor, 1"], floor, alone),
        ratio(
            f"rows, {CROWD} queued, store / rows of bare commits", rate[f"store, {CROWD} queued"] * ROWS, floor, queued
        ),
        ratio(f"rows, {CROWD} queued, actor / rows of bare commits", rate[f"actor, {CROWD}"] * ROWS, floor, queued),
        ratio("transitions, 16 runs, actor / 1 run", rate["actor, 16"], rate["actor, 1"], Goal(limit=8, at_least=True)),
        judged(
            f"transitions a commit, {CROWD} runs, actor",
            group[CROWD],
            "",
            Goal(limit=4 * group[4], at_least=True),
            "four times those of 4 runs",
        ),
        *(informing(f"transitions a commit, {load} runs, actor", group[load], "") for load in loads[:-1]),
        *(informing(f"a second, {name}", value, "/s") for name, value in rate.items()),
    ]


def _seconds(way: Callable[[], object]) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began
