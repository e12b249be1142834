"""Workers in a program: what they take, bring, give back and lose; with a host of the run and without any."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from hostler import Host, RunLimits, Work, Worker, compile_workflow, workflow
from hostler.__main__ import main
from hostler.config import Config
from hostres.errors import Code, HostlerError
from store.clock import Stamp, SystemClock, instant, unix_ms
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import RunStatus
from store.proving import numbers, prove
from store.reader import Reader
from store.run_store import RunStore
from store.work import beat
from tests.support import until

TOKEN = "gh" + "p_" + "A1b2" * 9
DONE = {"status": "success", "summary": "done", "usage": {"tokens": 5}, "output": {"n": 1}}


@workflow("outside", version=1)
def outside(build, width: int, options: dict):
    made = [build.agent("do it", key=f"work{n}", input={"n": n}, **options) for n in range(width)]
    build.command(["true"], key="after", after=made)
    return [each["output"] for each in made]


@pytest.fixture(params=[True, False], ids=["owned", "unowned"])
def run_id(request: pytest.FixtureRequest) -> Iterator[str]:
    """A run with two nodes for workers, with a host that works on it and without one."""
    with Host() as host:
        if request.param:
            yield host.submit(outside, width=2, options={}).run_id
            return
    yield stored(width=2)


def stored(*, width: int = 1, **options: Any) -> str:
    """Store a run that no host works on."""
    with Host() as host:
        compiled = compile_workflow(outside, {"width": width, "options": options}, folder=Config.load().home)
        return host.create(compiled)


def reader() -> Reader:
    return Reader.open(Home.open(Config.load().home, create=False))


def status(run_id: str, node: str = "work0") -> str:
    with reader() as look:
        return next(record.status.value for record in look.nodes(run_id) if record.key == node)


def proved(run_id: str) -> bool:
    """Say whether nothing is wrong with what is stored of the run."""
    home = Home.open(Config.load().home, create=False)
    number = next(number for number, name in numbers(home).items() if name == run_id)
    problems = prove(home, number).problems
    assert problems == ()
    return True


def kinds(run_id: str) -> list[str]:
    with reader() as look:
        return [event.kind.value for event in look.events(run_id)]


def taken(worker: Worker) -> Work:
    work = worker.next()
    assert work is not None
    return work


def conflict(action: Any) -> str:
    with pytest.raises(HostlerError) as caught:
        action()
    assert caught.value.code is Code.CONFLICT
    return caught.value.what


def test_the_same_worker_gets_the_identical_work_and_another_one_the_next(run_id):
    """G18: `next` twice; a third worker finds nothing."""
    ann, bob = Worker("ann"), Worker("bob")
    first = taken(ann)
    assert first.to_json() == taken(ann).to_json() == taken(Worker("ann", run=run_id)).to_json()
    second = taken(bob)
    assert (first.key, second.key) == (f"{run_id}:work0:1", f"{run_id}:work1:1")
    assert (first.objective, first.input) == ("do it", {"n": 0})
    assert Worker("cyd").next() is None
    assert first.workspace.is_dir()
    assert proved(run_id)


def test_a_worker_is_told_what_was_reserved_for_its_work():
    """Not all that the budget of its node has left."""
    demand = {"ask": {"tokens": 30}}
    stored(budget=demand, terms={"budget": {"tokens": 100}})
    assert taken(Worker("ann")).request["budget"]["tokens"] == 30


def test_a_result_settles_its_work_and_the_same_one_again_gets_the_same_answer(run_id):
    """G18: `submit` twice with one key; an altered one is a conflict, and so is a stale beat."""
    ann = Worker("ann")
    work = taken(ann)
    assert ann.submit(work, DONE) == "completed"
    assert ann.submit(work.key, {**DONE, "evidence": []}) == "completed"
    assert "another result" in conflict(lambda: ann.submit(work, {**DONE, "summary": "no"}))
    assert "not leased" in conflict(lambda: ann.beat(work))
    assert kinds(run_id).count("spending") == 1
    with reader() as look:
        assert look.output(run_id, "work0")["output"] == {"n": 1}
    assert taken(ann).key == f"{run_id}:work1:1"
    assert proved(run_id)


def test_a_run_ends_when_its_last_work_is_brought():
    """The host goes on with what depends on it."""
    with Host(release_at_rest=True) as host:
        run = host.submit(outside, width=2, options={})
        for _ in range(2):
            ann = Worker("ann", run=run.run_id)
            ann.submit(until(ann.next), DONE)
        outcome = run.wait(timeout=60)
    assert outcome.status is RunStatus.COMPLETED
    assert outcome.outputs == [{"n": 1}, {"n": 1}]
    assert proved(run.run_id)


def test_what_is_given_back_goes_to_another_worker(run_id):
    """No failure is counted; the old key is stale."""
    ann, bob = Worker("ann"), Worker("bob")
    work = taken(ann)
    ann.give_back(work, reason="too hard")
    ann.give_back(work)
    assert status(run_id) == "ready"
    again = taken(bob)
    assert again.key == f"{run_id}:work0:2"
    assert again.workspace != work.workspace
    assert "not leased" in conflict(lambda: ann.submit(work, DONE))
    assert bob.submit(again, DONE) == "completed"
    with reader() as look:
        assert look.nodes(run_id)[0].failures == 0
    assert proved(run_id)


def test_a_lease_that_is_over_lets_another_worker_have_the_work(run_id):
    """G18: expiry, by the host's timer or by whoever asks next; the stale result is refused and its spending kept."""
    ann, bob = Worker("ann", lease_s=1), Worker("bob", lease_s=3600)
    work = taken(ann)
    bob.submit(taken(bob), DONE)  # so that only the work whose lease will be over is left
    until(lambda: (found := bob.next()) and found.key == f"{run_id}:work0:2")
    assert "not leased" in conflict(lambda: ann.submit(work, DONE))
    assert "not leased" in conflict(lambda: ann.submit(work, DONE))
    assert "not leased" in conflict(lambda: ann.beat(work))
    assert kinds(run_id).count("late-result") == 1
    assert kinds(run_id).count("spending") == 2
    assert bob.submit(f"{run_id}:work0:2", DONE) == "completed"
    assert proved(run_id)


def test_a_beat_extends_the_lease_and_writes_no_event():
    """G14: heartbeats are not events; without a host the claim alone would write two."""
    run_id = stored()
    ann = Worker("ann", lease_s=5)
    work = taken(ann)
    before = kinds(run_id)
    extended = Worker("-", lease_s=600).beat(work.key)
    assert extended > work.expires_at
    assert taken(ann).lease_s == 600
    assert ann.beat(work) == extended  # a shorter one takes nothing away
    assert kinds(run_id) == before


def test_a_beat_brings_no_lease_back_that_is_over():
    """G14: a beat of the old lease is refused, also before anybody has noticed that it is over."""
    run_id = stored()
    taken(Worker("ann", lease_s=5))
    home = Home.open(Config.load().home, create=False)
    for later_s, expected in ((4.0, None), (8.9, None), (14.0, "not leased")):
        beating = partial(beat, home, run_id=run_id, node="work0", attempt=1, seconds=5.0, clock=Ahead(later_s))
        if expected is None:
            beating()
        else:
            assert expected in conflict(beating)


class Ahead:
    """A clock that is ahead of this machine's."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def now(self) -> Stamp:
        now = SystemClock().now()
        return Stamp(at=_later(now.at, self._seconds), boot_ns=now.boot_ns + round(self._seconds * 1e9))


def test_work_that_is_being_beaten_for_outlives_its_lease():
    """The context manager beats in the background; the host looks again instead of taking the work away."""
    with Host() as host:
        run = host.submit(outside, width=1, options={})
        ann = Worker("ann", run=run.run_id, lease_s=1)
        work = until(ann.next)
        with ann.beating(work) as pulse:
            first = work.expires_at
            until(lambda: (found := ann.next()) and found.expires_at > first)
            until(lambda: _expiry(run.run_id) > _later(first, 1.5), timeout=60)
            assert not pulse.lost.is_set()
            assert status(run.run_id) == "running"
        assert ann.submit(work, DONE) == "completed"


def _expiry(run_id: str) -> str:
    work = Worker("ann", run=run_id).next()
    assert work is not None
    return work.expires_at


def _later(at: str, seconds: float) -> str:
    return instant(unix_ms(at) + round(seconds * 1000))


def test_a_worker_that_lost_its_work_is_told_by_its_pulse():
    """A person cancelled the run: the next beat finds that out."""
    with Host() as host:
        run = host.submit(outside, width=1, options={})
        ann = Worker("ann", run=run.run_id, lease_s=1)
        work = until(ann.next)
        with ann.beating(work) as pulse:
            host.cancel(run.run_id)
            assert pulse.lost.wait(60)
        assert run.wait(timeout=60).status is RunStatus.CANCELLED


def test_many_workers_get_each_work_once():
    """Eight threads, sixteen nodes, one host: no work is had by two."""
    with Host() as host:
        run = host.submit(outside, width=16, options={})
        until(lambda: status(run.run_id, "work15") == "ready")
        got: list[str] = []
        start = threading.Barrier(8)

        def work(name: str) -> None:
            worker = Worker(name, run=run.run_id)
            start.wait()
            while (mine := worker.next()) is not None:
                got.append(mine.key)
                worker.submit(mine, DONE)

        threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == sorted(f"{run.run_id}:work{n}:1" for n in range(16))
        assert run.wait(timeout=60).status is RunStatus.COMPLETED
    assert proved(run.run_id)


@pytest.fixture
def another_was_first(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let another process have a run in the moment of the first claim, and give it back right after that failed."""
    claim, refused = RunStore.claim, list[str]()
    run_id = stored(width=2)
    home = Home.open(Config.load().home, create=False)
    elsewhere, another = RunStore.open(home, clock=SystemClock()), HostIdentity.register(home)

    def claim_second(store: RunStore, run_id: str, identity: HostIdentity, **more: Any) -> Any:
        if refused:
            return claim(store, run_id, identity, **more)
        claim(elsewhere, run_id, another)
        refused.append(run_id)
        try:
            return claim(store, run_id, identity, **more)
        finally:
            another.close()

    monkeypatch.setattr(RunStore, "claim", claim_second)
    yield refused
    assert refused == [run_id]
    elsewhere.close()


@pytest.mark.usefixtures("another_was_first")
def test_work_is_had_also_where_another_command_has_the_run_for_a_moment():
    """That one has ended by the time this one looks why it could not have the run: it was told of as a conflict."""
    assert taken(Worker("ann")).worker == "ann"


@pytest.mark.usefixtures("another_was_first")
def test_what_is_asked_is_answered_also_where_another_command_has_the_run_for_a_moment(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each command that asks something of a run without a host claims it likewise."""
    assert main(["cancel", "-"]) == 0
    assert "now cancelled" in capsys.readouterr().out


@pytest.mark.parametrize(
    "result",
    [
        b"All done!",
        {"status": "success", "summary": TOKEN, "usage": {"tokens": 5}},
        {"status": "success", "summary": "x" * 3000, "usage": {"tokens": 5}},
    ],
    ids=["text", "secret", "size"],
)
def test_a_result_that_cannot_be_used_is_malformed_output(result):
    """G24: masked before it is stored; what it spent is recorded."""
    run_id = stored(max_output_bytes=2000)
    ann = Worker("ann")
    work = taken(ann)
    assert ann.submit(work, result) == "failed"
    with reader() as look:
        record = look.nodes(run_id)[0]
        assert record.failure is not None
        assert record.failure.code.value == "malformed-output"
        assert TOKEN not in str([request.data for request in look.requests(run_id)])
        assert kinds(run_id).count("spending") == int(isinstance(result, dict))
    log = Home.open(Config.load().home, create=False).logs_of(run_id, "work0", 1)["stdout"].read_text()
    assert TOKEN not in log
    assert log


def test_work_that_needs_approval_is_not_had_before_it():
    """A ready node of a paid effect is not ready for workers."""
    run_id = stored(effect="paid-cloud")
    assert Worker("ann").next() is None
    assert status(run_id) == "approval-required"


def test_asking_for_what_cannot_be_had_writes_nothing():
    """A worker that asks again and again must not fill the log: nothing ready, all taken, or the limit reached."""

    @workflow("limited", version=1, limits=RunLimits(active=1))
    def limited(build):
        for n in range(2):
            build.agent("do it", key=f"work{n}")

    with Host() as host:
        run_id = host.create(compile_workflow(limited, {}, folder=Config.load().home))
    work = taken(Worker("ann"))
    before = kinds(run_id)
    assert Worker("bob").next() is None
    assert taken(Worker("ann")).key == work.key
    assert kinds(run_id) == before


@pytest.mark.parametrize("key", ["x", "run_1:a:1", "run_" + "0" * 26 + ":a:0", "run_" + "0" * 26 + ":a"])
def test_what_is_no_key_is_refused(key):
    """Before anything is looked up."""
    with pytest.raises(HostlerError) as caught:
        Worker("ann").beat(key)
    assert caught.value.code is Code.INVALID_DATA


@pytest.mark.parametrize(
    ("name", "lease_s"),
    [
        ("", 60),
        ("a\nb", 60),
        ("x" * 256, 60),
        (5, 60),
        *(("ann", lease_s) for lease_s in (0.5, 1e6, float("nan"), "60", None, True)),
    ],
)
def test_what_is_no_worker_is_refused(name, lease_s):
    """A name is one line; a lease lasts from a second to a day."""
    with pytest.raises(HostlerError) as caught:
        Worker(name, lease_s=lease_s)
    assert caught.value.code is Code.INVALID_DATA


def test_an_attempt_that_never_was_is_not_found():
    """Of a node for workers, and of one that is none."""
    run_id = stored()
    for key in (f"{run_id}:work0:1", f"{run_id}:after:1", f"{run_id}:nothing:1"):
        with pytest.raises(HostlerError) as caught:
            Worker("ann").submit(key, DONE)
        assert caught.value.code is Code.NOT_FOUND


def test_a_run_whose_work_is_taken_can_be_exported_and_its_record_proved(tmp_path):
    """A lease is the store's own affair, as a claim is: a record has none."""
    run_id = stored()
    taken(Worker("ann"))
    file = tmp_path / "run.hostler"
    assert main(["export", run_id, str(file)]) == 0
    assert main(["verify", str(file)]) == 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOSTLER_HOME", str(tmp_path / "elsewhere"))
        assert main(["import", str(file)]) == 0
        assert main(["verify", run_id]) == 0
        assert Worker("ann").next() is None


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM leases",
        "UPDATE leases SET worker = 'bob'",
        "UPDATE leases SET attempt = 7",
        "INSERT INTO leases SELECT run, 'after', 1, worker, seconds, boot_id, until_boot_ns, expires_at, budget FROM leases",
    ],
)
def test_verify_finds_a_lease_that_the_log_does_not_tell_of(change):
    """Missing, another worker's, another attempt's, of another node."""
    run_id = stored()
    taken(Worker("ann"))
    home = Home.open(Config.load().home, create=False)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute(change)
    (number,) = numbers(home)
    assert {(problem.fault.value, problem.table) for problem in prove(home, number).problems} == {
        ("lease-mismatch", "leases")
    }
    assert run_id in numbers(home).values()
    if "7" in change or "after" in change:
        with Host() as host, pytest.raises(HostlerError) as caught:
            host.resume(run_id).wait(timeout=60)
        assert caught.value.code is Code.INVALID_DATA
        assert "lease of node" in caught.value.what


def test_work_goes_with_its_run(tmp_path):
    """gc takes the row of a lease that a damaged end of a run has left."""
    run_id = stored()
    ann = Worker("ann")
    ann.submit(taken(ann), DONE)
    with Host(release_at_rest=True) as host:
        assert host.resume(run_id).wait(timeout=60).status is RunStatus.COMPLETED
    home = Home.open(Config.load().home, create=False)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute(
            "INSERT INTO leases VALUES (1, 'work0', 1, 'ann', 1.0, 'x', 1, '2026-01-01T00:00:00.000Z', NULL)"
        )
    assert main(["gc", "--older-than", "0d"]) == 0
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("SELECT count(*) FROM leases").fetchone() == (0,)
