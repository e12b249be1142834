"""A worker: takes work that agents without a program of their own have to do, says that it lives, brings the result.

Everything goes through the run store, so a worker may be any process of the user, beside a host of the run or without
any: then it claims the run itself for as long as it takes to move it.
"""

import os
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import JsonValue

from actors.agent_requests import AgentTask, agent_request
from hostler.config import Config
from hostler.principal import principal
from hostler.stored_runs import opened
from hostres.arguments import seconds, stored_text
from hostres.clock import boot_id
from hostres.errors import Code, HostlerError
from store.agent_results import Malformed, read_result
from store.approvals import Refused, Standing, judge
from store.clock import SystemClock
from store.contracts import Event, EventKind, NodeRecord, Request, RequestKind
from store.home import Home
from store.lazy_dataclass import dataclass
from store.leases import LONGEST_NAME, LONGEST_S, SHORTEST_S
from store.lifecycle import Status
from store.plans import AgentExecutor, GraphPlan, PlannedNode
from store.policy import MIB
from store.records import encode
from store.requests import post
from store.secrets import secrets_of
from store.terms import Terms
from store.values import Domain, canonical, digest_bytes
from store.work import TakenWork, beat
from store.work_reader import WorkReader

LEASE_S: Final = 60.0
ANSWER_S: Final = 60.0
"""How long the host of a run may take to answer."""
ACTIVE: Final = frozenset({Status.PREPARING, Status.QUEUED, Status.RUNNING})
LARGEST_REQUEST: Final = 32 * MIB
_KEY: Final = re.compile(r"(?P<run>run_[0-9a-z]{26}):(?P<node>[a-z0-9][a-z0-9._/-]*):(?P<attempt>[1-9][0-9]{0,15})")
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]+")
_LOOKS_S: Final = (0.005, 0.01, 0.02, 0.05, 0.1)
_NO_TERMS: Final = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work that a worker has.

    Attributes:
        key: The name of the attempt, `run:node:attempt`.
        request: What is asked, in the words of an agent's request.
        worker: Who has it.
        lease_s: The length of the lease, seconds.
        expires_at: Until when it lasts, unless the worker beats.
        max_seconds: How long the attempt may take, however often it beats, seconds.

    """

    key: str
    request: Mapping[str, Any]
    worker: str
    lease_s: float
    expires_at: str
    max_seconds: float

    @property
    def objective(self) -> str:
        """What is to be done."""
        objective: str = self.request["objective"]
        return objective

    @property
    def input(self) -> JsonValue:
        """What is given."""
        value: JsonValue = self.request["input"]
        return value

    @property
    def workspace(self) -> Path:
        """A private folder of this attempt."""
        return Path(self.request["workspace"])

    def to_json(self) -> dict[str, Any]:
        """Return it in the shape of `work next`."""
        lease = {name: value for name, value in asdict(self).items() if name not in {"key", "request"}}
        return {**self.request, **lease}


class Pulse:
    """Whether work is still its worker's, as the last beat found.

    Attributes:
        lost: Set once it is not.

    """

    def __init__(self) -> None:
        self.lost = threading.Event()


class Worker:
    """Takes work under a name; one name has one piece of work of a run at a time."""

    def __init__(
        self, name: str, *, run: str | None = None, lease_s: float = LEASE_S, config: Config | None = None
    ) -> None:
        """Prepare; nothing is written.

        Args:
            name: Who it is: another process of the same name is the same worker.
            run: The id of the only run whose work it takes; None takes that of any.
            lease_s: How long work is its own without a beat, 1 second to a day.
            config: Places; None reads them from the environment and the configuration file.

        Raises:
            HostlerError: invalid-data.

        """
        stored_text(name, name="name")
        if run is not None:
            stored_text(run, name="run")
        if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            raise HostlerError(
                Code.INVALID_DATA,
                f"{name!r} is no name of a worker",
                f"give it 1 to {LONGEST_NAME} printable characters",
            )
        self.name = name
        self._run = run
        self._lease_s = check_lease(lease_s)
        self._config = config or Config.load()
        self._clock = SystemClock()

    def next(self) -> Work | None:
        """Take the next work; what the worker has already is given again, just as it was.

        Returns:
            None if nothing is ready.

        Raises:
            HostlerError: not-found, for an unknown run; conflict, if a rule denies it; unavailable.

        """
        with self._reading() as (home, reader):
            had = self._has(reader)
            if had is not None:
                return self._work(home, reader, had)
            for run_id in [self._run] if self._run else reader.runs_with_work():
                if not self._worth_asking(reader, run_id):
                    continue
                data: dict[str, JsonValue] = {"worker": self.name, "seconds": self._lease_s}
                request_id = f"{RequestKind.LEASE_WORK}:{run_id}:{secrets.token_hex(8)}"
                self._ask(home, RequestKind.LEASE_WORK, request_id, run_id, None, data)
                if self._answer(reader, run_id, request_id).kind is EventKind.REQUEST:
                    had = self._has(reader)
                if had is not None:
                    return self._work(home, reader, had)
        return None

    def beat(self, work: Work | str) -> str:
        """Say that the work goes on: its lease lasts for at least its length from now on.

        Args:
            work: The work, or its key.

        Returns:
            Until when it lasts.

        Raises:
            HostlerError: conflict, if it is no longer this worker's: stop working on it.

        """
        run_id, node, attempt = parse_key(_key_of(work))
        home = Home.open(self._config.home, create=False)
        term = beat(home, run_id=run_id, node=node, attempt=attempt, seconds=self._lease_s, clock=self._clock)
        return term.expires_at

    def submit(self, work: Work | str, result: Mapping[str, Any] | bytes) -> str:
        """Bring the result; the same result again gets the same answer.

        Args:
            work: The work, or its key.
            result: What an agent answers: status, summary, evidence, usage, output; or that as JSON. What cannot be
                used fails the attempt as malformed-output.

        Returns:
            Where the node stood right after it.

        Raises:
            HostlerError: conflict, if the attempt no longer counts, or another result was brought for it.

        """
        key = _key_of(work)
        run_id, node, attempt = parse_key(key)
        with self._reading() as (home, reader):
            planned, record = self._external(reader, run_id, node)
            if attempt > record.attempt:
                raise HostlerError(Code.NOT_FOUND, f"there is no attempt {key}", "see `hostler work next`")
            data = _submission(result, planned.policy.max_output_bytes)
            request_id = f"{RequestKind.SUBMIT_WORK}:{key}"
            self._ask(home, RequestKind.SUBMIT_WORK, request_id, run_id, node, {"attempt": attempt, **data})
            stored = reader.request(run_id, request_id)
            if stored is None or stored.data.get("sha256") != data["sha256"]:
                raise HostlerError(
                    Code.CONFLICT, f"another result was submitted for {key}", "the first one stands; see its run"
                )
            _refuse(self._answer(reader, run_id, request_id))
            if isinstance(data.get("malformed"), dict):
                from actors.work import write_log  # noqa: PLC0415 (slow, and seldom needed)

                write_log(home.log_path(run_id, node, attempt, "stdout"), data["malformed"]["excerpt"])
            return reader.nodes_by_key(run_id)[node].status.value

    def give_back(self, work: Work | str, *, reason: str = "") -> None:
        """Let somebody else have work that this worker has not done; no failure is counted.

        Args:
            work: The work, or its key.
            reason: Why, for people.

        Raises:
            HostlerError: conflict, if it is no longer this worker's; invalid-data.

        """
        stored_text(reason, name="reason")
        key = _key_of(work)
        run_id, node, attempt = parse_key(key)
        with self._reading() as (home, reader):
            self._external(reader, run_id, node)
            request_id = f"{RequestKind.GIVE_BACK_WORK}:{key}"
            self._ask(home, RequestKind.GIVE_BACK_WORK, request_id, run_id, node, {"attempt": attempt}, reason=reason)
            _refuse(self._answer(reader, run_id, request_id))

    @contextmanager
    def beating(self, work: Work | str) -> Iterator[Pulse]:
        """Beat in the background while the block runs, three times in the length of the lease.

        Yields:
            What tells whether the work is still this worker's.

        """
        pulse, over = Pulse(), threading.Event()

        def beat() -> None:
            while not over.wait(self._lease_s / 3):
                try:
                    self.beat(work)
                except HostlerError as error:
                    if error.code is Code.CONFLICT:
                        pulse.lost.set()
                        return

        thread = threading.Thread(target=beat, name="hostler-worker-beat", daemon=True)
        thread.start()
        try:
            yield pulse
        finally:
            over.set()
            thread.join()

    @contextmanager
    def _reading(self) -> Iterator[tuple[Home, WorkReader]]:
        home = Home.open(self._config.home, create=False)
        with opened(WorkReader, home, to_write=True) as reader:
            yield home, reader

    def _has(self, reader: WorkReader) -> TakenWork | None:
        now = self._clock.now()
        leases = reader.leases(worker=self.name, run_id=self._run)
        return next((lease for lease in leases if lease.term.left_s(now, boot_id()) > 0), None)

    def _worth_asking(self, reader: WorkReader, run_id: str) -> bool:
        """Say whether a run may have work, without writing anything."""
        run = reader.run(run_id)
        if run.imported:
            return False
        now = self._clock.now()
        over = {lease.node for lease in reader.leases(run_id=run_id) if lease.term.left_s(now, boot_id()) == 0}
        plan, records = reader.plan(run.record.plan_sha256), reader.nodes(run_id)
        active = sum(record.status in ACTIVE and record.key not in over for record in records)
        if plan.limits.active is not None and active >= plan.limits.active:
            return False
        external = _external_nodes(plan)
        return any(
            record.key in external and (record.status is Status.READY or record.key in over) for record in records
        )

    def _external(self, reader: WorkReader, run_id: str, node: str) -> tuple[PlannedNode, NodeRecord]:
        planned = _external_nodes(reader.plan(reader.run(run_id).record.plan_sha256)).get(node)
        if planned is None:
            what = f"run {run_id} has no work {node} for workers"
            raise HostlerError(Code.NOT_FOUND, what, f"see `hostler show {run_id}`")
        return planned, reader.nodes_by_key(run_id)[node]

    def _ask(
        self,
        home: Home,
        kind: RequestKind,
        request_id: str,
        run_id: str,
        node: str | None,
        data: dict[str, JsonValue],
        *,
        reason: str = "",
    ) -> None:
        request = Request(
            request_id=request_id,
            run_id=run_id,
            kind=kind,
            node=node,
            principal=principal(),
            reason=reason,
            data=data,
            at=self._clock.now().at,
        )
        if len(encode(request)) > LARGEST_REQUEST:
            raise HostlerError(Code.INVALID_DATA, "the result is too large to be stored", "put it in a file")
        ruling = judge(request, Standing(at=request.at), rules=self._config.rules)
        if isinstance(ruling, Refused):
            raise HostlerError(ruling.code, ruling.what, ruling.todo)
        post(home, request, clock=self._clock)

    def _answer(self, reader: WorkReader, run_id: str, request_id: str) -> Event:
        """Wait until whoever owns the run has answered; own it for that where nobody does."""
        deadline, looks = time.monotonic() + ANSWER_S, iter(_LOOKS_S)
        while time.monotonic() < deadline:
            event = reader.answer(run_id, request_id)
            if event is not None:
                return event
            if reader.run(run_id).owned or not self._operate(run_id):
                time.sleep(next(looks, _LOOKS_S[-1]))
        raise HostlerError(
            Code.UNAVAILABLE, f"the host of {run_id} has not answered in {ANSWER_S:g} s", "ask again; it is not lost"
        )

    def _operate(self, run_id: str) -> bool:
        """Take up what was asked of a run; say whether it was done here, and not by another who was first."""
        from hostler.host import Host  # noqa: PLC0415 (slow, and not needed beside a host of the run)

        with Host(config=self._config) as host:
            return host.operate(run_id)

    def _work(self, home: Home, reader: WorkReader, lease: TakenWork) -> Work:
        run = reader.run(lease.run_id)
        planned = _external_nodes(reader.plan(run.record.plan_sha256))[lease.node]
        record = reader.nodes_by_key(lease.run_id)[lease.node]
        plan_sha256 = record.plan_sha256 or ""
        given = reader.node_plan(plan_sha256).input
        assert isinstance(given, dict)
        terms = planned.terms or _NO_TERMS
        # each attempt has a folder of its own, so that none finds what an earlier one left half made
        workspace = home.workspace(lease.run_id, lease.node, plan_sha256) / f"attempt-{lease.attempt}"
        workspace.mkdir(mode=0o700, exist_ok=True)
        request = agent_request(
            AgentTask(evidence=terms.evidence, budget=lease.budget, authority=terms.authority),
            given,
            run_id=lease.run_id,
            node=lease.node,
            attempt=lease.attempt,
            workspace=workspace,
        )
        return Work(
            key=lease.key,
            request=request,
            worker=lease.worker,
            lease_s=lease.term.seconds,
            expires_at=lease.term.expires_at,
            max_seconds=planned.policy.max_seconds,
        )


def check_lease(lease_s: float) -> float:
    """Return the length of a lease in seconds, if it can be had.

    Raises:
        HostlerError: invalid-data.

    """
    given_s = seconds(lease_s, name="lease_s") or 0.0
    if not SHORTEST_S <= given_s <= LONGEST_S:
        what = f"a lease of {given_s:g} s cannot be had"
        raise HostlerError(Code.INVALID_DATA, what, f"ask for {SHORTEST_S:g} s to {LONGEST_S:g} s")
    return float(given_s)


def parse_key(key: str) -> tuple[str, str, int]:
    """Return run, node and attempt that a key names.

    Raises:
        HostlerError: invalid-data.

    """
    found = _KEY.fullmatch(key)
    if found is None:
        what = f"{key!r} does not name an attempt"
        raise HostlerError(Code.INVALID_DATA, what, "give the idempotency_key that `hostler work next` printed")
    return found["run"], found["node"], int(found["attempt"])


def _key_of(work: Work | str) -> str:
    return work.key if isinstance(work, Work) else stored_text(work, name="work")


def _external_nodes(plan: GraphPlan) -> dict[str, PlannedNode]:
    return {
        node.key: node for node in plan.nodes if isinstance(node.executor, AgentExecutor) and node.executor.external
    }


def _submission(result: Mapping[str, Any] | bytes, limit: int) -> dict[str, Any]:
    """Return what of a result is stored: itself if it can be used, else why not; nothing secret either way."""
    data = result if isinstance(result, bytes) else orjson.dumps(result)
    read = read_result(data, limit=limit, secrets=secrets_of(os.environ))
    if isinstance(read, Malformed):
        usage = None if read.usage is None else read.usage.model_dump(mode="json")
        malformed = {"why": read.why, "excerpt": read.excerpt, "usage": usage}
        return {"malformed": malformed, "sha256": digest_bytes(Domain.OUTPUT, data)}
    value = read.model_dump(mode="json")
    return {"result": value, "sha256": digest_bytes(Domain.OUTPUT, canonical(value))}


def _refuse(answer: Event) -> None:
    """Raise what the owner of the run refused a request with."""
    if answer.kind is EventKind.REQUEST_REFUSED:
        raise HostlerError(
            Code.CONFLICT, str(answer.data.get("message", "it was refused")), "ask for other work: hostler work next"
        )
