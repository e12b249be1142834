"""Commits gather by chance; whatever of a run one of them holds, its rows are what its log tells."""

import itertools
import random
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from actors.actions import Judge
from actors.messages import RequestsArrived
from hostres.errors import Code
from store.contracts import Request, RequestKind
from store.lifecycle import RunStatus
from store.proving import numbers, prove
from store.transactions import Fence, Transaction
from tests.actors.support import HUMAN, RUN_ID, Drive, Model, kinds, left, planned, rule
from tests.simulation.world import World
from tests.store.stores import DiskStore
from tests.store.support import CLOCK

SHM = Path("/dev/shm")
NOWHERE = Fence(run_id="run_" + "0" * 26, host_id="host_a", generation=1, token="t")


def asked(drive: Drive, request_id: str) -> Judge:
    """Ask for what will be refused, and return what authority is yet to rule on; till then the run is not left."""
    request = Request(
        request_id=request_id, run_id=RUN_ID, kind=RequestKind.APPROVE, node="a", principal=HUMAN,
        at="2026-01-01T00:00:00.000Z", plan_sha256="0" * 64,
    )  # fmt: skip
    assert drive.model.post(request)
    (judge,) = kinds(drive.send(RequestsArrived(requests=(request,))), Judge)
    assert isinstance(judge, Judge)
    return judge


def ended_twice() -> Model:
    """Return a run that ends, is reopened, ends in the same way, and is left only by the transaction after that."""
    model = Model([planned("a"), planned("b", "a")])
    drive = Drive(model)
    drive.begin()
    first = asked(drive, "first")
    drive.failed("a")
    assert (model.status, drive.state.left) == (RunStatus.FAILED, False)
    drive.request(RequestKind.RETRY, "a")
    assert model.status is RunStatus.RUNNING
    drive.send(rule(first))
    second = asked(drive, "second")
    drive.failed("a")
    assert (model.status, drive.state.left) == (RunStatus.FAILED, False)
    assert left(drive.send(rule(second))) is not None
    return model


def cut(transactions: Sequence[Transaction], cuts: Iterable[bool]) -> list[list[Transaction]]:
    """Return *transactions* cut into commits; those of two owners are never in one."""
    groups = [[transactions[0]]]
    for (before, transaction), here in zip(itertools.pairwise(transactions), cuts, strict=True):
        if here or transaction.fence.generation != before.fence.generation:
            groups.append([])
        groups[-1].append(transaction)
    return groups


def write(store: DiskStore, group: Sequence[Transaction], *, beside: bool) -> None:
    """Write a group; *beside* a transaction that is refused each is written by itself, on what is read anew."""
    stray = [Transaction(fence=NOWHERE, stamp=CLOCK.now())] if beside else []
    answers = store.write([*group, *stray])
    assert [answer and answer.code for answer in answers] == [None] * len(group) + [Code.NOT_FOUND] * len(stray)


def check(model: Model, groups: Sequence[Sequence[Transaction]], *, beside: bool) -> None:
    """Write what was written to the model to a real store, in those groups, and prove it after each of them."""
    said, sizes = model.seen, [len(group) for group in groups]
    folder = Path(tempfile.mkdtemp(prefix="hostler-grouping-", dir=SHM if SHM.is_dir() else None))
    store = DiskStore(folder / "home", CLOCK)
    try:
        store.create(model.record, model.plan)
        for request in said.requests:
            assert store.post(request)
        fences: list[Fence] = []
        for group in groups:
            while len(fences) < group[0].fence.generation:
                if fences:
                    store.kill(fences[-1].host_id)
                fences.append(store.claim(RUN_ID, store.host()).fence)
            write(store, [replace(transaction, fence=fences[-1]) for transaction in group], beside=beside)
            (verdict,) = (prove(store.home, number, files=False) for number in numbers(store.home))
            # compute nodes are simulated, so that there is no code which the plan could name
            assert (sizes, [each for each in verdict.problems if each.table != "graph_plans"]) == (sizes, [])
        seen = store.seen(RUN_ID)
        for field in ("status", "started_at", "finished_at", "summary", "nodes", "outputs", "grants", "ledgers"):
            assert (sizes, field, getattr(seen, field)) == (sizes, field, getattr(said, field))
    finally:
        store.close()
        shutil.rmtree(folder)


@pytest.mark.parametrize("beside", [False, True], ids=["at once", "one by one"])
def test_whatever_of_a_run_one_commit_holds_its_rows_are_what_its_log_tells(*, beside: bool) -> None:
    """Every way to group a run that ends, goes on, ends again, and is left by one transaction more."""
    model = ended_twice()
    assert model.seen.summary is not None
    assert len(model.transactions) == 6
    for cuts in itertools.product([False, True], repeat=5):
        check(model, cut(model.transactions, cuts), beside=beside)


@pytest.mark.parametrize("seed", [0, 1, 41, 247])
def test_a_run_of_chance_is_stored_the_same_in_commits_of_any_size(seed: int) -> None:
    """Everything that the core writes, with owners that die in between."""
    world, chance = World(seed), random.Random(seed)
    world.play()
    transactions = world.model.transactions
    check(world.model, cut(transactions, [chance.random() < 0.2 for _ in transactions[1:]]), beside=seed % 3 == 0)
