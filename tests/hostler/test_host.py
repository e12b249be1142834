"""A host in a program: what it takes and refuses, how runs end, and what they cost in commits."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from hostler import Config, Host, Policy, Worker, load, operation, workflow
from hostler import host as hosts
from hostres.errors import Code, HostlerError
from store.lifecycle import RunStatus
from store.policy import FailureCode
from tests.hostler.host_support import Number, add, breaking, buys, chain, read, reader
from tests.support import until


@operation("test.claiming", version=1, policy=Policy(effect="local-read", claims={"cpu": 1}))
def claiming(ctx, input: Number) -> Number:
    assert ctx.lease is not None
    ctx.lease.assert_owned()
    return Number(n=input.n + 1)


class Text(BaseModel):
    path: str


@operation("test.writes", version=1, policy=Policy(effect="local-derived-write", publishes=("path",)))
def writes(ctx, input: Text) -> Text:
    (ctx.workspace / "x").write_text(ctx.idempotency_key)
    return Text(path=str(ctx.publish("x", input.path)))


@workflow("reading-chain", version=1)
def reading_chain(build, length: int):
    last: Any = None
    for index in range(length):
        last = build.call(read, key=f"n{index:04d}", input={"n": 0 if last is None else last["n"]})
    return {"n": last["n"]}


@workflow("claiming-chain", version=1)
def claiming_chain(build, length: int):
    last: Any = None
    for index in range(length):
        last = build.call(claiming, key=f"n{index:04d}", input={"n": 0 if last is None else last["n"]})
    return {"n": last["n"]}


@workflow("fan", version=1)
def fan(build, width: int):
    nodes = [build.call(add, key=f"n{index:04d}", input={"n": index}) for index in range(width)]
    return {"all": [node["n"] for node in nodes]}


@workflow("writing", version=1)
def writing(build, path: str):
    done = build.call(writes, key="write", input={"path": path})
    return {"path": done["path"]}


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


@pytest.mark.parametrize("jobs", [0, -1, "2", 1.5, True])
def test_a_number_of_jobs_that_would_do_nothing_or_break_is_refused(jobs):
    with pytest.raises(HostlerError, match=r"jobs is .*; give a whole number of at least 1"):
        Host(jobs=jobs)


def test_a_host_takes_a_home_of_its_own_and_nothing_that_is_no_configuration(tmp_path):
    with pytest.raises(HostlerError, match=r"config is 'home'; give what Config.load\(\) reads"):
        Host(config="home")
    own = Config.load({**os.environ, "HOSTLER_HOME": str(tmp_path / "own")})
    with Host(config=own) as host:
        assert host.submit(chain, length=1).wait(timeout=60).status is RunStatus.COMPLETED
    assert (tmp_path / "own" / "runs.db").exists()
    with reader() as store:
        assert not store.runs()


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


@workflow("in-a-folder")
def in_a_folder(build, folder: str, entrusted: int = 0):
    return {"given": [folder, entrusted], "n": build.call(add, key="n", input={"n": entrusted})["n"]}


def test_an_input_that_is_called_as_a_word_of_submit_is_given_in_a_mapping(tmp_path):
    """examples/batch.py has a folder; it was taken for where the run is created, and then missed."""
    with Host() as host:
        run = host.submit(in_a_folder, {"folder": "films", "entrusted": 4}, folder=tmp_path, submission_key="k")
        assert run.wait(timeout=60).outputs == {"given": ["films", 4], "n": 5}
        assert host.submit(in_a_folder, {"folder": "films"}, folder=tmp_path).wait(timeout=60).outputs["n"] == 1
        assert host.submit(chain, {"length": 1}).wait(timeout=60).outputs == {"n": 1}
        for wrong, says in (
            (lambda: host.submit(in_a_folder, folder="films"), "has an input folder, which `submit` takes"),
            (lambda: host.submit(in_a_folder, {"folder": "films"}, entrusted=True), "has an input entrusted"),
            (lambda: host.submit(chain, {"length": 1}, length=2), "input length is given twice"),
            (lambda: host.submit(chain, "length"), "inputs is 'length'; give a mapping"),
        ):
            with pytest.raises(HostlerError, match=says) as caught:
                wrong()
            assert caught.value.code is Code.INVALID_DATA


def test_a_program_whose_folder_is_gone_is_told_so(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with Host() as host:
        with pytest.raises(HostlerError, match="the current folder is gone; name another folder") as caught:
            host.submit(chain, length=1)
        assert caught.value.code is Code.UNAVAILABLE
        assert host.submit(chain, length=1, folder=tmp_path).wait(timeout=60).status is RunStatus.COMPLETED


def test_what_is_published_has_its_final_name_in_the_folder_of_the_run(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with Host() as host:
        run = host.submit(writing, folder=folder, path="out/x.txt")
        assert run.wait(timeout=60).outputs == {"path": str(folder / "out" / "x.txt")}
    assert (folder / "out" / "x.txt").read_text() == f"{run.run_id}:write:1"


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


def test_a_closed_host_says_so():
    with Host() as host:
        pass
    with pytest.raises(HostlerError, match="closed") as caught:
        host.submit(chain, length=1)
    assert caught.value.code is Code.CONFLICT


def test_a_host_of_another_process_says_so_and_can_be_left(tmp_path):
    """Leaving its `with` there waited for threads that a fork does not copy, or for locks that they held."""
    said = tmp_path / "said"

    def ask(host: Host, run: Any) -> None:
        said.write_text(run.wait().status + "\n")
        run._outcome = None  # as before it had come so far
        for what in (
            lambda: host.submit(chain, length=1),
            lambda: host.resume("another"),
            lambda: host.cancel(run.run_id),
            lambda: host.lease({"cpu": 1}),
            lambda: run.wait(timeout=0),
            lambda: run.subscribe(print),
            run.cancel,
            run.wait,
        ):
            try:
                what()
            except HostlerError as error:
                said.write_text(said.read_text() + error.what[-11:] + "\n")

    def hold(held: threading.Event, done: threading.Event) -> None:
        with run._changed, host._adopting:  # as who calls the listeners, and who takes up a run
            held.set()
            done.wait()

    with Host() as host:
        run = host.submit(buys)
        assert not run.wait(timeout=60).final
        held, done = threading.Event(), threading.Event()
        other = threading.Thread(target=hold, args=(held, done))
        other.start()
        held.wait()
        child = os.fork()
        if child == 0:
            try:
                with host:
                    ask(host, run)
            finally:
                os._exit(0)
        try:
            until(lambda: os.waitpid(child, os.WNOHANG) == (child, 0))
        finally:
            done.set()
            other.join()
        assert said.read_text() == "approval-required\n" + "forked from\n" * 8
        assert host.submit(chain, length=1).wait(timeout=60).status is RunStatus.COMPLETED


def forked_one_says(said: Path) -> str:
    """Say what comes of a host that a process opens which is forked off here and now."""
    child = os.fork()
    if child == 0:
        try:
            with Host() as host:
                said.write_text(host.submit(chain, length=1).wait(timeout=60).status)
        except HostlerError as error:
            said.write_text(f"{error.code}: {error.what}")
        finally:
            os._exit(0)
    until(lambda: os.waitpid(child, os.WNOHANG) == (child, 0))
    return said.read_text()


FORKED_AMID = "conflict: this process was forked off one that has a host open"


def test_a_process_that_was_forked_off_an_open_host_is_refused_one_and_after_its_end_is_not(tmp_path):
    """SQLite took what the other process was writing for locked here, and kept others from writing meanwhile."""
    with Host():
        assert forked_one_says(tmp_path / "said").startswith(FORKED_AMID)
    assert forked_one_says(tmp_path / "said") == "completed"


def test_a_process_that_was_forked_off_while_a_host_begins_or_is_being_closed_is_refused_one(tmp_path, monkeypatch):
    """Its store is open then; where it could not begin, it is not any more."""
    said = list[str]()

    def meanwhile(*_arguments: object, **_options: object) -> None:
        said.append(forked_one_says(tmp_path / "said"))

    def begins(*_arguments: object, **_options: object) -> None:
        meanwhile()
        raise OSError(errno.EAGAIN, "no threads left")

    with monkeypatch.context() as patched:
        patched.setattr(hosts.Supervisor, "start", begins)
        with pytest.raises(HostlerError, match="no host can be started"):
            Host()
    host = Host()
    stop = host._supervisor.stop
    monkeypatch.setattr(host._supervisor, "stop", lambda *, block: (meanwhile(), stop(block=block)))
    host.close()
    assert [one[: len(FORKED_AMID)] for one in said] == [FORKED_AMID] * 2
    assert forked_one_says(tmp_path / "said") == "completed"


def test_a_run_store_that_breaks_ends_the_wait_with_its_error(monkeypatch):
    def breaks(*_arguments, **_options):
        raise HostlerError(Code.UNAVAILABLE, "no descriptors left", "raise the limit")

    monkeypatch.setattr("actors.run_store.RunStore.setup", breaks)
    with Host() as host, pytest.raises(HostlerError, match="no descriptors left"):
        host.submit(chain, length=1)


def test_a_home_that_others_can_read_is_refused(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    with pytest.raises(HostlerError) as caught:
        Host()
    assert caught.value.code is Code.UNSAFE_STATE
