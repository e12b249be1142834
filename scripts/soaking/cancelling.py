"""Cancels by another process, measured: what is called cancelled is dead, its place free, its half file set aside."""

import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from actors.scheduling.stopping import GRACE_S
from hostres.folders import machine_folder
from hostres.top import snapshot
from scripts.soaking.checks import read_ledger
from scripts.soaking.torment import Torment
from store.contracts import NodeRecord, RequestKind
from store.lifecycle import RUN_FINAL, RunStatus, Status
from store.reader import Reader
from store.requests import cancel_id

BOUND_S: Final = GRACE_S + 0.5
"""Of 20 cancels 19 are shown within this."""
GIVE_UP_S: Final = 60.0
LOOK_S: Final = 0.005
WITHDRAWN_S: Final = 10.0
"""An ask of what never ran is withdrawn once the cancel is durable: it is gone within this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A cancel whose end has not been seen.

    Attributes:
        key: The node, None for the run.
        at_s: When it was asked for, before the request was written; monotonic.
        films: The nodes whose processes were running then.

    """

    run_id: str
    key: str | None
    at_s: float
    films: tuple[str, ...]

    def concerns(self, name: str) -> bool:
        """Say whether a ticket of that name is of what is to be cancelled."""
        return name == f"{self.run_id} {self.key}" if self.key is not None else name.startswith(f"{self.run_id} ")


@dataclass(slots=True)
class Cancelling(Torment):
    """Runs that never end by themselves, and people who cancel them, or a node of them.

    Attributes:
        asked: By run.
        due: Run → when the next cancel of it is asked for.
        took: Seconds from the request to its end in the store, of each.
        reached: Run → how many bodies had been reached when it was shown as cancelled.

    """

    asked: dict[str, Asked] = field(default_factory=dict)
    due: dict[str, float] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)

    def go_on(self, *, until_s: float, times: int | None = None) -> None:
        """Cancel until that monotonic second, or until so many were seen to end."""
        with Reader.open(self.home) as reader:
            while time.monotonic() < until_s and (times is None or len(self.took) < times):
                self.keep_going(reader)
                for row in reader.runs():
                    if row.run_id in self.asked:
                        self.look(reader, self.asked[row.run_id])
                    elif row.status not in RUN_FINAL:
                        self.ask(reader, row.run_id)
                time.sleep(LOOK_S)

    def finish(self, within_s: float) -> list[str]:
        """Cancel all that is left; return what does not hold."""
        until_s = time.monotonic() + within_s
        with Reader.open(self.home) as reader:
            while left := [row for row in reader.runs() if row.status not in RUN_FINAL or row.run_id in self.asked]:
                if time.monotonic() > until_s:
                    return [self.stuck(reader, row) for row in left]
                self.keep_hosts()
                for row in left:
                    if row.run_id in self.asked:
                        self.look(reader, self.asked[row.run_id])
                    else:
                        self.ask(reader, row.run_id, whole=True)
                time.sleep(LOOK_S)
        published = self.folder / "published"
        wrong = (
            [f"half a file was published: {file.name}" for file in published.glob("*")] if published.exists() else []
        )
        after = {run_id: self.bodies(run_id) for run_id in self.reached}
        return wrong + [
            f"{run_id} went on after it was cancelled" for run_id in after if after[run_id] != self.reached[run_id]
        ]

    def report(self) -> str:
        """Say how long it took."""
        took = sorted(self.took)
        late = took[min(len(took) - 1, int(0.95 * len(took)))]
        verdict = "met" if late <= BOUND_S else "missed"
        return (
            f"cancelled within {statistics.median(took):.2f} s p50, {late:.2f} s p95 (goal {BOUND_S:g}, {verdict}), "
            f"{took[-1]:.2f} s at most"
        )

    # -- one cancel ----------------------------------------------------------------------------------------------------

    def ask(self, reader: Reader, run_id: str, *, whole: bool = False) -> None:
        """Ask for a cancel of a run, or of a node of it, a moment after processes of it have come up."""
        films = tuple(node.key for node in reader.nodes(run_id) if self.is_up(run_id, node))
        now_s = time.monotonic()
        if not films and not whole:
            return
        if now_s < self.due.setdefault(run_id, now_s + self.chance.uniform(0, self.plan.pause_s)) and not whole:
            return
        del self.due[run_id]
        key = None if whole or self.chance.random() < 0.6 else self.chance.choice(films)
        self.people.cancelled.add(run_id)
        stopped = films if key is None else (key,)
        self.asked[run_id] = Asked(run_id=run_id, key=key, at_s=time.monotonic(), films=stopped)
        self.people.post(run_id, RequestKind.CANCEL, key, request_id=cancel_id(run_id, key))

    def look(self, reader: Reader, asked: Asked) -> None:
        """See whether it is shown as cancelled, and if so, whether that is true."""
        run_id, key = asked.run_id, asked.key
        if key is None:
            shown = reader.run(run_id).status is RunStatus.CANCELLED
        else:
            shown = next(node for node in reader.nodes(run_id) if node.key == key).status is Status.CANCELLED
        passed_s = time.monotonic() - asked.at_s
        if not shown and passed_s < GIVE_UP_S:
            return
        del self.asked[run_id]
        self.blows["cancel"] += 1
        self.took.append(passed_s)
        self.odd += (
            self.untrue(reader, asked) if shown else [f"{run_id} {key or ''} is not cancelled after {GIVE_UP_S:g} s"]
        )
        if key is None:
            self.reached[run_id] = self.bodies(run_id)

    def untrue(self, reader: Reader, asked: Asked) -> Iterator[str]:
        """Yield what is not as it should be the moment that something is shown as cancelled."""
        run_id = asked.run_id
        name = run_id if asked.key is None else f"{run_id} {asked.key}"
        yield from (f"{name} is shown as cancelled, and process {pid} lives" for pid in self.alive(run_id, asked.key))
        yield from (f"{name} is shown as cancelled, and ticket {number} is held" for number in self.held(reader, asked))
        for film in asked.films:
            half = Path(Path(f"{self.place(run_id, film)}.half").read_text())
            if not half.exists():
                yield f"what {film} of {run_id} had written is gone"

    def held(self, reader: Reader, asked: Asked) -> list[int]:
        """Return the tickets of what is shown as cancelled; what only waited for its own is given a moment."""
        begun = {f"{asked.run_id} {node.key}" for node in reader.nodes(asked.run_id) if node.attempt}
        until_s = time.monotonic() + WITHDRAWN_S
        while True:
            rows = [row for row in snapshot(machine_folder(os.environ)).tickets if asked.concerns(row.name)]
            if not rows or any(row.name in begun for row in rows) or time.monotonic() > until_s:
                return [row.ticket for row in rows]
            time.sleep(LOOK_S)

    def alive(self, run_id: str, key: str | None) -> Iterator[int]:
        """Yield the living processes of a run or node."""
        lock = str(self.place(run_id, key or ""))
        marks = {f"HOSTLER_RUN={run_id}".encode()} | ({f"HOSTLER_NODE={key}".encode()} if key else set())
        for pid in self.children():
            process = Path(f"/proc/{pid}")
            try:
                marked = marks <= set((process / "environ").read_bytes().split(b"\0"))
                if marked or any(str(file.readlink()).startswith(lock) for file in (process / "fd").iterdir()):
                    yield pid
            except OSError:
                continue

    def is_up(self, run_id: str, node: NodeRecord) -> bool:
        """Say whether all processes of a running node have come up."""
        up = Path(f"{self.place(run_id, node.key)}.{node.attempt}.up")
        return node.status is Status.RUNNING and up.exists()

    def place(self, run_id: str, key: str) -> Path:
        """Return where a film notes what it is at."""
        return self.folder / "copies" / f"{run_id}.{key.replace('/', '-')}"

    def bodies(self, run_id: str) -> int:
        """Return how many bodies of a run have been reached."""
        return sum(line[1] == run_id for line in read_ledger(self.folder))
