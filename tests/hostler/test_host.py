"""A host in a program: runs end, rest, go on, are handed back; and what it costs in commits."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from actors.actions import RunLeft
from hostler import Host, OperationFailed, Policy, Worker, load, operation, workflow
from hostler.config import Config
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from hostres.top import snapshot
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import RunStatus
from store.policy import FailureCode
from store.reader import Reader
from store.requests import post
from store.run_store import RunStore
from tests.support import until


class Number(BaseModel):
    n: int = 0


@operation("test.add", version=1, policy=Policy())
def add(ctx, input: Number) -> Number:
    return Number(n=input.n + 1)


@operation("test.read", version=1, policy=Policy(effect="local-read"))
def read(ctx, input: Number) -> Number:
    return Number(n=input.n + 1)


@operation("test.claiming", version=1, policy=Policy(effect="local-read", claims={"cpu": 1}))
def claiming(ctx, input: Number) -> Number:
    assert ctx.lease is not None
    ctx.lease.assert_owned()
    return Number(n=input.n + 1)


@operation("test.paid", version=1, policy=Policy(effect="paid-cloud", resume="ambiguous-after-dispatch"))
def paid(ctx, input: Number) -> Number:
    return Number(n=100)


@operation("test.breaks", version=1, policy=Policy(effect="local-read"))
def breaks(ctx, input: Number) -> Number:
    raise OperationFailed(FailureCode.UNAVAILABLE, "no such camera", "plug it in")


@operation("test.breaks-once", version=1, policy=Policy(effect="local-read"))
def breaks_once(ctx, input: Number) -> Number:
    if ctx.attempt == 1:
        raise OperationFailed(FailureCode.UNAVAILABLE, "no such camera", "plug it in")
    return Number(n=input.n + 1)


@operation("test.raises", version=1, policy=Policy(effect="local-read"))
def raises(ctx, input: Number) -> Number:
    raise SystemExit(4)


@operation("test.sleeps", version=1, policy=Policy(effect="local-derived-write", max_seconds=60))
def sleeps(ctx, input: Number) -> Number:
    ctx.run(["sleep", "60"])
    return Number(n=1)


class Text(BaseModel):
    path: str


@operation("test.writes", version=1, policy=Policy(effect="local-derived-write", publishes=("path",)))
def writes(ctx, input: Text) -> Text:
    (ctx.workspace / "x").write_text(ctx.idempotency_key)
    return Text(path=str(ctx.publish("x", input.path)))


@workflow("chain", version=1)
def chain(build, length: int):
    last: Any = None
    for index in range(length):
        last = build.call(add, key=f"n{index:04d}", input={"n": last["n"] if last else 0})
    return {"n": last["n"]}


@workflow("reading-chain", version=1)
def reading_chain(build, length: int):
    last: Any = None
    for index in range(length):
        last = build.call(read, key=f"n{index:04d}", input={"n": last["n"] if last else 0})
    return {"n": last["n"]}


@workflow("claiming-chain", version=1)
def claiming_chain(build, length: int):
    last: Any = None
    for index in range(length):
        last = build.call(claiming, key=f"n{index:04d}", input={"n": last["n"] if last else 0})
    return {"n": last["n"]}


@workflow("fan", version=1)
def fan(build, width: int):
    nodes = [build.call(add, key=f"n{index:04d}", input={"n": index}) for index in range(width)]
    return {"all": [node["n"] for node in nodes]}


@workflow("buys", version=1)
def buys(build):
    bought = build.call(paid, key="buy", input={"n": 1})
    after = build.call(add, key="after", input={"n": bought["n"]})
    build.call(add, key="other", input={"n": 1})
    return {"n": after["n"]}


@workflow("breaking", version=1)
def breaking(build):
    bad = build.call(breaks, key="bad", input={"n": 1})
    build.call(add, key="after", input={"n": bad["n"]})
    build.call(raises, key="worse", input={"n": 1})
    build.call(add, key="good", input={"n": 1})
    return {}


@workflow("breaking-once", version=1)
def breaking_once(build):
    bad = build.call(breaks_once, key="bad", input={"n": 1})
    after = build.call(add, key="after", input={"n": bad["n"]})
    build.call(read, key="good", input={"n": 1})
    return {"n": after["n"]}


@workflow("long", version=1)
def long(build):
    build.call(sleeps, key="long", input={"n": 1})
    return {}


@workflow("writing", version=1)
def writing(build, path: str):
    done = build.call(writes, key="write", input={"path": path})
    return {"path": done["path"]}


def reader() -> Reader:
    return Reader.open(Home.open(Config.load().home, create=False))


@pytest.mark.parametrize(("flow", "per_step"), [(chain, 1), (reading_chain, 1), (claiming_chain, 2)])
def test_a_chain_of_200_costs_at_most_one_commit_a_step_without_claims_and_two_with(flow, per_step):
    with Host() as host:
        run = host.submit(flow, length=200)
        assert run.wait(timeout=60).outputs == {"n": 200}
        # beside the steps: created, claimed, begun
        assert host.commits <= per_step * 200 + 3
        if per_step == 2:
            assert host.commits > 200


def test_a_fan_of_200_ends_with_all_its_values():
    with Host(jobs=8) as host:
        run = host.submit(fan, width=200)
        assert run.wait(timeout=60).outputs == {"all": list(range(1, 201))}
        assert host.commits <= 200 + 3


def test_a_failure_says_which_node_which_code_and_what_to_do_and_others_complete():
    with Host() as host:
        run = host.submit(breaking)
        outcome = run.wait(timeout=60)
        assert outcome.status is RunStatus.PARTIAL
    with reader() as store:
        nodes = {node.key: node for node in store.nodes(run.run_id)}
    assert {key: node.status.value for key, node in nodes.items()} == {
        "bad": "failed", "after": "skipped", "worse": "failed", "good": "completed",
    }  # fmt: skip
    failure = nodes["bad"].failure
    assert (failure.code, failure.message, failure.todo) == (FailureCode.UNAVAILABLE, "no such camera", "plug it in")
    assert nodes["worse"].failure.code is FailureCode.INTERNAL


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


def test_cancelling_a_run_ends_its_processes_before_it_is_called_cancelled():
    """Field case 2."""
    with Host() as host:
        run = host.submit(long)
        until(lambda: node_status(run.run_id, "long") == "running")
        until(lambda: sleepers(run.run_id))
        run.cancel("enough")
        assert run.wait(timeout=60).status is RunStatus.CANCELLED
        assert not sleepers(run.run_id)


def test_a_cancel_that_was_refused_leaves_a_run_that_a_person_can_cancel():
    """Its owner may have other rules than whoever asked first."""
    with Host() as host:
        run = host.submit(long)
        until(lambda: sleepers(run.run_id))
        with reader() as store:
            named = store.next_cancel_id(run.run_id, None)
        refused = Request(
            request_id=named, run_id=run.run_id, kind=RequestKind.CANCEL, principal="agent:bot",
            at=SystemClock().now().at,
        )  # fmt: skip
        post(Home.open(Config.load().home, create=False), refused, clock=SystemClock())
        with reader() as store:
            until(lambda: store.answer(run.run_id, named))
        run.cancel("enough")
        assert run.wait(timeout=60).status is RunStatus.CANCELLED


ODD: Any = ["\ud800", b"x", 5, ["x"]]
TEXTS: list[tuple[str, Callable[[Host, Any, Any], Any]]] = [
    ("submission_key", lambda host, _, odd: host.submit(reading_chain, length=1, submission_key=odd)),
    ("folder", lambda host, _, odd: host.submit(reading_chain, length=1, folder=odd)),
    ("run_id", lambda host, _, odd: host.resume(odd)),
    ("run_id", lambda host, _, odd: host.operate(odd)),
    ("run_id", lambda host, _, odd: host.cancel(odd)),
    ("node", lambda host, run, odd: host.cancel(run.run_id, node=odd)),
    ("reason", lambda host, run, odd: host.cancel(run.run_id, reason=odd)),
    ("reason", lambda _, run, odd: run.cancel(odd)),
    ("name", lambda host, _, odd: host.lease({"cpu": 1}, name=odd)),
    ("workflow", lambda *given: load(given[-1], folder=Path("/"))),
    ("name", lambda *given: Worker(given[-1])),
    ("run", lambda *given: Worker("ann", run=given[-1])),
    ("work", lambda *given: Worker("ann").beat(given[-1])),
    ("work", lambda *given: Worker("ann").submit(given[-1], {})),
    ("reason", lambda *given: Worker("ann").give_back("work", reason=given[-1])),
]


def test_a_text_that_is_none_or_cannot_be_stored_is_refused_by_its_name():
    """In one line; it was an exception of whatever library met it first."""
    with Host() as host:
        run = host.submit(buys)
        assert not run.wait(timeout=60).final
        for name, asked in TEXTS:
            for odd in ODD:
                with pytest.raises(HostlerError) as caught:
                    asked(host, run, odd)
                assert caught.value.code is Code.INVALID_DATA, (name, odd)
                assert name in caught.value.what
                assert str(caught.value).encode().isascii(), (name, odd)


def test_what_cannot_be_cancelled_is_refused_and_leaves_nothing_in_the_store(monkeypatch):
    """A request that nobody would answer keeps a run from `gc`, and would cancel it once it is tried again."""
    with Host() as host:
        run = host.submit(breaking)
        assert run.wait(timeout=60).status is RunStatus.PARTIAL
        run.cancel()
        wrong = [
            ({"run_id": run.run_id}, Code.CONFLICT),
            ({"run_id": run.run_id, "node": "good"}, Code.CONFLICT),
            ({"run_id": run.run_id, "node": "nosuch"}, Code.NOT_FOUND),
            ({"run_id": "run_none"}, Code.NOT_FOUND),
            ({"run_id": run.run_id, "node": "bad", "reason": "x" * 5000}, Code.INVALID_DATA),
        ]
        for arguments, code in wrong:
            with pytest.raises(HostlerError) as caught:
                host.cancel(**arguments)
            assert caught.value.code is code
        rests = host.submit(buys)
        assert not rests.wait(timeout=60).final
        monkeypatch.setenv("HOSTLER_PRINCIPAL", "bot")
        with pytest.raises(HostlerError, match="may not cancel"):
            rests.cancel()
    with reader() as store:
        assert store.requests(run.run_id) == store.requests(rests.run_id) == ()


@pytest.mark.parametrize("jobs", [0, -1, "2", 1.5, True])
def test_a_number_of_jobs_that_would_do_nothing_or_break_is_refused(jobs):
    with pytest.raises(HostlerError, match=r"jobs is .*; give a whole number of at least 1"):
        Host(jobs=jobs)


def test_an_argument_of_a_wrong_type_is_named_and_a_folder_may_be_text(tmp_path):
    with Host() as host:
        run = host.submit(chain, length=1, folder=str(tmp_path))
        assert run.wait(timeout=60).status is RunStatus.COMPLETED
        with reader() as store:
            assert store.run(run.run_id).record.folder == str(tmp_path)
        for wrong in (
            lambda: host.submit(chain, length=1, folder=3),
            lambda: host.submit(chain, length=1, submission_key=3),
            lambda: run.wait(timeout="3"),
        ):
            with pytest.raises(HostlerError) as caught:
                wrong()
            assert caught.value.code is Code.INVALID_DATA
            assert "3" in caught.value.what


def node_status(run_id: str, node: str) -> str:
    with reader() as store:
        return next(each.status.value for each in store.nodes(run_id) if each.key == node)


def sleepers(run_id: str) -> list[str]:
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"HOSTLER_RUN={run_id}".encode() in environ.read_bytes().split(b"\0"):
                found.append(environ.parent.name)
        except OSError:
            continue
    return found


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


def test_what_is_published_has_its_final_name_in_the_folder_of_the_run(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with Host() as host:
        run = host.submit(writing, folder=folder, path="out/x.txt")
        assert run.wait(timeout=60).outputs == {"path": str(folder / "out" / "x.txt")}
    assert (folder / "out" / "x.txt").read_text() == f"{run.run_id}:write:1"


def test_a_lease_needs_no_workflow():
    with Host() as host, host.lease({"whisper": 1}, wait=5, name="by hand") as lease:
        assert lease.run(["true"]).code == 0
        with pytest.raises(HostlerError) as caught:
            host.lease({"whisper": 1, "ffmpeg": 1})
        assert caught.value.code is Code.INVALID_CLAIMS
        host.lease({"whisper": 1}, wait=0).release()  # a part of it
        with ThreadPoolExecutor() as threads, pytest.raises(HostlerError) as caught:
            threads.submit(host.lease, {"whisper": 1}, wait=0).result()
        assert caught.value.code is Code.WAIT_TIMEOUT


def test_a_run_that_a_living_host_owns_is_not_to_be_had():
    with Host() as one, Host() as other:
        run = one.submit(long)
        until(lambda: sleepers(run.run_id))
        with pytest.raises(HostlerError) as caught:
            other._adopt(run.run_id, {}, {}).wait(60)
        assert caught.value.code is Code.CONFLICT


def test_many_runs_share_a_host():
    with Host() as host:
        runs = [host.submit(chain, length=5) for _ in range(12)]
        assert all(run.wait(timeout=60).status is RunStatus.COMPLETED for run in runs)


def test_time_and_memory_per_node_do_not_grow_with_size():
    """R15: counted, not timed: commits and events a node are the same at 50 and at 400 nodes."""

    def cost(length: int) -> tuple[int, int]:
        with Host() as host:
            run = host.submit(chain, length=length)
            run.wait(timeout=60)
            commits = host.commits
        with reader() as store:
            return commits, sum(1 for _ in store.events(run.run_id))

    (few_commits, few_events), (many_commits, many_events) = cost(50), cost(400)
    assert many_commits - few_commits <= 350
    assert many_events - few_events == 350 * 3


def test_a_subscriber_that_raises_keeps_nothing_from_the_others_and_hears_no_more():
    """Field case 84: one that is broken never stops the delivery to the rest."""
    heard: dict[str, list[Any]] = {"before": [], "broken": [], "after": []}

    def breaks(report: Any) -> None:
        heard["broken"].append(report)
        raise RuntimeError("a broken subscriber")

    with Host() as host:
        run = host.submit(long)
        until(lambda: sleepers(run.run_id))
        run.subscribe(heard["before"].append)
        run._listeners.append(breaks)
        run.subscribe(heard["after"].append)
        known = len(heard["before"])
        run.cancel()
        assert run.wait(timeout=60).status is RunStatus.CANCELLED
        until(lambda: any(hasattr(report, "drained") for report in heard["after"]))
    assert heard["after"] == heard["before"]
    assert len(heard["after"]) > known + 1
    assert heard["broken"] == heard["after"][known : known + 1]


def test_who_subscribes_to_a_run_that_has_left_already_hears_that_last():
    """The service waited for ever for a run that had left before it began to listen."""
    heard: list[Any] = []
    with Host() as host:
        run = host.submit(chain, length=1)
        assert run.wait(timeout=60).final
        until(lambda: run.left)
        run.subscribe(heard.append)
    assert isinstance(heard[-1], RunLeft)
    assert sum(isinstance(report, RunLeft) for report in heard) == 1


def test_a_closed_host_says_so():
    with Host() as host:
        pass
    with pytest.raises(HostlerError, match="closed") as caught:
        host.submit(chain, length=1)
    assert caught.value.code is Code.CONFLICT


def test_closing_a_host_aborts_the_waits_for_leases_and_it_gives_out_no_more():
    with Coordinator(Config.load().machine_folder) as elsewhere, ThreadPoolExecutor() as threads:
        holder = elsewhere.lease({"whisper": 1})
        with Host() as host:
            waits = threads.submit(host.lease, {"whisper": 1})
            until(lambda: [row for row in snapshot(Config.load().machine_folder).tickets if row.state == "waiting"])
        with pytest.raises(HostlerError) as caught:
            waits.result(60)
        assert caught.value.code is Code.WAIT_ABORTED
        holder.release()
        with pytest.raises(HostlerError, match="this host is closed") as caught:
            host.lease({"whisper": 1}, wait=0)
        assert caught.value.code is Code.CONFLICT


def test_a_host_of_another_process_says_so():
    with Host() as host:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                host.submit(chain, length=1)
            except HostlerError as error:
                os.write(writing, error.what.encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        assert b"forked" in os.read(reading, 1000)
        os.close(reading)


def test_a_run_store_that_breaks_ends_the_wait_with_its_error(monkeypatch):
    def breaks(*_arguments, **_options):
        raise HostlerError(Code.UNAVAILABLE, "no descriptors left", "raise the limit")

    monkeypatch.setattr("actors.run_store.RunStore.setup", breaks)
    with Host() as host, pytest.raises(HostlerError, match="no descriptors left"):
        host.submit(chain, length=1)


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


def test_a_home_that_others_can_read_is_refused(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    with pytest.raises(HostlerError) as caught:
        Host()
    assert caught.value.code is Code.UNSAFE_STATE


@operation("test.asks", version=1, policy=Policy(effect="local-read", claims={"cpu": 2}))
def asks(ctx, input: Number) -> Number:
    with machine().lease({"cpu": 1}, wait=5) as part:
        assert part.claims == {"cpu": 1}
    try:
        machine().lease({"whisper": 1}, wait=5)
    except HostlerError as error:
        return Number(n=1 if error.code is Code.INVALID_CLAIMS else 2)
    return Number(n=3)


def machine() -> Coordinator:
    return Coordinator(Config.load().machine_folder)


@workflow("asking", version=1)
def asking(build):
    return {"n": build.call(asks, key="ask", input={})["n"]}


def test_what_an_operation_asks_of_the_machine_is_a_part_of_what_its_node_holds(tmp_path):
    (tmp_path / "config.toml").write_text("[machine.capacity]\ncpu = 2\n")
    with Host() as host:
        assert host.submit(asking).wait(timeout=60).outputs == {"n": 1}
