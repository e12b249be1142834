"""Actors that break: started anew with what depends on them, runs go on from the store, up to a budget."""

import contextlib
import threading
from typing import Any

import pykka
import pytest
from pydantic import BaseModel

from actors import executor as executors
from actors import scheduler as schedulers
from actors.actions import NodeChanged
from actors.authorization import Authorization
from actors.control import Control
from actors.executor import Executor
from actors.host_messages import ChangeTimers, Commit
from actors.host_resources import HostResources
from actors.messages import Returned
from actors.outcomes import Failed
from actors.run_store import GATHER, RunStore
from actors.scheduler import Scheduler
from actors.scheduling.decide import decide
from actors.supervision import Budget, Deaths
from actors.supervisor import Supervisor
from actors.timer import Timer
from hostler import (
    ExactPlan,
    FailureCode,
    Finding,
    Host,
    OperationFailed,
    Policy,
    Preparation,
    Reconciliation,
    operation,
    workflow,
)
from hostler import host as hosts
from hostler.config import Config
from hostler.scenes import scene_of
from hostler.views.why import why_run
from hostres.errors import Code, HostlerError
from hostres.lease import Lease
from store.home import Home
from store.lifecycle import RunStatus, Status
from store.reader import Reader
from store.run_store import RunStore as Store
from tests.support import until


class Number(BaseModel):
    n: int = 0


GO = threading.Event()
STARTED: list[str] = []


@operation("test.step", version=1, policy=Policy(effect="local-read"))
def step(ctx, input: Number) -> Number:
    STARTED.append(ctx.idempotency_key)
    while not GO.wait(0.01):
        ctx.check_cancelled()
    return Number(n=input.n + 1)


@workflow("two", version=1)
def two(build):
    first = build.call(step, key="first")
    return {"n": build.call(step, key="second", input={"n": first["n"]})["n"]}


@pytest.fixture(autouse=True)
def fresh():
    GO.clear()
    STARTED.clear()
    yield
    GO.set()


def the(actor: type[pykka.ThreadingActor]) -> Any:
    return pykka.ActorRegistry.get_by_class(actor)[0]


def break_it(actor: type[pykka.ThreadingActor]) -> None:
    """Give it a message that no actor takes, and wait until it is gone."""
    ref = the(actor)
    ref.tell(object())
    assert ref.actor_stopped.wait(60)


@pytest.mark.parametrize("actor", [Scheduler, RunStore, HostResources, Authorization, Timer])
def test_a_run_goes_on_from_the_store_when_an_actor_breaks_in_the_middle_of_it(actor):
    with Host() as host:
        run = host.submit(two)
        until(lambda: STARTED)
        break_it(actor)
        until(lambda: len(STARTED) > 1)
        GO.set()
        outcome = run.wait(timeout=60)
        assert (outcome.status, outcome.outputs) == (RunStatus.COMPLETED, {"n": 2})
        assert host.gave_up is None
    # the attempt was asked to stop, and only when it had ended was the next one made
    assert STARTED[:2] == [f"{run.run_id}:first:1", f"{run.run_id}:first:2"]
    with Reader.open(Home.open(host.config.home, create=False)) as reader:
        claims = [event.data["generation"] for event in reader.events(run.run_id) if event.kind == "run-claimed"]
    assert claims == [1, 2]


def breaks(control: Control, reason: str, *, grace_s: float) -> None:
    raise RuntimeError("no way to stop it")


def test_a_broken_executor_costs_its_node_alone(monkeypatch):
    monkeypatch.setattr(Control, "abort", breaks)
    with Host() as host:
        run = host.submit(two)
        until(lambda: STARTED)
        run.cancel()
        outcome = run.wait(timeout=60)
        assert outcome.counts["completed"] == 0
        assert host.gave_up is None
        GO.set()
    with Reader.open(Home.open(host.config.home, create=False)) as reader:
        (first, _) = reader.nodes(run.run_id)
    assert first.failure is not None
    assert "its executor broke" in first.failure.message


@operation("test.claiming", version=1, policy=Policy(effect="local-read", claims={"slot": 1}))
def claiming(ctx, input: Number) -> Number:
    STARTED.append(ctx.idempotency_key)
    GO.wait(60)
    return input


@workflow("holder", version=1)
def holder(build):
    return {"n": build.call(claiming, key="holder")["n"]}


def test_what_a_broken_executor_held_comes_back_when_its_work_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(Control, "abort", breaks)
    (tmp_path / "config.toml").write_text("[machine.capacity]\nslot = 1\n")
    with Host() as host:
        run = host.submit(holder)
        until(lambda: STARTED)
        run.cancel()
        run.wait(timeout=60)
        with pytest.raises(HostlerError):
            host.lease({"slot": 1}, wait=0)
        GO.set()
        host.lease({"slot": 1}, wait=60).release()


@operation("test.quick", version=1, policy=Policy(effect="local-read"))
def quick(ctx, input: Number) -> Number:
    return Number(n=input.n + 1)


@workflow("many", version=1)
def many(build):
    last = 0
    for number in range(40):
        last = build.call(quick, key=f"n{number:02}", input={"n": last})["n"]
    return {"n": last}


def test_nodes_that_follow_one_another_run_on_one_thread_and_commit_there(monkeypatch):
    threads, commits, work, write = [], [], Executor._work, Store.write

    def working(executor: Executor) -> None:
        threads.append(threading.current_thread())
        work(executor)

    def writing(store: Store, transactions: Any) -> Any:
        commits.append(threading.current_thread())
        return write(store, transactions)

    monkeypatch.setattr(Executor, "_work", working)
    monkeypatch.setattr(Store, "write", writing)
    with Host() as host:
        assert host.submit(many).wait(timeout=60).outputs == {"n": 40}
    assert len(threads) == 40
    assert len(set(threads)) == 1
    assert commits.count(threads[0]) == 40  # all but the one that starts the run


@operation("test.noted", version=1, policy=Policy(effect="local-read"))
def noted_step(ctx, input: Number) -> Number:
    STARTED.append(ctx.node)
    return Number(n=input.n + 1)


@workflow("three", version=1)
def three(build):
    last = 0
    for number in range(3):
        last = build.call(noted_step, key=f"n{number}", input={"n": last})["n"]
    return {"n": last}


def test_no_step_starts_whose_intent_the_store_refuses_on_the_thread_of_the_step_before(monkeypatch):
    write = Store.write

    def refusing(store: Store, transactions: Any) -> Any:
        if any(record.status is Status.COMPLETED for each in transactions for record in each.nodes):
            return [HostlerError(Code.UNAVAILABLE, "the disk is full", "make room")] * len(transactions)
        return write(store, transactions)

    monkeypatch.setattr(Store, "write", refusing)
    with Host() as host:
        run = host.submit(three)
        with pytest.raises(HostlerError, match="the disk is full"):
            run.wait(timeout=60)
    assert STARTED == ["n0"]


WIDTH = 8


@operation("test.after-the-first", version=1, policy=Policy(effect="local-read"))
def after_the_first(ctx, input: Number) -> Number:
    STARTED.append(ctx.node)
    assert ctx.node == "n0" or GO.wait(60)
    return input


@workflow("wide", version=1)
def wide(build):
    steps = [build.call(after_the_first, key=f"n{number}", input={"n": number}) for number in range(WIDTH)]
    return {"n": steps[-1]["n"]}


def test_what_has_returned_while_the_scheduler_was_busy_is_decided_about_together(monkeypatch):
    """It is held up at the first node that has ended, until all others have ended too."""
    together, held_up, decide = [], [], schedulers.decide

    def noted(state: Any, stamp: Any, *messages: Any, **options: Any) -> Any:
        together.append(len(messages))
        return decide(state, stamp, *messages, **options)

    def hold_up(report: Any) -> None:
        if isinstance(report, NodeChanged) and report.record.status is Status.COMPLETED and not held_up:
            held_up.append(report)
            until(lambda: len(STARTED) == WIDTH)
            GO.set()
            until(lambda: len(the(Scheduler).actor_inbox._messages) == WIDTH - 1)

    monkeypatch.setattr(schedulers, "decide", noted)
    with Host(jobs=WIDTH) as host:
        run = host.submit(wide)
        run.subscribe(hold_up)
        assert run.wait(timeout=60).outputs == {"n": WIDTH - 1}
    assert WIDTH - 1 in together


def test_an_executor_has_ended_before_its_scheduler_hears_of_it(monkeypatch):
    ended, hand_over = [], executors.hand_over

    def noted(address: Any, message: Returned) -> bool:
        ended.append(made[-1].wait(0))
        return hand_over(address, message)

    made: list[Executor] = []
    start = Executor.start
    monkeypatch.setattr(Executor, "start", lambda executor: (made.append(executor), start(executor)))
    monkeypatch.setattr(executors, "hand_over", noted)
    with Host() as host:
        assert host.submit(many).wait(timeout=60).outputs == {"n": 40}
    assert ended == [True] * 40


def test_a_node_costs_one_message_to_the_timer(monkeypatch):
    messages, handle = [], Timer.handle

    def noted(timer: Timer, message: Any) -> None:
        messages.append(message)
        handle(timer, message)

    monkeypatch.setattr(Timer, "handle", noted)
    with Host() as host:
        assert host.submit(many).wait(timeout=60).outputs == {"n": 40}
    of_nodes = [message for message in messages if isinstance(message, ChangeTimers) and message.changes != (GATHER,)]
    assert 40 <= len(of_nodes) <= 41  # the first one is set when the run begins


def test_a_host_whose_actors_keep_breaking_gives_up_and_its_run_can_be_resumed():
    with Host() as host:
        run = host.submit(two)
        for _ in range(6):
            until(lambda: pykka.ActorRegistry.get_by_class(Timer))
            break_it(Timer)
            until(lambda: host.gave_up or len(pykka.ActorRegistry.get_by_class(Timer)) == 1)
        with pytest.raises(HostlerError) as caught:
            run.wait(timeout=60)
        assert caught.value.code is Code.INTERNAL
        with pytest.raises(HostlerError):
            host.submit(two)
    GO.set()
    with Host() as another:
        assert another.resume(run.run_id).wait(timeout=60).status is RunStatus.COMPLETED


def test_a_broken_supervisor_ends_the_host_and_nobody_waits_for_ever():
    """Field case 84: whoever waits is told at once."""
    with Host() as host:
        run = host.submit(two)
        until(lambda: STARTED)
        the(Supervisor).tell(object())
        with pytest.raises(HostlerError):
            run.wait(timeout=60)
        assert host.gave_up is not None


class Answer(BaseModel):
    """What `strange` is to do."""

    how: str = ""


def changed(how: str) -> OperationFailed:
    error = OperationFailed(FailureCode.UNAVAILABLE, "it is away")
    vars(error).update({"code": "not-found"} if how == "code" else {"message": ValueError("x")})
    return error


@operation("test.strange", version=1, policy=Policy(effect="local-read", max_seconds=300))
def strange(ctx, input: Answer) -> Number:
    STARTED.append(ctx.idempotency_key)
    raise changed(input.how)


@workflow("one-strange", version=1)
def one_strange(build, how: str):
    build.call(strange, key="n", input={"how": how})


@pytest.mark.parametrize("how", ["code", "message"])
def test_a_failure_that_cannot_be_stored_fails_its_node_once_and_costs_no_other_run(how: str) -> None:
    """Else the scheduler breaks at it, or its thread does and nobody answers until the node runs out of time."""
    with Host() as host:
        other = host.submit(two)
        until(lambda: STARTED)
        run = host.submit(one_strange, how=how)
        assert run.wait(timeout=60).status is RunStatus.FAILED
        assert STARTED.count(f"{run.run_id}:n:1") == 1
        GO.set()
        assert other.wait(timeout=60).status is RunStatus.COMPLETED
        assert host.gave_up is None
    node = only_node(host, run)
    assert node.attempt == 1
    assert node.failure.code == FailureCode.INTERNAL
    assert "OperationFailed does not say what failed" in node.failure.message


def prepared(ctx, input: Answer) -> Preparation:
    if input.how == "leaves":
        raise KeyboardInterrupt
    if input.how in {"code", "message"}:
        raise changed(input.how)
    return Preparation()


def planned(ctx, input: Answer, descriptors: Any) -> ExactPlan:
    return ExactPlan(input=Answer.model_construct(how="\ud800"))


@operation(
    "test.strange-plan",
    version=1,
    policy=Policy(effect="local-read", max_seconds=300),
    prepare=prepared,
    plan=planned,
)
def strange_plan(ctx, input: Answer) -> Number:
    return Number()


@workflow("one-strange-plan", version=1)
def one_strange_plan(build, how: str):
    build.call(strange_plan, key="n", input={"how": how})


@pytest.mark.parametrize("how", ["code", "message", "leaves", "text that is none"])
def test_whatever_a_planner_raises_or_gives_fails_its_node_at_once(how: str) -> None:
    """An answer that never comes would leave it preparing until it runs out of time."""
    with Host() as host:
        run = host.submit(one_strange_plan, how=how)
        assert run.wait(timeout=60).status is RunStatus.FAILED
        assert host.gave_up is None
    assert only_node(host, run).failure.code != FailureCode.TIMEOUT


def found(ctx, input: Answer, previous: Any) -> Reconciliation:
    return Reconciliation(Finding.INCOMPATIBLE, "\ud800" * 5000)


@operation(
    "test.strange-finding",
    version=1,
    policy=Policy(effect="project-mutation", resume="recoverable-transaction", max_seconds=300),
    reconcile=found,
)
def strange_finding(ctx, input: Answer) -> Number:
    ctx.before_publication()
    raise ValueError("after")


@workflow("one-strange-finding", version=1)
def one_strange_finding(build):
    build.call(strange_finding, key="n", input={"how": ""})


def test_what_a_reconciliation_says_is_stored_as_far_as_it_can_be() -> None:
    """It is a stranger's text, as that of a failure is."""
    with Host() as host:
        run = host.submit(one_strange_finding)
        assert run.wait(timeout=60).counts["failed"] == 1
        assert host.gave_up is None
    node = only_node(host, run)
    assert node.status is Status.INCOMPATIBLE
    assert set(node.failure.message) == {"?"}


def only_node(host: Host, run: Any) -> Any:
    with Reader.open(Home.open(host.config.home, create=False)) as reader:
        (node,) = reader.nodes(run.run_id)
    return node


def tells(monkeypatch: pytest.MonkeyPatch, outcome: Any) -> Any:
    """Have the work of a node come to *outcome*, whatever its code does, and return the node's failure."""
    monkeypatch.setattr(executors, "perform", lambda *_: outcome)
    with Host() as host:
        run = host.submit(holder)
        assert run.wait(timeout=60).status is RunStatus.FAILED
        assert host.gave_up is None
        host.lease({"slot": 1}, wait=60).release()
    return only_node(host, run).failure


@pytest.mark.parametrize("wrong", [{"code": "nope"}, {"message": None}, {"todo": 5}, {"retryable": "yes"}])
def test_an_outcome_that_cannot_be_stored_is_found_out_before_the_scheduler_hears_of_it(
    tmp_path, monkeypatch, wrong
) -> None:
    """Whoever made it: the node fails as internal and says what was wrong with it."""
    (tmp_path / "config.toml").write_text("[machine.capacity]\nslot = 1\n")
    right = {"code": FailureCode.SUBPROCESS, "message": "m", "todo": "t"}
    failure = tells(monkeypatch, Failed(**right | wrong))
    assert failure.code is FailureCode.INTERNAL
    assert "its work broke" in failure.message


def test_an_attempt_whose_end_cannot_be_told_ends_all_the_same(tmp_path, monkeypatch) -> None:
    """Nobody would answer for it: here its lease cannot be given back at the first time."""
    (tmp_path / "config.toml").write_text("[machine.capacity]\nslot = 1\n")
    release = Lease.release
    broke: list[int] = []

    def released(lease):
        if not broke:
            broke.append(release(lease))
            raise RuntimeError("no")
        return release(lease)

    monkeypatch.setattr(Lease, "release", released)
    failure = tells(monkeypatch, Failed(code=FailureCode.SUBPROCESS, message="m", todo="t"))
    assert failure.code is FailureCode.INTERNAL
    assert "its executor broke: RuntimeError: no" in failure.message


def poison(monkeypatch: pytest.MonkeyPatch, workflow: str) -> None:
    """Have every decision about what a node of *workflow* came to break its scheduler."""

    def breaks_at(state: Any, now: Any, *messages: Any, full: bool) -> Any:
        if state.record.workflow == workflow and any(isinstance(each, Returned) for each in messages):
            raise ValueError("nobody thought of this")
        return decide(state, now, *messages, full=full)

    monkeypatch.setattr(schedulers, "decide", breaks_at)


def test_a_run_that_breaks_its_scheduler_again_and_again_is_given_up_and_costs_no_other_run(monkeypatch) -> None:
    """Its claim is free again, while its host lives and works."""
    with Host() as host:
        other = host.submit(two)
        until(lambda: STARTED)
        with monkeypatch.context() as poisoned:
            poison(poisoned, "one-strange")
            for _ in range(3):  # so many deaths would cost the host, were they its own
                run = host.submit(one_strange, how="")
                with pytest.raises(HostlerError) as caught:
                    run.wait(timeout=60)
                assert caught.value.code is Code.INTERNAL
                assert "ValueError: nobody thought of this" in caught.value.what
                assert len([key for key in STARTED if key.startswith(run.run_id)]) == 3
        assert host.gave_up is None
        why = f"given up: scheduler {run.run_id} broke: ValueError: nobody thought of this"
        assert f"No host works on the run: {why}." in why_of(run.run_id)
        with Host() as another:
            assert another.resume(run.run_id).wait(timeout=60).status is RunStatus.FAILED
        GO.set()
        assert other.wait(timeout=60).status is RunStatus.COMPLETED
        assert host.submit(two).wait(timeout=60).status is RunStatus.COMPLETED
    with Reader.open(Home.open(host.config.home, create=False)) as reader:
        said = [event.data["message"] for event in reader.events(run.run_id) if event.kind == "cleanup-error"]
        assert said == [why]
        assert reader.given_up(run.run_id) is None, "somebody has had it since"


def why_of(run_id: str) -> str:
    home = Home.open(Config.load().home, create=False)
    with Reader.open(home) as reader:
        return why_run(scene_of(home, reader, run_id, load=False)).text


def test_a_run_is_given_up_also_where_the_store_breaks_meanwhile(monkeypatch) -> None:
    """What was to give its claim back is handed in again."""
    handled = RunStore.handle
    broke: list[Commit] = []

    def breaks_once(self: RunStore, message: Any) -> None:
        if isinstance(message, Commit) and message.transaction.release and not broke:
            broke.append(message)
            raise RuntimeError("no")
        handled(self, message)

    poison(monkeypatch, "one-strange")
    monkeypatch.setattr(RunStore, "handle", breaks_once)
    with Host() as host:
        run = host.submit(one_strange, how="")
        with pytest.raises(HostlerError, match="nobody thought of this"):
            run.wait(timeout=60)
        assert broke
        assert host.gave_up is None
        with Reader.open(Home.open(host.config.home, create=False)) as reader:
            assert [event.kind for event in reader.events(run.run_id)][-1] == "run-released"


def test_a_host_does_not_take_up_a_run_twice():
    """The second `Run` was told of a conflict, and the first one forgotten: closing the host did not hand it back."""
    with Host() as host:
        run = host.submit(two, submission_key="two")
        until(lambda: STARTED)
        assert host.resume(run.run_id) is run
        assert host.submit(two, submission_key="two") is run
    assert run.wait(timeout=0).status is RunStatus.RUNNING
    with Reader.open(Home.open(Config.load().home, create=False)) as reader:
        assert [event.kind for event in reader.events(run.run_id)][-1] == "run-released"
    with Host() as host:
        again = host.resume(run.run_id)
        GO.set()
        assert again.wait(timeout=60).status is RunStatus.COMPLETED


def test_what_is_asked_of_a_run_beyond_how_it_was_taken_up_is_refused():
    """It was dropped without a word: the run that a program entrusted waited for nobody once its host had closed."""
    with Host() as host:
        run = host.submit(two, submission_key="two")
        until(lambda: STARTED)
        for ask, without in (
            (lambda: host.submit(two, submission_key="two", entrusted=True), "without being entrusted"),
            (lambda: host.resume(run.run_id, entrusted=True), "without being entrusted"),
            (lambda: host.resume(run.run_id, accept_incompatible=True), "without accept_incompatible"),
        ):
            with pytest.raises(HostlerError, match=f"works on {run.run_id} already, {without}") as caught:
                ask()
            assert caught.value.code is Code.CONFLICT
    with Host() as host:
        again = host.resume(run.run_id, entrusted=True, accept_incompatible=True)
        assert host.submit(two, submission_key="two", entrusted=True) is again
        assert host.resume(run.run_id, entrusted=True, accept_incompatible=True) is again
        assert host.resume(run.run_id) is again
        GO.set()
        assert again.wait(timeout=60).status is RunStatus.COMPLETED
        assert host.submit(two, submission_key="two", entrusted=True) is again


def test_a_run_that_another_host_had_is_taken_up_when_it_is_asked_for_again():
    """The refused `Run` was given again for ever."""
    with Host() as host:
        with Host() as other:
            run = other.submit(two, submission_key="two")
            until(lambda: STARTED)
            with pytest.raises(HostlerError) as caught:
                host.submit(two, submission_key="two").wait(timeout=60)
            assert caught.value.code is Code.CONFLICT
        assert not run.wait(timeout=0).final
        GO.set()
        again = host.submit(two, submission_key="two")
        assert again.wait(timeout=60).status is RunStatus.COMPLETED
        assert host.submit(two, submission_key="two") is again


def test_threads_that_ask_for_one_run_at_once_are_given_one(monkeypatch):
    """Both found that it was not worked on yet, and both took it up."""
    found: list[Any] = []
    both = threading.Barrier(2)
    notes = hosts.ProgressNotes

    def made_together(*arguments: Any) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return notes(*arguments)

    monkeypatch.setattr(hosts, "ProgressNotes", made_together)
    with Host() as host:
        threads = [
            threading.Thread(target=lambda: found.append(host.submit(two, submission_key="two"))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        GO.set()
        assert found[0] is found[1]
        assert found[0].wait(timeout=60).status is RunStatus.COMPLETED


def test_old_deaths_are_forgiven():
    deaths = Deaths(Budget(deaths=2, window_s=10))
    assert [deaths.bear(now) for now in (0, 1, 11.5, 12, 12.5)] == [True, True, True, True, False]
