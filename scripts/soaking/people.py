"""The people of a soak: they answer what waits for them, truthfully, as a program does or with commands."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hostler.principal import principal
from scripts.soaking.flow import LACKING, frugal
from store.clock import SystemClock
from store.contracts import NodeRecord, Request, RequestKind
from store.home import Home
from store.lifecycle import RESTING, RUN_FINAL, RunStatus, Status
from store.reader import Reader
from store.requests import post
from store.run_list import RunRow

Asked = tuple[str, str, Status, int]
"""Run, node, how it stands and after which attempt."""
FRUGAL: Final = frugal.id
ANSWER_S: Final = 2.0
"""People ask again when nothing has come of their answer for so long."""
COMMANDS: Final = 3
"""At most so many commands of theirs run at a time."""
COMMAND_S: Final = 60.0
"""A command of theirs has ended within this."""
MAY_END_WITH: Final = {"resume": frozenset({0, 1, 3, 5}), "": frozenset({0, 5})}
"""Exit codes by command: somebody else may have been first, or something may have moved on; else the default."""
CANCELLED: Final = 130
"""Of a run that was cancelled while it was shown."""
REOPENED: Final = frozenset({RunStatus.PARTIAL, RunStatus.FAILED})
"""In a run that has ended so, what failed may be tried again."""


@dataclass(slots=True)
class Command:
    """A command of theirs that was started.

    Attributes:
        words: Of its command line.
        began_s: Monotonic.
        killed: Whether it was.

    """

    process: "subprocess.Popen[str]"
    words: list[str]
    began_s: float
    killed: bool = False


@dataclass(slots=True)
class People:
    """Whoever answers.

    Attributes:
        by_command: Of so many of a hundred answers they type a command.
        think_s: So long at most they think before they answer.
        given: What they gave, by kind of request.
        cancelled: Runs of which they cancelled something, or that they let go on without something.
        answered: When they last answered it, monotonic seconds.
        times: How often they did.
        commands: Of theirs that run.
        odd: What they met that is not as it should be.

    """

    folder: Path
    home: Home
    chance: random.Random
    by_command: int
    think_s: float
    given: Counter[str] = field(default_factory=Counter)
    cancelled: set[str] = field(default_factory=set)
    answered: dict[Asked, float] = field(default_factory=dict)
    times: Counter[Asked] = field(default_factory=Counter)
    commands: list[Command] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    def wait_for(self, row: RunRow) -> bool:
        """Say whether a run that has ended will go on because of them."""
        return row.status in REOPENED and row.run_id not in self.cancelled

    def answer(self, reader: Reader, row: RunRow) -> None:
        """Answer what waits for a person in one run."""
        for node in reader.nodes(row.run_id):
            if node.status not in RESTING and node.status is not Status.FAILED:
                continue
            asked = (row.run_id, node.key, node.status, node.attempt)
            now_s = time.monotonic()
            if asked not in self.answered:
                self.answered[asked] = now_s + self.chance.uniform(0, self.think_s) - ANSWER_S
            if now_s - self.answered[asked] >= ANSWER_S:
                self.answered[asked] = now_s
                self.times[asked] += 1
                self._answer_one(node, row, asked)

    def _answer_one(self, node: NodeRecord, row: RunRow, asked: Asked) -> None:
        match node.status:
            case Status.APPROVAL_REQUIRED:
                self._ask(row, RequestKind.APPROVE, node, plan_sha256=node.frozen_sha256)
            case Status.AMBIGUOUS_CODE:
                self._ask(row, RequestKind.REPLAY, node)
            case Status.AMBIGUOUS:
                self._settle(row, node)
            case _ if self.times[asked] % 2 == 0 and row.workflow == FRUGAL:
                self._ask(row, RequestKind.BUDGET, None, data={"add": {"retries": 1}})
            case _ if node.key.startswith("typo"):
                given = {"folder": str(self.folder), "after": 0, "right": True}
                self._ask(row, RequestKind.CORRECT, node, data={"input": given, "revision": node.revision})
            case _:
                self._ask(row, RequestKind.RETRY, node)

    def _settle(self, row: RunRow, node: NodeRecord) -> None:
        kind = node.key.partition("/")[0]
        happened = f"{kind} {row.run_id} {node.key} " in (self.folder / "ledger").read_text()
        value = {"folder": str(self.folder), "number": 1}
        not_done = {"outcome": self.chance.choice(["retry", "retry", "failed"])}
        data = {"outcome": "completed", "value": value} if happened else not_done
        self._ask(row, RequestKind.SETTLE, node, data=data)

    def _ask(self, row: RunRow, kind: RequestKind, node: NodeRecord | None, **fields: Any) -> None:
        """Ask something of a run; of one that has ended with a command, since nobody has it who would hear of it."""
        ended = row.status in REOPENED
        if not ended and self.chance.randrange(100) >= self.by_command:
            self.post(row.run_id, kind, None if node is None else node.key, **fields)
        elif len(self.commands) < COMMANDS:
            self.given[f"{kind.value} (command)"] += 1
            self.type([kind.value, row.run_id, *([] if node is None else [node.key]), *self._options(kind, fields)])
        else:
            self.answered.clear()  # they have a hand free soon

    def _options(self, kind: RequestKind, fields: Mapping[str, Any]) -> list[str]:
        data = fields.get("data", {})
        match kind:
            case RequestKind.APPROVE:
                return ["--plan", str(fields["plan_sha256"])]
            case RequestKind.SETTLE if data["outcome"] == "completed":
                return ["--completed", self._written(data["value"])]
            case RequestKind.SETTLE:
                return [f"--{data['outcome']}"]
            case RequestKind.CORRECT:
                return ["--input", self._written(data["input"])]
            case RequestKind.BUDGET:
                return [word for name, more in data["add"].items() for word in ("--add", f"{name}={more}")]
            case _:
                return []

    def _written(self, value: Any) -> str:
        path = self.folder / f"typed-{self.given.total()}.json"
        path.write_text(json.dumps(value))
        return str(path)

    def post(self, run_id: str, kind: RequestKind, key: str | None, **fields: Any) -> None:
        """Post a request, as a program does."""
        clock = SystemClock()
        fields.setdefault("request_id", f"{kind}:{run_id}:{key}:{self.given.total()}")
        self.given[kind.value] += 1
        request = Request(run_id=run_id, kind=kind, node=key, principal=principal(), at=clock.now().at, **fields)
        post(self.home, request, clock=clock)

    # -- commands ------------------------------------------------------------------------------------------------------

    def type(self, words: list[str], **environ: str) -> None:
        """Start a command."""
        process = subprocess.Popen(
            [sys.executable, "-m", "hostler", *words],
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.commands.append(Command(process, words, time.monotonic()))

    def resume(self, reader: Reader, *, accept: bool) -> bool:
        """Go on with a run in the foreground, sometimes without what is lacking; say whether there was one.

        Args:
            reader: The store.
            accept: Whether they may go on without what they lack.

        """
        rows = [row for row in reader.runs() if row.status not in RUN_FINAL]
        if not rows or len(self.commands) >= COMMANDS:
            return False
        free = [row for row in rows if not row.alive]
        run_id, lacks = self.chance.choice(free or rows).run_id, self.chance.random() < 0.5
        words = ["resume", run_id]
        if accept and lacks and self.chance.random() < 0.5:
            words.append("--accept-incompatible")
            self.cancelled.add(run_id)
        self.type(words, **(LACKING if lacks else {}))
        return True

    def kill_one(self) -> bool:
        """Kill a command of theirs; say whether there was one."""
        running = [one for one in self.commands if one.process.poll() is None]
        if running:
            one = self.chance.choice(running)
            one.killed = True
            one.process.kill()
        return bool(running)

    def look_at_commands(self, *, wait: bool = False) -> None:
        """See how their commands have ended."""
        for one in list(self.commands):
            late = one.words[0] != "resume" and time.monotonic() - one.began_s > COMMAND_S
            if one.process.poll() is None and not wait and not late:
                continue
            if late:
                self.odd.append(f"{' '.join(one.words)} does not end")
                one.process.kill()
            said, _ = one.process.communicate()
            self.commands.remove(one)
            code = one.process.returncode
            cancelled = code == CANCELLED and one.words[0] == "resume" and one.words[1] in self.cancelled
            if not (one.killed or cancelled or code in MAY_END_WITH.get(one.words[0], MAY_END_WITH[""])):
                self.odd.append(f"{' '.join(one.words)} ended with {code}: {said.strip()[-1000:]}")
