"""The real store against the model: any order of operations, with crashes and refusals of the disk in between.

After every step a reader, who looks through the file alone, sees what the model says.
"""

import contextlib
import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hostres.errors import Code, HostlerError
from store.clock import Stamp, instant
from store.contracts import EventKind, Grant, GrantAction, NodeRecord, RequestKind, Summary
from store.lifecycle import RUN_FINAL, RunStatus, Status, counts, run_status, run_status_without_budget
from store.plans import GraphPlan
from store.requests import cancel_id
from store.shapes import is_granted, shape_of
from store.transactions import Fence, FrozenPlan, NewEvent, Output, Transaction
from store.transitions import refusal
from store.values import Domain, digest_bytes
from tests.store.model import MemoryStore, Seen
from tests.store.stores import DiskStore, copy_as_killed
from tests.store.support import (
    COMPUTE,
    EPOCH_MS,
    GATE,
    grant_of,
    moved,
    node_plan,
    plan_of,
    record_of,
    request_of,
    run_id,
)

CODE = b"def double(): ..."
CODE_SHA256 = digest_bytes(Domain.BUNDLE, CODE)
KEYS = ("a", "b", "c")
PLANS = (
    plan_of({"a": [], "b": ["a"], "c": ["a", "b"]}),
    plan_of({"a": [], "b": [], "c": ["b"]}, executors={"a": GATE, "b": COMPUTE}, bundle_sha256=CODE_SHA256),
)
LARGE = "x" * 300_000
VALUES: tuple[Any, ...] = (None, 1, {"n": 2.5}, LARGE)
SHM = Path("/dev/shm")  # a kill is a copy of the files here, so no disk need be waited for
DENIALS = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)


class SetClock:
    """Shows the same moment to both stores until it is moved on."""

    def __init__(self) -> None:
        self.tick = 0

    def now(self) -> Stamp:
        return Stamp(at=instant(EPOCH_MS + self.tick), boot_ns=self.tick + 1)


class Killed(BaseException):
    """Nothing in the store may catch it for good."""


class Tripwire:
    """A connection that fails at one statement: the disk says no, or the process is killed before or after it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.left: int | None = None
        self.denial: int | None = None
        self.after = False
        self.on_kill: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def arm(self, left: int, *, denial: int | None = None, after: bool = False, on_kill: Any = None) -> None:
        self.left, self.denial, self.after, self.on_kill = left, denial, after, on_kill

    def disarm(self) -> None:
        self.left = None

    def execute(self, statement: str, *values: Any) -> Any:
        return self._step(statement, lambda: self.connection.execute(statement, *values))

    def executemany(self, statement: str, rows: Iterable[Any]) -> Any:
        return self._step(statement, lambda: self.connection.executemany(statement, list(rows)))

    def _step(self, statement: str, perform: Any) -> Any:
        if self.left is None or statement.startswith("ROLLBACK"):  # an undoing that fails is undone by the next start
            return perform()
        self.left -= 1
        if self.left >= 0:
            return perform()
        self.left = None
        if self.denial is not None:
            error = sqlite3.OperationalError("the disk says no")
            error.sqlite_errorcode = self.denial
            raise error
        answer = perform() if self.after else None
        self.on_kill()
        if self.after:
            del answer
        raise Killed


def differing(one: Seen, other: Seen) -> list[str]:
    """Name the fields in which two views of a run differ."""
    return [each.name for each in fields(Seen) if getattr(one, each.name) != getattr(other, each.name)]


def rarely(data: st.DataObject, times: int) -> bool:
    """Say yes about once in so many times; not by zero, which is drawn more often than anything else."""
    return data.draw(st.integers(0, times - 1)) == times * 2 // 3


class StoreAgainstModel(RuleBasedStateMachine):
    """Every operation is done to both; whatever one answers, the other answers."""

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-model-", dir=SHM if SHM.is_dir() else None))
        self.homes = itertools.count()
        self.clock = SetClock()
        self.model = MemoryStore(self.clock)
        self.disk = DiskStore(self.folder / str(next(self.homes)), self.clock)
        self.wire()
        self.hosts: list[str] = []
        self.runs: list[str] = []
        self.generations: dict[str, int] = {}
        self.fences: list[Fence] = []
        self.new_host()
        self.create(PLANS[1], None)

    def wire(self) -> None:
        self.disk.wrap(Tripwire)
        self.tripwire: Tripwire = self.disk.store._connection  # type: ignore[assignment]

    def teardown(self) -> None:
        if hasattr(self, "disk"):
            self.disk.close()
            shutil.rmtree(self.folder)

    def new_host(self) -> None:
        host = self.disk.host()
        self.model.alive.add(host)
        self.hosts.append(host)

    def both(self, operation: Any, answers: list[Any] | None = None) -> Any:
        """Do something to both stores and compare what comes of it; return what the real one gave."""
        self.clock.tick += 1
        answers = [] if answers is None else answers
        for store in (self.disk, self.model):
            try:
                answers.append(operation(store))
            except HostlerError as error:
                answers.append(error)
        real, said = answers
        if isinstance(real, HostlerError) or isinstance(said, HostlerError):
            assert getattr(real, "code", None) == getattr(said, "code", None), (real, said)
        return real

    @rule(plan=st.sampled_from(PLANS), odd=st.sampled_from([None, None, None, "again", "version", "bundle", "digest"]))
    def create(self, plan: GraphPlan, odd: str | None) -> None:
        bundle = CODE if plan.bundle_sha256 else None
        changes: dict[str, Any] = {"run_id": run_id()}
        match odd:
            case "again" if self.runs:
                changes["run_id"] = self.runs[0]
            case "version":
                changes["workflow_version"] = 2
            case "bundle":
                changes["bundle_sha256"] = "1" * 64
            case "digest":
                changes["plan_sha256"] = "1" * 64
        record = record_of(plan, bundle=bundle, **changes)
        refused = self.both(lambda store: store.create(record, plan, bundle=bundle))
        if refused is None:
            self.runs.append(record.run_id)

    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from([*self.runs, "run_" + "0" * 26]))
        self.claim_for(run, data.draw(st.sampled_from(self.hosts)))

    def claim_for(self, run: str, host: str) -> None:
        made_up = Fence(run_id=run, host_id=host, generation=0, token="made-up")
        answers: list[Any] = []
        answer = self.both(
            lambda store: (
                store.claim(run, host)
                if store is self.disk
                else store.claim(run, host, token=getattr(answers[0], "fence", made_up).token)
            ),
            answers,
        )
        if isinstance(answer, HostlerError):
            return
        assert answers[0] == answers[1]
        assert answer.fence.generation == self.generations.get(run, 0) + 1, "a generation was used again"
        self.generations[run] = answer.fence.generation
        self.fences.append(answer.fence)

    def fence(self, data: st.DataObject) -> Fence:
        """Draw the claim in force on a run, made now if there is none, or one of all that ever were."""
        if self.fences and rarely(data, 20):
            return data.draw(st.sampled_from(self.fences))
        run = data.draw(st.sampled_from(self.runs))
        owner = self.model.seen(run).owner
        if owner is None or not owner[1]:
            self.claim_for(run, self.hosts[-1])
        return next(fence for fence in reversed(self.fences) if fence.run_id == run)

    @rule(data=st.data(), times=st.integers(1, 6))
    def write(self, data: st.DataObject, times: int) -> None:
        for _ in range(times):
            self.both_write([self.transaction(data)])

    @rule(data=st.data(), size=st.integers(2, 3))
    def write_a_group(self, data: st.DataObject, size: int) -> None:
        self.both_write([self.transaction(data) for _ in range(size)])

    def both_write(self, group: list[Transaction]) -> None:
        real = self.disk.write(group)
        said = self.model.write(group)
        assert [one and one.code for one in real] == [one and one.code for one in said], (real, said, group)
        assert all("\n" not in str(one) for one in real)

    @rule(data=st.data(), step=st.integers(0, 40), denial=st.sampled_from(DENIALS))
    def write_while_the_disk_says_no(self, data: st.DataObject, step: int, denial: int) -> None:
        group = [self.transaction(data)]
        reserve = self.disk.home.reserve.exists() and denial == sqlite3.SQLITE_FULL
        self.tripwire.arm(step, denial=denial)
        real = self.disk.write(group)
        untouched = self.tripwire.left is not None
        self.tripwire.disarm()
        if untouched or reserve:
            said = self.model.write(group)
            assert [one and one.code for one in real] == [one and one.code for one in said]
        else:
            assert [one and one.code for one in real] == [Code.UNAVAILABLE], real

    @rule(data=st.data(), step=st.integers(0, 40), after=st.booleans())
    def die_while_writing(self, data: st.DataObject, step: int, after: bool) -> None:
        group = [self.transaction(data)]
        self.die(lambda: self.disk.write(group), step, after=after)
        waiting = self.disk.requests(self.runs) != self.model.requests(self.runs)
        if waiting or any(self.disk.seen(run) != self.model.seen(run) for run in self.runs):
            assert self.model.write(group) == [None]  # whole then, or the invariant speaks

    @rule(data=st.data(), step=st.integers(0, 15), after=st.booleans(), plan=st.sampled_from(PLANS))
    def die_while_creating_or_claiming(self, data: st.DataObject, step: int, after: bool, plan: GraphPlan) -> None:
        self.clock.tick += 1
        match data.draw(st.sampled_from(["create", "claim", "nothing"])):
            case "create":
                bundle = CODE if plan.bundle_sha256 else None
                record = record_of(plan, bundle=bundle)
                self.die(lambda: self.disk.create(record, plan, bundle=bundle), step, after=after)
                if record.run_id in self.disk.run_ids():
                    self.model.create(record, plan, bundle=bundle)
                    self.runs.append(record.run_id)
            case "claim":
                run, host = data.draw(st.sampled_from(self.runs)), data.draw(st.sampled_from(self.hosts))
                alive = set(self.model.alive)
                self.die(lambda: self.disk.claim(run, host), step, after=after)
                if self.disk.seen(run) != self.model.seen(run):
                    now, self.model.alive = self.model.alive, alive
                    self.generations[run] = self.model.claim(run, host).fence.generation
                    self.model.alive = now
            case "nothing":
                self.die(lambda: None, 0, after=False)

    def die(self, operation: Any, step: int, *, after: bool) -> None:
        """Kill the process before or after one statement of an operation, or right after it; the next one comes."""
        place = self.folder / str(next(self.homes))
        self.tripwire.arm(step, after=after, on_kill=lambda: copy_as_killed(self.disk.home.root, place))
        with contextlib.suppress(Killed, HostlerError):
            operation()
        self.tripwire.disarm()
        if not place.exists():
            copy_as_killed(self.disk.home.root, place)
        self.come_back(place)

    def come_back(self, place: Path) -> None:
        """Go on as the next process, which finds what a killed one left; every host of before is dead."""
        self.disk.close()
        self.disk = DiskStore(place, self.clock)
        self.wire()
        self.model.alive.clear()
        self.hosts = []
        self.new_host()

    @rule()
    def reopen(self) -> None:
        self.disk.reopen()
        self.wire()

    @rule(data=st.data())
    def kill_a_host(self, data: st.DataObject) -> None:
        host = data.draw(st.sampled_from(self.hosts))
        self.disk.kill(host)
        self.model.kill(host)
        self.new_host()

    @rule(data=st.data(), kind=st.sampled_from(RequestKind), node=st.sampled_from([None, *KEYS]))
    def post(self, data: st.DataObject, kind: RequestKind, node: str | None) -> None:
        run = data.draw(st.sampled_from([*self.runs, "run_" + "0" * 26]))
        changes: dict[str, Any] = {"node": node}
        if kind is RequestKind.CANCEL:
            known = run in self.runs
            changes["request_id"] = self.model.next_cancel_id(run, node) if known else cancel_id(run, node)
        request = request_of(run, kind, **changes)
        answer = self.both(lambda store: store.post(request))
        if not isinstance(answer, HostlerError):
            assert self.both(lambda store: store.post(request)) is False

    def transaction(self, data: st.DataObject) -> Transaction:
        """Draw a transaction; more than half of them hold together."""
        fence = self.fence(data)
        self.clock.tick += 1
        parts: dict[str, Any] = {"fence": fence, "stamp": self.clock.now()}
        if rarely(data, 20):
            parts["fence"] = Fence(
                run_id=fence.run_id,
                host_id=fence.host_id,
                generation=fence.generation + 1,
                token=fence.token,
            )
        seen = self.model.seen(fence.run_id)
        nodes, plans, outputs, grants = dict(zip(KEYS, seen.nodes, strict=True)), [], [], []
        changed = []
        least = data.draw(st.sampled_from([0, 1, 1, 1]))
        least = data.draw(st.sampled_from([0, 1, 1, 1]))
        for key in data.draw(st.lists(st.sampled_from(KEYS), min_size=least, max_size=2, unique=True)):
            grant = self.grant(data, fence.run_id, nodes[key]) if data.draw(st.booleans()) else None
            record, plan, output = self.moved(data, seen, nodes[key], grant)
            changed.append(record)
            plans += plan
            outputs += output
            grants += [] if grant is None else [grant]
            nodes[key] = record
        started = data.draw(st.booleans())
        tally: dict[Status, int] = {}
        for record in nodes.values():
            tally[record.status] = tally.get(record.status, 0) + 1
        status = run_status(tally, started=started or seen.started_at is not None)
        parts["started"] = started
        parts["status"] = data.draw(st.sampled_from([None, None, *[status] * 8, RunStatus.BUDGET_EXHAUSTED]))
        if data.draw(st.booleans()) if status in RUN_FINAL else rarely(data, 20):
            odd = data.draw(st.sampled_from([status, status, status, RunStatus.FAILED]))
            parts["summary"] = Summary(status=odd, counts=counts(tally), outputs=data.draw(st.sampled_from(VALUES)))
        waiting = [request.request_id for request in self.model.requests([fence.run_id])]
        if data.draw(st.booleans()) and waiting:
            answered: str = data.draw(st.sampled_from([*waiting, "made-up"]))
            parts["consumed"] = (answered,)
        if data.draw(st.booleans()):
            parts["events"] = (NewEvent(kind=EventKind.NODE_STATUS, node="a", data={"to": "x"}),)
        parts["release"] = rarely(data, 6)
        return Transaction(
            nodes=tuple(changed), plans=tuple(plans), outputs=tuple(outputs), grants=tuple(grants), **parts
        )

    def moved(
        self, data: st.DataObject, seen: Seen, before: NodeRecord, grant: Grant | None
    ) -> tuple[NodeRecord, list[FrozenPlan], list[Output]]:
        """Draw what becomes of a node; mostly something that the table allows."""
        run, changes = seen.record.run_id, dict[str, Any]()
        plans: list[FrozenPlan] = []
        outputs: list[Output] = []
        if before.plan_sha256 is None and data.draw(st.booleans()):
            plan = node_plan(run, before.key, 1)
            changes["plan_sha256"] = plan.sha256
            plans = [plan] if not rarely(data, 10) else []
        changes["gate_passed"] = data.draw(st.sampled_from([before.gate_passed] * 3 + [not before.gate_passed]))
        candidates = [
            moved(before, status, **changes, attempt=before.attempt + rise, **self.start(rise))
            for status in Status
            for rise in (0, 1)
        ]
        gate = before.key == "a" and seen.plan is PLANS[1]
        granted = grant is not None and is_granted(before, shape_of(seen.plan), (grant,))
        legal = [one for one in candidates if refusal(before, one, gate=gate, granted=granted) is None]
        if not legal and not rarely(data, 3):
            return before, [], []
        pool = legal if legal and not rarely(data, 10) else candidates
        after = data.draw(st.sampled_from(pool))
        if after.status in (Status.COMPLETED, Status.VERIFYING) or data.draw(st.booleans()):
            output = Output.of(before.key, data.draw(st.sampled_from(VALUES)))
            if not rarely(data, 10):
                after = moved(after, after.status, output_sha256=output.sha256)
            outputs = [output] if not rarely(data, 10) else []
        return after, plans, outputs

    def start(self, rise: int) -> dict[str, Any]:
        return {"started_at": self.clock.now().at, "failure": None} if rise else {}

    def grant(self, data: st.DataObject, run: str, before: NodeRecord) -> Grant:
        """Draw a grant; mostly one that opens what the node is in."""
        action = {
            Status.FAILED: GrantAction.RETRY,
            Status.SKIPPED: GrantAction.RETRY,
            Status.AMBIGUOUS: GrantAction.SETTLE,
            Status.AMBIGUOUS_CODE: GrantAction.REPLAY,
        }.get(before.status, GrantAction.EFFECT if before.plan_sha256 else GrantAction.RETRY)
        changes: dict[str, Any] = {
            "plan_sha256": before.plan_sha256 or "0" * 64,
            "attempt": before.attempt + (action is GrantAction.REPLAY),
            **({"bundle_sha256": CODE_SHA256, "compute": "double"} if action is GrantAction.REPLAY else {}),
        }
        match data.draw(st.integers(0, 14)):
            case 9:
                action = data.draw(st.sampled_from(GrantAction))
            case 10:
                changes["plan_sha256"] = "1" * 64
            case 11:
                changes["allowed"] = False
            case 12:
                changes["attempt"] += 1
        return grant_of(run, before.key, action, **changes)

    @invariant()
    def the_reader_sees_what_the_model_says(self) -> None:
        if not hasattr(self, "disk"):
            return
        assert self.disk.run_ids() == self.model.run_ids()
        assert self.disk.unowned() == self.model.unowned()
        assert self.disk.requests(self.runs) == self.model.requests(self.runs)
        for run in self.runs:
            seen = self.disk.seen(run)
            said = self.model.seen(run)
            differences = {one: (getattr(seen, one), getattr(said, one)) for one in differing(seen, said)}
            assert not differences, differences
            tally: dict[Status, int] = {}
            for node in seen.nodes:
                tally[node.status] = tally.get(node.status, 0) + 1
            derived = run_status(tally, started=seen.started_at is not None)
            assert seen.status in {derived, run_status_without_budget(tally, started=seen.started_at is not None)}
            if seen.summary is not None:
                assert (seen.summary.status, dict(seen.summary.counts)) == (seen.status, counts(tally))


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(
    max_examples=settings().max_examples // 6,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
