"""Runs between hosts: they rest, are handed back, are entrusted, and go on with whoever takes them up."""

import threading
from typing import Any

import pytest

from actors.supervisor import Supervisor
from hostler import Host, OperationFailed, Policy, operation, workflow
from hostler.config import Config
from hostres.errors import Code, HostlerError
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import RunStatus
from store.policy import FailureCode
from store.requests import post
from store.run_store import RunStore
from tests.hostler.host_support import Number, add, buys, long, node_status, paid, read, reader, sleepers
from tests.support import until


@operation("test.breaks-once", version=1, policy=Policy(effect="local-read"))
def breaks_once(ctx, input: Number) -> Number:
    if ctx.attempt == 1:
        raise OperationFailed(FailureCode.UNAVAILABLE, "no such camera", "plug it in")
    return Number(n=input.n + 1)


@workflow("breaking-once", version=1)
def breaking_once(build):
    bad = build.call(breaks_once, key="bad", input={"n": 1})
    after = build.call(add, key="after", input={"n": bad["n"]})
    build.call(read, key="good", input={"n": 1})
    return {"n": after["n"]}


def approve(run_id: str, node: str, principal: str = "human:ann", suffix: str = "1") -> None:
    home = Home.open(Config.load().home, create=False)
    with reader() as store:
        plan = next(each for each in store.nodes(run_id) if each.key == node).plan_sha256
    clock = SystemClock()
    post(
        home,
        Request(
            request_id=f"approve:{run_id}:{node}:{suffix}",
            run_id=run_id,
            kind=RequestKind.APPROVE,
            node=node,
            plan_sha256=plan,
            principal=principal,
            at=clock.now().at,
        ),
        clock=clock,
    )


def test_a_resting_run_that_a_program_keeps_goes_on_when_the_answer_comes():
    with Host() as host:
        run = host.submit(buys)
        resting = run.wait(timeout=60)
        assert (resting.status, resting.final) == (RunStatus.APPROVAL_REQUIRED, False)
        assert resting.counts["resting"] == 1
        ended = threading.Event()
        run.subscribe(lambda report: ended.set() if getattr(report, "drained", None) is False else None)
        approve(run.run_id, "buy", principal="agent:buy", suffix="0")
        approve(run.run_id, "buy")
        assert ended.wait(60)
        assert run.wait(timeout=1).outputs == {"n": 101}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have a person retry `bad` at the last moment that a host owns its run; return the runs of which that was asked."""
    write, asked = RunStore.write, list[str]()

    def write_late(store: RunStore, transactions: Any) -> Any:
        for run_id in [one.fence.run_id for one in transactions if one.release and not asked]:
            with reader() as found:
                assert found.run(run_id).owned
            asked.append(run_id)
            clock = SystemClock()
            late = Request(
                request_id="late",
                run_id=run_id,
                kind=RequestKind.RETRY,
                node="bad",
                principal="human:ada",
                at=clock.now().at,
            )
            post(Home.open(Config.load().home, create=False), late, clock=clock)
        return write(store, transactions)

    monkeypatch.setattr(RunStore, "write", write_late)
    return asked


def test_a_retry_that_comes_just_as_the_run_ends_is_taken_up(asked):
    """Whoever asked saw that a host works on the run, and leaves it to that host."""
    with Host(jobs=2) as host:
        outcome = host.submit(breaking_once).wait(timeout=60)
    assert asked == [outcome.run_id]
    assert (outcome.status, outcome.outputs) == (RunStatus.COMPLETED, {"n": 3})


def test_a_host_whose_run_has_ended_is_content_if_another_takes_up_what_was_asked_meanwhile(asked, monkeypatch):
    claim, claims = RunStore.claim, list[HostIdentity]()

    def claim_second(store: RunStore, run_id: str, identity: HostIdentity, **more: Any) -> Any:
        claims.append(identity)
        if len(claims) == 2:
            claim(elsewhere, run_id, another)
        return claim(store, run_id, identity, **more)

    monkeypatch.setattr(RunStore, "claim", claim_second)
    with Host(jobs=2) as host:
        home = Home.open(Config.load().home, create=False)
        elsewhere, another = RunStore.open(home, clock=SystemClock()), HostIdentity.register(home)
        outcome = host.submit(breaking_once).wait(timeout=60)
        assert [len(asked), len(claims)] == [1, 2]
        assert (outcome.status, outcome.final) == (RunStatus.PARTIAL, True)
        elsewhere.close()
        another.close()


def test_a_resting_run_is_handed_back_and_goes_on_elsewhere():
    with Host(release_at_rest=True) as host:
        run = host.submit(buys)
        assert run.wait(timeout=60).counts["resting"] == 1
    with reader() as store:
        assert store.run(run.run_id).owner is None
    approve(run.run_id, "buy")
    with Host() as host:
        host.operate(run.run_id)
        with reader() as store:
            nodes = {node.key: node.status.value for node in store.nodes(run.run_id)}
        assert nodes == {"buy": "ready", "after": "pending", "other": "completed"}
        assert host._adopt(run.run_id, {("test.paid", 1): paid, ("test.add", 1): add}, {}).wait(60).outputs == {
            "n": 101
        }


def test_closing_a_host_hands_its_runs_back_and_ends_what_they_started():
    with Host() as host:
        run = host.submit(long)
        until(lambda: sleepers(run.run_id))
    assert not sleepers(run.run_id)
    with reader() as store:
        assert store.run(run.run_id).owner is None
    assert node_status(run.run_id, "long") == "ready"


@pytest.mark.parametrize("entrusted", [False, True])
def test_a_run_that_is_entrusted_is_the_service_s_once_its_host_has_closed(entrusted):
    """The other stands until somebody resumes it; a resume says anew whose it is."""
    with Host() as host:
        run_id = host.submit(buys, entrusted=entrusted).run_id
    with reader() as store:
        assert store.is_entrusted(run_id) is entrusted
    with Host() as host:
        host.resume(run_id, entrusted=not entrusted)
    with reader() as store:
        assert store.is_entrusted(run_id) is not entrusted


def test_a_run_that_a_living_host_owns_is_not_to_be_had():
    with Host() as one, Host() as other:
        run = one.submit(long)
        until(lambda: sleepers(run.run_id))
        with pytest.raises(HostlerError) as caught:
            other._adopt(run.run_id, {}, {}).wait(60)
        assert caught.value.code is Code.CONFLICT


def test_who_waits_for_a_resting_run_that_was_taken_up_anew_hears_that_it_rests():
    with Host() as one:
        run = one.submit(buys)
        assert run.wait(timeout=60).status is RunStatus.APPROVAL_REQUIRED
    with Host() as other:
        assert other.resume(run.run_id).wait(timeout=60) == run.wait()


def test_a_resume_waits_for_a_host_that_has_the_run_for_a_moment(monkeypatch):
    """As commands have it that take up an answer."""
    asked_again = threading.Event()
    claim_again = Supervisor._claim_again

    def noted(supervisor: Supervisor, run_id: str) -> None:
        asked_again.set()
        claim_again(supervisor, run_id)

    monkeypatch.setattr(Supervisor, "_claim_again", noted)
    monkeypatch.setattr("hostler.host.BRIEFLY_S", 60.0)
    with Host() as other:
        with Host() as one:
            run = one.submit(buys)
            assert run.wait(timeout=60).status is RunStatus.APPROVAL_REQUIRED
            resumed = other.resume(run.run_id)
            assert asked_again.wait(60)
        assert resumed.wait(timeout=60).status is RunStatus.APPROVAL_REQUIRED


def test_a_resume_does_not_wait_for_long_for_a_host_that_keeps_the_run(monkeypatch):
    monkeypatch.setattr("hostler.host.BRIEFLY_S", 0.1)
    with Host() as one, Host() as other:
        run = one.submit(buys)
        assert run.wait(timeout=60).status is RunStatus.APPROVAL_REQUIRED
        with pytest.raises(HostlerError) as caught:
            other.resume(run.run_id).wait(60)
        assert caught.value.code is Code.CONFLICT


@workflow("cats", version=1)
def cats(build, go: str):
    made = build.command(["sh", "-c", "echo good > o"], key="a", outputs={"o": "o"})
    waits = build.command(["sh", "-c", 'until test -e "$0"; do sleep 0.05; done', go], key="w", after=[made])
    build.command(["cat", made["outputs"]["o"]["path"]], key="b", after=[waits])
    return {}


@pytest.mark.parametrize("damage", ["none", "changed", "gone"])
def test_a_file_of_a_completed_command_is_looked_at_before_another_host_goes_on_with_it(tmp_path, damage):
    with Host() as host:
        run = host.submit(cats, go=str(tmp_path / "go"))
        until(lambda: node_status(run.run_id, "w") == "running")
    (file,) = Config.load().home.glob("staging/*/a/*/o")
    if damage == "changed":
        file.write_text("evil\n")
    elif damage == "gone":
        file.unlink()
    (tmp_path / "go").touch()
    with Host() as host:
        outcome = host._adopt(run.run_id, {}, {}).wait(60)
    with reader() as store:
        failure = next(node.failure for node in store.nodes(run.run_id) if node.key == "b")
    if damage == "none":
        assert outcome.status is RunStatus.COMPLETED
        return
    assert failure.code is FailureCode.CONFLICT
    assert "output o of node a" in failure.message
    assert str(file) in failure.message
