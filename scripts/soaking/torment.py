"""The tormentor: it creates runs, keeps hosts alive and kills them, and changes the code under them."""

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hostler.compiler import compile_workflow
from hostler.host import Host
from hostler.loading import load
from scripts.soaking.flow import LACKING
from scripts.soaking.people import People
from scripts.soaking.serving import Serving
from store.contracts import RequestKind
from store.home import Home
from store.lifecycle import RUN_FINAL
from store.reader import Reader
from store.requests import cancel_id
from store.run_list import RunRow

HERE: Final = Path(__file__).resolve().parent
FLOW: Final = HERE / "flow.py"
HOST: Final = HERE / "host.py"
EDITS: Final = (
    ("", ""),
    ("AGAIN = ", "# nothing that matters\nAGAIN = "),
    ('"soak.step", version=1, policy=Policy(', '"soak.step", version=1, policy=Policy(max_seconds=100, '),
    ("AGAIN = ", "AGAIN == = "),
)
"""What becomes of the workflow's file: nothing, a comment, one that changes an operation, one that breaks it."""
BREAKS: Final = len(EDITS) - 1
WORKFLOWS: Final = ("soak", "frugal")
STOP_S: Final = 90.0
"""A host that was told to stop has ended within this."""
WORDS: Final = 10_000
"""So much of what the hosts logged last is shown where one did not do what it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a soak does.

    Attributes:
        hosts: How many at a time.
        runs: How many are under way at a time.
        nodes: Of each run.
        kinds: What their nodes are; see `flow.py`.
        step_s: The longest step.
        pause_s: The longest pause between two disturbances.
        blows: Name of a disturbance → its weight.
        lacking: Of so many of a hundred hosts the code of `plug` is not what it is elsewhere.
        entrusted: Of so many of a hundred runs are left to a background service.
        think_s: So long at most people think before they answer; meanwhile hosts change, and runs may end.
        by_command: Of so many of a hundred answers people type a command.
        after: What must have happened since the last blow before another falls: `trees`, another tree of processes has
            come up; `bodies`, another body has been reached; or None.
        ffmpeg: How many the machine has.

    """

    hosts: int
    runs: int
    nodes: int
    kinds: tuple[str, ...]
    step_s: float
    pause_s: float
    blows: dict[str, int]
    after: str | None = None
    ffmpeg: int = 4
    lacking: int = 0
    entrusted: int = 0
    think_s: float = 0.0
    by_command: int = 0


@dataclass(slots=True)
class Hosting:
    """A host process.

    Attributes:
        lacking: Whether it lacks the code of `plug`.
        ready: Whether it has begun to look for runs.

    """

    process: "subprocess.Popen[bytes]"
    lacking: bool = False
    ready: bool = False


@dataclass(slots=True)
class Torment:
    """One soak.

    Attributes:
        folder: Of its own, with everything in it.
        people: Who answer.
        service: The background service, if runs are left to one.
        made: Run → the seed of its graph.
        blows: What was done to the hosts.
        odd: What went wrong on the way.
        ended: Hosts that were told to stop and are not known to have ended.
        broken: Whether the workflow's file is.
        happened: How much of what must happen between two blows had happened at the last one.

    """

    folder: Path
    plan: Plan
    chance: random.Random
    home: Home
    creator: Host
    people: People = field(init=False)
    service: Serving = field(init=False)
    hosts: list[Hosting] = field(default_factory=list)
    made: dict[str, int] = field(default_factory=dict)
    blows: Counter[str] = field(default_factory=Counter)
    odd: list[str] = field(default_factory=list)
    ended: list[Hosting] = field(default_factory=list)
    broken: bool = False
    happened: int = 0

    def __post_init__(self) -> None:
        """Bring the workflow's file to where it is edited, and call the people."""
        self.service = Serving(self.folder, self.home, self.chance, self.plan.lacking)
        self.people = People(self.folder, self.home, self.chance, self.plan.by_command, self.plan.think_s)
        self.edit(0)

    # -- what goes on --------------------------------------------------------------------------------------------------

    def go_on(self, *, until_s: float, times: int | None = None) -> None:
        """Torment until that monotonic second, or until so many blows have fallen."""
        with Reader.open(self.home) as reader:
            while time.monotonic() < until_s and (times is None or self.blows.total() < times):
                self.keep_going(reader)
                self.hit(reader)

    def finish(self, within_s: float) -> list[str]:
        """Let everything end in peace; return what did not."""
        until_s = time.monotonic() + within_s
        for one in [one for one in self.hosts if one.lacking]:  # what it has taken up may need what it lacks
            self.gone(one, signal.SIGTERM if one.ready else signal.SIGKILL)
        with Reader.open(self.home) as reader:
            while unfinished := [row for row in reader.runs() if not self.is_over(row)]:
                if time.monotonic() > until_s:
                    return [self.stuck(reader, row) for row in unfinished]
                self.keep_hosts(peace=True)
                self.answer(reader)
                time.sleep(0.05)
        self.people.look_at_commands(wait=True)
        return []

    def is_over(self, row: RunRow) -> bool:
        """Say whether nothing more will happen to a run."""
        return row.status in RUN_FINAL and not self.people.wait_for(row)

    def stuck(self, reader: Reader, row: RunRow) -> str:
        """Describe a run that does not end."""
        nodes = ", ".join(f"{node.key} {node.status}" for node in reader.nodes(row.run_id) if node.status.value)
        return f"run {row.run_id} does not end, it is {row.status} (owner {row.host}, alive {row.alive}): {nodes}"

    def keep_going(self, reader: Reader) -> None:
        """See to it that there is something to do and somebody to do it, and answer for the people."""
        self.keep_hosts()
        under_way = sum(not self.is_over(row) for row in reader.runs())
        if self.broken and not under_way:  # nobody can make a run, and nothing happens any more
            self.edit(0)
        if under_way < self.plan.runs:
            self.create()
        self.answer(reader)

    def create(self) -> None:
        """Store a run, if the workflow's file can be read."""
        if self.broken:
            return
        seed = len(self.made) + 1 + self.chance.randrange(1_000_000) * 10_000
        inputs: dict[str, Any] = {
            "folder": str(self.folder),
            "seed": seed,
            "nodes": self.plan.nodes,
            "kinds": list(self.plan.kinds),
            "seconds": self.plan.step_s,
        }
        workflow = load(f"{self.folder / FLOW.name}:{self.chance.choice(WORKFLOWS)}", folder=self.folder)
        compiled = compile_workflow(workflow, inputs, folder=self.folder, max_nodes=4096)
        entrusted = self.chance.randrange(100) < self.plan.entrusted
        self.made[self.creator.create(compiled, entrusted=entrusted)] = seed

    def edit(self, number: int) -> None:
        """Change the workflow's file as one does in an editor: at once, or not at all."""
        before, after = EDITS[number]
        text = FLOW.read_text()
        new = self.folder / "flow.new"
        new.write_text(text.replace(before, after, 1))
        new.replace(self.folder / FLOW.name)
        self.broken = number == BREAKS

    def keep_hosts(self, *, peace: bool = False) -> None:
        """Start hosts in place of those that have gone; one that went by itself is odd.

        Args:
            peace: Whether no more of them are to lack anything.

        """
        if self.plan.entrusted:
            self.service.keep(peace=peace)
        for one in list(self.hosts):
            code = one.process.poll()
            if code is not None:
                self.hosts.remove(one)
                self.odd.append(f"a host ended by itself with {code}: {self.last_words(one)}")
            elif not one.ready and one.process.stdout is not None:
                one.ready = bool(select.select([one.process.stdout], [], [], 0)[0])
        while len(self.hosts) < self.plan.hosts:
            others = any(not one.lacking for one in self.hosts)
            lacking = not peace and others and self.chance.randrange(100) < self.plan.lacking
            with (self.folder / "hosts.log").open("ab") as log:
                process = subprocess.Popen(
                    [sys.executable, str(HOST)],
                    env={**os.environ, **(LACKING if lacking else {})},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                )
            self.hosts.append(Hosting(process, lacking))

    def last_words(self, _one: Hosting) -> str:
        """Return the end of what the hosts logged."""
        return (self.folder / "hosts.log").read_text(errors="replace")[-WORDS:]

    # -- blows ---------------------------------------------------------------------------------------------------------

    def hit(self, reader: Reader) -> None:
        """Wait a moment, then do one thing to somebody, once everybody is up."""
        time.sleep(self.chance.uniform(0, self.plan.pause_s))
        ready = [one for one in self.hosts if one.ready]
        happened = self.progress()
        if not ready or (self.plan.after is not None and happened == self.happened):
            return
        self.happened = happened
        names, weights = zip(*self.plan.blows.items(), strict=True)
        (blow,) = self.chance.choices(names, weights)
        victim = self.chance.choice(ready)
        match blow:
            case "kill":
                self.gone(victim, signal.SIGKILL)
            case "stop":
                self.gone(victim, signal.SIGTERM)
            case "freeze":
                victim.process.send_signal(signal.SIGSTOP)
                time.sleep(self.chance.uniform(0.01, 0.3))
                victim.process.send_signal(signal.SIGCONT)
            case "child":
                if not self.kill_child():
                    return
            case "cancel":
                if not self.cancel(reader):
                    return
            case "service":
                if not self.service.hit():
                    return
            case "edit":
                self.edit(self.chance.randrange(len(EDITS)))
            case "command":
                if not self.people.kill_one():
                    return
            case "resume":
                if not self.people.resume(reader, accept="cancel" in self.plan.blows):
                    return
        self.blows[blow] += 1

    def progress(self) -> int:
        """Return how much of what must happen between two blows has happened."""
        if self.plan.after == "trees":
            return len(list((self.folder / "copies").glob("*.up")))
        return (self.folder / "ledger").stat().st_size

    def gone(self, victim: Hosting, number: int) -> None:
        """End a host; one that is killed is gone at once, one that is told to stop may take its time."""
        self.hosts.remove(victim)
        victim.process.send_signal(number)
        if number == signal.SIGKILL:
            reap(victim)
        else:
            self.ended.append(victim)
            self.reap_stopped(wait=False)

    def reap_stopped(self, *, wait: bool) -> None:
        """Look how the hosts that were told to stop have ended."""
        for one in list(self.ended):
            try:
                code = one.process.wait(STOP_S if wait else 0)
            except subprocess.TimeoutExpired:
                if wait:
                    one.process.kill()
                    reap(one)
                    self.odd.append(f"a host that was told to stop did not end: {self.last_words(one)}")
                continue
            self.ended.remove(one)
            reap(one)
            if code != 0:
                self.odd.append(f"a host that was told to stop ended with {code}: {self.last_words(one)}")

    def kill_child(self) -> bool:
        """Kill a process that a step has started; say whether there was one."""
        pids = list(self.children())
        if not pids:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.chance.choice(pids), signal.SIGKILL)
        return True

    def children(self) -> Iterator[int]:
        """Yield the processes that steps have started, those without an environment by the lock of their tree."""
        mine = f"HOSTLER_HOME={os.environ['HOSTLER_HOME']}".encode()
        copies = str(self.folder / "copies")
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "environ").read_bytes().split(b"\0")
                marked = mine in words and any(word.startswith(b"HOSTLER_RUN=") for word in words)
                if marked or any(str(file.readlink()).startswith(copies) for file in (process / "fd").iterdir()):
                    yield int(process.name)

    def cancel(self, reader: Reader) -> bool:
        """Cancel a run, or a node of it; say whether there was one."""
        rows = [row for row in reader.runs() if row.status not in RUN_FINAL]
        if not rows:
            return False
        run_id = self.chance.choice(rows).run_id
        key = self.chance.choice([None, self.chance.choice(reader.nodes(run_id)).key])
        self.people.cancelled.add(run_id)
        self.people.post(run_id, RequestKind.CANCEL, key, request_id=cancel_id(run_id, key))
        return True

    # -- people --------------------------------------------------------------------------------------------------------

    def answer(self, reader: Reader) -> None:
        """Let people answer what waits for them."""
        self.reap_stopped(wait=False)
        self.people.look_at_commands()
        for row in reader.runs():
            if not self.is_over(row):
                self.people.answer(reader, row)

    def close(self) -> None:
        """Stop the hosts, and what people still have going on."""
        self.service.end(signal.SIGTERM)
        while self.people.kill_one():
            self.people.look_at_commands()
        self.people.look_at_commands(wait=True)
        for one in list(self.hosts):
            self.gone(one, signal.SIGTERM if one.ready else signal.SIGKILL)
        self.reap_stopped(wait=True)


def reap(one: Hosting) -> None:
    """Wait for a process that ends, and close its pipes."""
    one.process.wait()
    for pipe in (one.process.stdin, one.process.stdout):
        if pipe is not None:
            pipe.close()
