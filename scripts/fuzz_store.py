"""A stored document is changed in one place, then everything that reads runs is asked about it.

Whatever was done to it, the answer is the one it was before or an error with a stable code, in one line; never
another answer, a traceback or silence. A cell that a digest covers must besides be named by somebody. Where the
digest was made to fit the change, as a bug or a bad program would, answers may differ, and still nothing may break.
"""

import argparse
import json
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from hostres.errors import Code, HostlerError
from store.clock import SystemClock
from store.contracts import EventKind, Grant, GrantAction, Request, RequestKind, RunRecord, Summary
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import RunStatus, Status
from store.limits import INLINE_BYTES
from store.plans import ComputeExecutor, GraphPlan, NodePlan, OperationExecutor, PlannedNode
from store.policy import Policy
from store.reader import Reader
from store.records import graph_plan_sha256
from store.requests import post
from store.run_store import RunStore
from store.transactions import Claimed, FrozenPlan, NewEvent, Output, Transaction
from store.values import Domain, digest, digest_bytes

RUN: Final = "run_" + "0" * 25 + "1"
OTHER: Final = "run_" + "0" * 25 + "2"
AT: Final = "2026-01-01T00:00:00.000Z"
HUMAN: Final = "human:ada"
OPERATION: Final = OperationExecutor(operation="t.a", version=1)
COMPUTE: Final = ComputeExecutor(compute="double")
CODE: Final = b"def double(): ..."
PATIENCE_S: Final = 20
LONGEST_LINE: Final = 4000
SHM: Final = Path("/dev/shm")

COVERED: Final = {
    ("runs", "record"): Domain.RECORD,
    ("nodes", "record"): Domain.RECORD,
    ("grants", "record"): Domain.RECORD,
    ("requests", "record"): Domain.RECORD,
    ("summaries", "content"): Domain.RECORD,
    ("events", "event"): Domain.EVENT,
    ("graph_plans", "content"): Domain.GRAPH_PLAN,
    ("node_plans", "content"): Domain.NODE_PLAN,
    ("outputs", "content"): Domain.OUTPUT,
    ("bundles", "content"): Domain.BUNDLE,
}
"""The columns of documents, and what the digest beside each is of."""

PARTS: Final[dict[str, tuple[bytes, ...]]] = {
    "type": (b"null", b"true", b"-1", b"1.5", b'"x"', b"[]", b"{}", b'{"a":[]}'),
    "huge": (b'"' + b"x" * 2_000_000 + b'"',),
    "deep": (b"[" * 100_000 + b"]" * 100_000, b"[" * 300 + b"]" * 300),
    "surrogate": (b'"\\ud800"', b'"\xed\xa0\x80"'),
    "nan": (b"NaN", b"-Infinity", b"1e400"),
    "bigint": (b"9" * 16, b"9" * 20, b"9" * 5000),
    "newline": (b'"a\\nb\\u001b[31m"',),
}
"""What comes in the place of a value somewhere in a document."""

TEXTS: Final = (
    None, "", "\0", "a\nb", "é", "x" * 100_000, "[" * 5000, "null", "{}", '{"ready": -1}', '{"x": 1}', "[]",
    '{"completed": 1e400}', "completed", "running", "host_" + "0" * 26, "../../x",
)  # fmt: skip
"""What comes in the place of a text beside the documents."""

WHOLE: Final[dict[str, Callable[[bytes], bytes]]] = {
    "empty": lambda _: b"",
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "tail": lambda data: data + b" x",
    "twice": lambda data: b"{" + data[1:-1] + b"," + data[1:],
    "another": lambda data: b'{"another":1,' + data[1:],
}
"""What is done to a document as a whole."""


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to the store.

    Attributes:
        what: In words.
        found: Whether somebody must name it.
        same: Whether every answer must be the one of before, or an error.

    """

    what: str
    found: bool
    same: bool


class FuzzError(Exception):
    """A promise that was not kept."""


def build(folder: Path) -> None:
    """Make the store that is damaged in every case: one run that ended, one that rests, with all there is."""
    home = Home.open(folder, create=True)
    store = RunStore.open(home, clock=SystemClock())
    identity = HostIdentity.register(home)
    try:
        for run_id in (RUN, OTHER):
            _create(store, run_id)
            claim = store.claim(run_id, identity)
            for kind in (RequestKind.RETRY, RequestKind.CANCEL):
                post(home, _request(run_id, kind, f"{kind}:{run_id}"), clock=SystemClock())
            _work(store, claim, ends=run_id == RUN)
    finally:
        identity.close()
        store.close()


def _create(store: RunStore, run_id: str) -> None:
    plan = GraphPlan(
        workflow="fuzz",
        version=1,
        inputs={"name": "é", "large": "x" * (INLINE_BYTES if run_id == RUN else 10)},
        nodes=(
            PlannedNode(key="a", executor=OPERATION, input={"n": 1.5}, policy=Policy()),
            PlannedNode(key="b", executor=COMPUTE, input=None, dependencies=("a",), policy=Policy()),
        ),
        bundle_sha256=digest_bytes(Domain.BUNDLE, CODE),
    )  # fmt: skip
    record = RunRecord(
        run_id=run_id,
        workflow="fuzz",
        workflow_version=1,
        plan_sha256=graph_plan_sha256(plan),
        bundle_sha256=digest_bytes(Domain.BUNDLE, CODE),
        folder="/films",
        created_at=AT,
        principal=HUMAN,
    )
    store.create(record, plan, bundle=CODE)


def _request(run_id: str, kind: RequestKind, request_id: str) -> Request:
    return Request(request_id=request_id, run_id=run_id, kind=kind, node="a", principal=HUMAN, at=AT, data={"n": 1})


def _work(store: RunStore, claim: Claimed, *, ends: bool) -> None:
    """Take a run to its end, or to where a person must replay its code."""
    run_id, (a, b) = claim.fence.run_id, claim.nodes
    frozen = [_frozen(run_id, node.key) for node in (a, b)]
    outputs = Output.of("a", {"text": "x" * 300_000}), Output.of("b", [1, 2.5, None])
    done = [
        node.model_copy(
            update={
                "status": Status.COMPLETED, "attempt": 1, "plan_sha256": plan.sha256, "started_at": AT,
                "finished_at": AT, "output_sha256": output.sha256,
            }
        )
        for node, plan, output in zip((a, b), frozen, outputs, strict=True)
    ]  # fmt: skip
    left = done[1].model_copy(update={"status": Status.AMBIGUOUS_CODE, "output_sha256": None, "finished_at": None})
    grant = Grant(
        grant_id=f"grant:{run_id}", run_id=run_id, node="a", action=GrantAction.EFFECT, plan_sha256=frozen[0].sha256,
        allowed=True, principal=HUMAN, rule="r", at=AT,
    )  # fmt: skip
    counts = {"cancelled": 0, "completed": 2, "failed": 0, "pending": 0, "resting": 0, "running": 0, "skipped": 0}
    answers = store.write(
        [
            Transaction(
                fence=claim.fence,
                stamp=SystemClock().now(),
                started=True,
                nodes=(done[0], done[1] if ends else left),
                plans=tuple(frozen),
                outputs=outputs if ends else outputs[:1],
                grants=(grant,),
                consumed=(f"retry:{run_id}",),
                events=(NewEvent(kind=EventKind.NODE_STATUS, node="a", attempt=1, data={"status": "completed"}),) * 3,
                summary=Summary(status=RunStatus.COMPLETED, counts=counts, outputs={"n": 1}) if ends else None,
                release=True,
            )
        ]
    )
    if answers != [None]:
        raise FuzzError(answers)


def _frozen(run_id: str, node: str) -> FrozenPlan:
    return FrozenPlan.of(
        NodePlan(
            run_id=run_id, node=node, executor=OPERATION, input=None,
            input_sha256=digest(Domain.INPUT, None), dependencies={}, policy=Policy(),
        )
    )  # fmt: skip


def looks(home: Home) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield everything a reader can be asked, by name."""
    reader = Reader.open(home)
    with closing(reader):
        yield "runs", reader.runs
        yield "find", lambda: reader.find(RUN)
        for run_id in (RUN, OTHER):
            yield f"run {run_id}", lambda run_id=run_id: reader.run(run_id)
            yield f"nodes {run_id}", lambda run_id=run_id: reader.nodes(run_id)
            yield f"grants {run_id}", lambda run_id=run_id: reader.grants(run_id)
            yield f"requests {run_id}", lambda run_id=run_id: reader.requests(run_id)
            yield f"events {run_id}", lambda run_id=run_id: list(reader.events(run_id))
            for key in ("a", "b"):
                yield f"output {run_id} {key}", lambda run_id=run_id, key=key: reader.output(run_id, key)

            def plans(run_id: str = run_id) -> Any:
                record = reader.run(run_id).record
                nodes = reader.nodes(run_id)
                return (
                    reader.plan(record.plan_sha256),
                    reader.bundle(record.bundle_sha256 or ""),
                    [reader.node_plan(node.plan_sha256) for node in nodes if node.plan_sha256],
                )

            yield f"plans {run_id}", plans


def works(home: Home) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what a host does with the runs, by name."""
    store = RunStore.open(home, clock=SystemClock())
    with closing(store), closing(HostIdentity.register(home)) as identity:
        yield "unowned", store.unowned
        yield "waiting", lambda: store.requests([RUN, OTHER])
        for run_id in (RUN, OTHER):
            claims: list[Claimed] = []

            def claim(run_id: str = run_id, claims: list[Claimed] = claims) -> Any:
                claimed = store.claim(run_id, identity)
                claims.append(claimed)
                return (
                    claimed.record, claimed.plan, claimed.status, claimed.started_at, claimed.nodes, claimed.outputs,
                    claimed.grants, claimed.requests,
                )  # fmt: skip

            def write(claims: list[Claimed] = claims) -> Any:
                for claimed in claims:
                    event = NewEvent(kind=EventKind.NODE_STATUS, node="a")
                    moment = SystemClock().now()
                    nodes = tuple(node.model_copy(update={"status": Status.READY}) for node in claimed.nodes[1:])
                    grant = Grant(
                        grant_id="new", run_id=claimed.fence.run_id, node="b", action=GrantAction.SETTLE,
                        plan_sha256="0" * 64, allowed=True, principal=HUMAN, rule="r", at=AT,
                    )  # fmt: skip
                    for parts in ({"nodes": nodes}, {"grants": (grant,)}, {"events": (event,)}, {"release": True}):
                        refused = store.write([Transaction(fence=claimed.fence, stamp=moment, **parts)])[0]
                        if refused is not None:
                            check_clean(refused)

            yield f"claim {run_id}", claim
            yield f"write {run_id}", write
            yield (
                f"post {run_id}",
                lambda run_id=run_id: post(home, _request(run_id, RequestKind.APPROVE, "another"), clock=SystemClock()),
            )


def ask(folder: Path) -> dict[str, Any]:
    """Ask everything of the store in *folder*.

    Returns:
        By name, the answer, or the error.

    Raises:
        FuzzError: Something broke in any other way.

    """
    answers: dict[str, Any] = {}
    try:
        home = Home.open(folder, create=True)
        for questions in (looks, works):
            for name, question in questions(home):
                try:
                    answers[name] = question()
                except HostlerError as error:
                    check_clean(error)
                    answers[name] = error
    except HostlerError as error:
        check_clean(error)
        answers["open"] = error
    return answers


def check_clean(error: HostlerError) -> None:
    """Check that an error can be shown as it is.

    Raises:
        FuzzError: It cannot.

    """
    text = str(error)
    if error.code is Code.INTERNAL or not text.isprintable() or len(text) > LONGEST_LINE or not error.todo:
        raise FuzzError(f"not a clean error: {text[:300]!r}")


class Fuzzer:
    """Makes one change after another, all from one seed."""

    def __init__(self, template: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.template = template
        self.truth = ask(self._copied(template.with_name("truth")))
        self.outcomes: Counter[str] = Counter()

    def _copied(self, place: Path) -> Path:
        shutil.copytree(self.template, place)
        return place

    def case(self, number: int) -> None:
        """Change the store in one place and ask everything.

        Raises:
            FuzzError: A promise was not kept.

        """
        place = self._copied(self.template.with_name(f"case-{number}"))
        change = Change("nothing yet", found=False, same=False)
        try:
            change = self._change(place)
            with patience():
                answers = ask(place)
            self._judge(change, answers)
        except Exception as error:
            raise FuzzError(f"case {number}: {change.what}") from error
        finally:
            shutil.rmtree(place)

    def _judge(self, change: Change, answers: dict[str, Any]) -> None:
        errors = {
            name: answer
            for name, answer in answers.items()
            if isinstance(answer, HostlerError) and not isinstance(self.truth.get(name), HostlerError)
        }
        self.outcomes["refused" if errors else "unchanged"] += 1
        if change.same:
            for name, answer in answers.items():
                if not isinstance(answer, HostlerError) and answer != self.truth[name]:
                    raise FuzzError(f"{name} gave another answer: {answer!r:.500}, not {self.truth[name]!r:.500}")
        if change.found and not any(error.code in (Code.INVALID_DATA, Code.UNSAFE_STATE) for error in errors.values()):
            raise FuzzError(
                f"nobody noticed; {', '.join(f'{name}: {error}' for name, error in errors.items()) or 'no error'}"
            )

    def _change(self, place: Path) -> Change:
        kind = self.random.choices(["document", "refitted", "column", "content", "bytes"], [40, 25, 15, 10, 10])[0]
        match kind:
            case "content":
                return self._content(place)
            case "bytes":
                return self._bytes(place)
        with closing(sqlite3.connect(place / "runs.db", isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            return (
                self._column(connection) if kind == "column" else self._document(connection, refit=kind == "refitted")
            )

    def _content(self, place: Path) -> Change:
        file = self.random.choice(sorted((place / "content").iterdir()))
        data = file.read_bytes()
        changed, how = self._damaged(data)
        file.write_bytes(changed)
        if self.random.random() < 0.1:
            file.unlink()
            changed, how = b"", "gone"
        return Change(f"file {file.name[:8]}: {how}", found=changed != data, same=True)

    def _bytes(self, place: Path) -> Change:
        name = self.random.choice(["runs.db", "runs.db", "runs.db-wal"])
        data = bytearray((place / name).read_bytes() if (place / name).exists() else b"")
        start = self.random.randrange(len(data) + 1)
        noise = self.random.randbytes(self.random.choice([1, 1, 2, 64, 4096]))
        if name.endswith("-wal") or self.random.random() < 0.8:
            data[start : start + len(noise)] = noise
        else:
            del data[start:]
        (place / name).write_bytes(bytes(data))
        (place / name).chmod(0o600)
        return Change(f"{name}: {len(noise)} bytes at {start}", found=False, same=False)

    def _document(self, connection: sqlite3.Connection, *, refit: bool) -> Change:
        (table, column), domain = self.random.choice(sorted(COVERED.items()))
        rows = connection.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} NOT NULL").fetchall()
        if not rows:
            return Change("nothing", found=False, same=True)
        row, data = self.random.choice(rows)
        changed, how = self._damaged(data)
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, row))
        if refit:
            with suppress(sqlite3.IntegrityError):
                sha256 = digest_bytes(domain, changed)
                connection.execute(f"UPDATE {table} SET sha256 = ? WHERE rowid = ?", (sha256, row))
        what = f"{table}.{column} {row}: {how}{' with its digest' if refit else ''}"
        return Change(what, found=not refit and changed != data, same=not refit)

    def _column(self, connection: sqlite3.Connection) -> Change:
        tables = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'")
        ]
        table = self.random.choice(sorted(tables))
        columns = [
            (row[1], row[2])
            for row in connection.execute(f"PRAGMA table_info({table})")
            if (table, row[1]) not in COVERED
        ]
        column, kind = self.random.choice(columns)
        values = [row[0] for row in connection.execute(f"SELECT {column} FROM {table}")]
        if not values:
            return Change("nothing", found=False, same=True)
        before = self.random.choice(values)
        after = self._other(kind, before)
        with suppress(sqlite3.IntegrityError, OverflowError):
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {column} IS ?", (after, before))
        return Change(f"{table}.{column}: {before!r:.60} -> {after!r:.60}", found=False, same=False)

    def _other(self, kind: str, before: Any) -> Any:
        if kind == "INTEGER":
            return self.random.choice([None, -1, 0, 1, 3, 2**31, 2**53, 2**63 - 1, -(2**63)])
        text = str(before)
        return self.random.choice([text[:-1], text + "x", *TEXTS])

    def _damaged(self, data: bytes) -> tuple[bytes, str]:
        """Return other bytes in the place of a document, and how they came to be."""
        how = self.random.choice([*PARTS, *WHOLE, "cut", "flip", "flip", "noise"])
        position = self.random.randrange(len(data) or 1)
        match how:
            case "cut":
                changed = data[:position]
            case "flip":
                flipped = bytearray(data or b"x")
                flipped[position] ^= 1 << self.random.randrange(8)
                changed = bytes(flipped)
            case "noise":
                changed = self.random.randbytes(200)
            case _ if how in WHOLE:
                changed = WHOLE[how](data)
            case _:
                changed = self._with(data, self.random.choice(PARTS[how]))
        return changed, f"{how} at {position}"

    def _with(self, data: bytes, part: bytes) -> bytes:
        """Return a document with *part* in the place of one of its values."""
        try:
            value = json.loads(data)
        except ValueError:
            return part
        places = list(_places(value))
        if not places:
            return part
        inside, key = self.random.choice(places)
        inside[key] = "\0here"
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        return text.replace(b'"\\u0000here"', part)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


@contextmanager
def patience() -> Iterator[None]:
    """Let the block take so many seconds.

    Raises:
        FuzzError: It takes longer.

    """

    def late(_number: int, _frame: FrameType | None) -> None:
        raise FuzzError(f"it hangs: no answer within {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fuzz(cases: int, seed: int) -> Counter[str]:
    """Do so many cases.

    Returns:
        How many of them were refused somewhere, and how many changed nothing that anybody reads.

    Raises:
        FuzzError: A promise was not kept, naming the case.

    """
    with tempfile.TemporaryDirectory(prefix="hostler-fuzz-", dir=SHM if SHM.is_dir() else None) as folder:
        template = Path(folder, "template")
        build(template)
        fuzzer = Fuzzer(template, seed)
        for number in range(cases):
            fuzzer.case(number)
        return fuzzer.outcomes


def main() -> int:
    """Fuzz, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000, help="how many changes to try")
    parser.add_argument("--seed", type=int, default=1, help="decides which")
    args = parser.parse_args()
    if args.cases < 1:
        parser.error("--cases must be at least 1")
    try:
        outcomes = fuzz(args.cases, args.seed)
    except FuzzError as error:
        traceback.print_exception(error)
        print(f"again with: scripts/fuzz-store --cases {args.cases} --seed {args.seed}")
        return 1
    print(f"{args.cases} cases: {outcomes['refused']} refused, {outcomes['unchanged']} changed nothing that is read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
