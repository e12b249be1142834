"""One shape for every store under test: the real one on a disk, seen by a reader of its own, and the model."""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from hostres.errors import Code, HostlerError
from store.clock import Clock
from store.contracts import Request, RunRecord
from store.home import Home
from store.hosts import HostIdentity
from store.limits import Limits
from store.plans import GraphPlan
from store.reader import Reader
from store.requests import post
from store.run_store import RunStore
from store.transactions import Claimed, Transaction
from tests.store.model import Seen, Told


class AnyStore(Protocol):
    """What any store of runs must do."""

    def host(self) -> str: ...
    def kill(self, host_id: str) -> None: ...
    def reopen(self) -> None: ...
    def close(self) -> None: ...
    def create(self, record: RunRecord, plan: GraphPlan, *, bundle: bytes | None = None) -> None: ...
    def claim(self, run_id: str, host_id: str) -> Claimed: ...
    def post(self, request: Request) -> bool: ...
    def requests(self, run_ids: Iterable[str]) -> list[Request]: ...
    def unowned(self) -> list[str]: ...
    def run_ids(self) -> list[str]: ...
    def seen(self, run_id: str) -> Seen: ...
    def write(self, transactions: Sequence[Transaction]) -> list[HostlerError | None]: ...


class DiskStore:
    """The real store; what is seen of it is seen through its file."""

    def __init__(self, folder: Path, clock: Clock, limits: Limits | None = None) -> None:
        self.home = Home.open(folder, create=True)
        self.identities: dict[str, HostIdentity] = {}
        self._clock = clock
        self._limits = limits
        self.store = RunStore.open(self.home, clock=clock, limits=limits)

    def host(self) -> str:
        """Return a new living host."""
        identity = HostIdentity.register(self.home)
        self.identities[identity.host_id] = identity
        return identity.host_id

    def kill(self, host_id: str) -> None:
        """End a host as the kernel does: its lock is gone, its file and its claims stay."""
        self.identities[host_id]._lock.close()

    def reopen(self) -> None:
        """Go on with another connection, as another process would."""
        before = self.store
        self.store = RunStore.open(self.home, clock=self._clock, limits=self._limits)
        before.close()

    def wrap(self, wrapped: Callable[[Any], Any]) -> None:
        """Go on with something in front of the connection."""
        connection = wrapped(self.store._connection)
        self.store = RunStore(self.home, connection, self._clock, self._limits or Limits())

    def close(self) -> None:
        """Close everything."""
        self.store.close()
        for identity in self.identities.values():
            identity.close()

    def create(self, record: RunRecord, plan: GraphPlan, *, bundle: bytes | None = None) -> None:
        """Store a new run."""
        self.store.create(record, plan, bundle=bundle)

    def claim(self, run_id: str, host_id: str) -> Claimed:
        """Take a run for a host."""
        return self.store.claim(run_id, self.identities[host_id])

    def post(self, request: Request) -> bool:
        """Store what somebody wants."""
        return post(self.home, request, clock=self._clock)

    def requests(self, run_ids: Iterable[str]) -> list[Request]:
        """Return what waits for an answer."""
        return self.store.requests(run_ids)

    def unowned(self) -> list[str]:
        """Return the runs that are not final and that no living host owns."""
        return self.store.unowned()

    def write(self, transactions: Sequence[Transaction]) -> list[HostlerError | None]:
        """Apply each transaction whole or not at all."""
        return self.store.write(transactions)

    def run_ids(self) -> list[str]:
        """Return all runs, newest first."""
        with Reader.open(self.home) as reader:
            return [row.run_id for row in reader.runs()]

    def seen(self, run_id: str) -> Seen:
        """Return what a reader finds."""
        with Reader.open(self.home) as reader:
            return seen_by(reader, run_id)


def seen_by(reader: Reader, run_id: str) -> Seen:
    """Return everything that can be read of a run; every digest and the whole chain are checked on the way."""
    run = reader.run(run_id)
    row = next(row for row in reader.runs() if row.run_id == run_id)
    assert (row.status, row.started_at, row.finished_at) == (run.status, run.started_at, run.finished_at)
    assert (row.host, row.alive) == ((None, False) if run.owner is None else (run.owner.host, run.owner.alive))
    nodes = reader.nodes(run_id)
    outputs = {}
    for node in nodes:
        try:
            outputs[node.key] = reader.output(run_id, node.key)
        except HostlerError as error:
            if error.code is not Code.NOT_FOUND:
                raise
        if node.plan_sha256 is not None:
            assert reader.node_plan(node.plan_sha256).node == node.key
    return Seen(
        record=run.record,
        plan=reader.plan(run.record.plan_sha256),
        status=run.status,
        started_at=run.started_at,
        finished_at=run.finished_at,
        owner=None if run.owner is None else (run.owner.host, run.owner.alive),
        summary=run.summary,
        cancel_waits=run.cancel_waits,
        nodes=nodes,
        outputs=outputs,
        grants=reader.grants(run_id),
        requests=reader.requests(run_id),
        events=tuple(
            Told(event.kind, event.node, event.attempt, event.principal, event.data, event.at)
            for event in reader.events(run_id)
        ),
        ledgers=reader.ledgers(run_id),
    )


def copy_as_killed(home: Path, place: Path) -> None:
    """Copy a home as a kill in this moment would leave it: all that was written, no lock, no shared memory.

    Args:
        home: The home, possibly in the middle of a transaction.
        place: Where the copy goes; it must not exist.

    """
    for source in sorted([home, *home.rglob("*")]):
        target = place / source.relative_to(home)
        if source.is_dir():
            target.mkdir(0o700)
        elif source.is_fifo():
            os.mkfifo(target, 0o600)
        elif not source.name.endswith("-shm"):
            with suppress(FileNotFoundError):
                shutil.copy(source, target)
                target.chmod(0o600)
