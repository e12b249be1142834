"""Compute functions in worker processes: each way to end has its own outcome, and the host goes on."""

import dataclasses
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from actors.assignment import Assignment
from actors.context import Context
from actors.control import Control
from actors.outcomes import Failed
from actors.worker import perform_in_worker
from hostler import Host
from hostler.worker_code import RunEntries
from store.lifecycle import RunStatus, Status
from store.plans import NodePlan
from store.policy import FailureCode
from store.reader import Reader
from tests.hostler.worker_support import WAIT_S, compiled, home, is_gone, log_of, records
from tests.support import until

COMPUTES = """
@compute("raises")
def raises(input):
    return {}[input]

class Text(BaseModel):
    v: str

@compute("unfit")
def unfit(input):
    return Text(v=input)

@compute("bare")
def bare(input):
    return Text(v="x")

@compute("models")
def models(input) -> list[Text]:
    return [Text(v="x"), {"of": {"a": Text(v="y")}}]

class Odd(BaseModel):
    v: Any

@compute("no-number-in-a-model")
def no_number_in_a_model(input):
    return {"a": [Odd(v=float("nan"))]}

@compute("leaves")
def leaves(input):
    sys.exit(3)

@compute("gives-up")
def gives_up(input):
    from hostler import OperationAborted
    raise OperationAborted("enough")

@compute("drops-out")
def drops_out(input):
    print("last words")
    os._exit(3)

@compute("killed")
def killed(input):
    os.kill(os.getpid(), signal.SIGKILL)

@compute("large")
def large(input):
    return "x" * (2 << 20)

@compute("odd")
def odd(input):
    return {"a": object()}

@compute("no-number")
def no_number(input):
    return [float("nan")]

@compute("deep")
def deep(input):
    found = []
    for _ in range(220):
        found = [found]
    return found

@compute("hungry")
def hungry(input):
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    return len(bytearray(4 << 30))

@compute("talks")
def talks(input):
    print("to the log")
    os.write(1, b'{"kind":"gave"}')
    os.write(2, b"an aside")
    return input

@compute("forks")
def forks(input):
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    return [child, os.getpid(), os.environ["HOSTLER_NODE"], len(os.sched_getaffinity(0))]

@workflow("computes")
def computes(build: Build):
    functions = [raises, unfit, leaves, gives_up, drops_out, killed, large, odd, deep, no_number, hungry, talks, forks]
    functions += [bare, models, no_number_in_a_model]
    made = {each.name: build.call(each, key=each.name, input=1) for each in functions}
    return {name: made[name] for name in ("talks", "forks", "bare", "models")}
"""

WAYS = {
    "raises": (Status.FAILED, FailureCode.INVALID_DATA, "KeyError: 1 (flow.py:"),
    "unfit": (Status.FAILED, FailureCode.INVALID_DATA, "Text.v is not text (flow.py:"),
    "leaves": (Status.AMBIGUOUS_CODE, FailureCode.INTERNAL, "SystemExit: 3"),
    "gives-up": (Status.AMBIGUOUS_CODE, FailureCode.INTERNAL, "OperationAborted: enough"),
    "drops-out": (Status.AMBIGUOUS_CODE, FailureCode.SUBPROCESS, "exit code 3 before it gave a result"),
    "killed": (Status.AMBIGUOUS_CODE, FailureCode.SUBPROCESS, "killed from outside by signal 9"),
    "large": (Status.FAILED, FailureCode.INVALID_DATA, "result too large: 2097154 bytes, limit 2097152"),
    "odd": (Status.FAILED, FailureCode.INVALID_DATA, "$.a: "),
    "deep": (Status.FAILED, FailureCode.INVALID_DATA, "nested"),
    "no-number": (Status.FAILED, FailureCode.INVALID_DATA, "$[0]: "),
    "no-number-in-a-model": (Status.FAILED, FailureCode.INVALID_DATA, "$.a[0].v: nan is no JSON number"),
    "hungry": (Status.FAILED, FailureCode.INVALID_DATA, "MemoryError"),
}


def test_each_way_in_which_trusted_code_ends_has_its_own_outcome(tmp_path, monkeypatch):
    """The table of lifecycle: only what surely did not happen fails, the rest waits for a person."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with Host() as host:
        run = host.start(compiled(tmp_path, COMPUTES))
        outcome = run.wait(WAIT_S)
        assert outcome.status is RunStatus.AMBIGUOUS_CODE
        found = records(run.run_id)
        for key, (status, code, said) in WAYS.items():
            node = found[key]
            assert node.status is status, (key, node)
            assert node.failure is not None
            assert node.failure.code is code, (key, node)
            assert said in node.failure.message, (key, node)
        assert "Traceback" in log_of(run.run_id, "raises", "error")
        assert "return {}[input]" in log_of(run.run_id, "raises", "error")
        assert log_of(run.run_id, "drops-out") == "last words\n"
        assert log_of(run.run_id, "talks") == 'to the log\n{"kind":"gave"}'
        assert log_of(run.run_id, "talks", "stderr") == "an aside"
        assert found["talks"].status is Status.COMPLETED
        with Reader.open(home()) as reader:
            child, worker, node, cpus = cast("Any", reader.output(run.run_id, "forks"))
            assert reader.output(run.run_id, "bare") == {"v": "x"}
            assert reader.output(run.run_id, "models") == [{"v": "x"}, {"of": {"a": {"v": "y"}}}]
        assert is_gone(child)
        assert worker != os.getpid()
        assert (node, cpus) == ("forks", 1)


HANGS = """
@compute("hangs")
def hangs(input):
    Path("there").write_text("")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)

@workflow("hangs")
def flow(build: Build):
    build.call(hangs, key="hangs", input=None)
"""


def test_trusted_code_that_is_cancelled_after_its_call_is_ambiguous(tmp_path, monkeypatch):
    """R9: it may have done anything; only before the call is it cancelled."""
    monkeypatch.setattr("actors.scheduling.stopping.GRACE_S", 0.2)
    with Host() as host:
        run = host.start(compiled(tmp_path, HANGS))
        until((tmp_path / "there").exists, timeout=WAIT_S)
        run.cancel()
        assert run.wait(WAIT_S).status is RunStatus.AMBIGUOUS_CODE
        (node,) = records(run.run_id).values()
        assert node.status is Status.AMBIGUOUS_CODE
        assert node.failure is not None
        assert node.failure.code is FailureCode.CANCELLED


STORED = """
import helper_of_this_test

@compute("which")
def which(input):
    return [helper_of_this_test.WHICH, __file__]

@compute("raises")
def raises(input):
    raise ValueError("as it was stored")

@workflow("stored")
def flow(build: Build):
    build.call(raises, key="raises", input=None)
    return build.call(which, key="which", input=None)
"""


def test_trusted_code_comes_from_the_stored_bytes_whatever_lies_there_by_now(tmp_path):
    """The files may be edited or gone; tracebacks show the stored lines too."""
    (tmp_path / "helper_of_this_test.py").write_text("WHICH = 'stored'\n")
    made = compiled(tmp_path, STORED)
    (tmp_path / "flow.py").write_text("raise SystemExit('edited')\n")
    (tmp_path / "helper_of_this_test.py").unlink()
    with Host() as host:
        run = host.start(made)
        run.wait(WAIT_S)
        with Reader.open(home()) as reader:
            which = reader.output(run.run_id, "which")
        assert which == ["stored", str(tmp_path / "flow.py")]
        assert 'raise ValueError("as it was stored")' in log_of(run.run_id, "raises", "error")


def test_code_whose_imports_are_missing_here_is_incompatible_and_was_not_called(tmp_path, monkeypatch):
    """Another environment than the one it was planned in."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "library_of_this_test.py").write_text("")
    monkeypatch.syspath_prepend(str(elsewhere))
    made = compiled(tmp_path, HANGS.replace("@compute", "import library_of_this_test\n@compute", 1))
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(elsewhere)])
    with Host() as host:
        run = host.start(made)
        assert run.wait(WAIT_S).status is RunStatus.FAILED
        (node,) = records(run.run_id).values()
        assert node.failure is not None
        assert node.failure.code is FailureCode.INCOMPATIBLE
        assert "library_of_this_test" in node.failure.message


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM bundles", "UPDATE bundles SET content = CAST(X'00' || substr(content, 2) AS BLOB)"],
    ids=["missing", "damaged"],
)
def test_a_stored_bundle_that_is_not_what_was_stored_is_never_called(statement, tmp_path):
    """S4: named, never used; also if it is damaged after the run was claimed."""
    made = compiled(tmp_path, HANGS)

    def read_late(sha256: str) -> bytes:
        with closing(sqlite3.connect(home().database)) as store, store:
            store.execute("PRAGMA foreign_keys = OFF")
            store.execute(statement)
        with Reader.open(home()) as reader:
            return reader.bundle(sha256)

    entries = RunEntries(source=made.source, bundle_sha256=made.plan.bundle_sha256, read_bundle=read_late)
    with Host() as host:
        run_id = host.create(made)
        assert host._adopt(run_id, {}, made.computes, entries).wait(WAIT_S).status is RunStatus.FAILED
        (node,) = records(run_id).values()
        assert node.failure is not None
        assert node.failure.code is FailureCode.INVALID_DATA
        assert not (tmp_path / "there").exists()


class Nowhere:
    """A host that gives logs and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def next_logs(self) -> tuple[Path, Path]:
        return self.folder / "out", self.folder / "err"


def test_the_worker_checks_the_digest_itself(tmp_path):
    """What is called is what was checked, not what somebody else says that they checked."""
    made = compiled(tmp_path, HANGS)
    other = compiled(tmp_path, HANGS + "\n# another\n")
    entries = RunEntries(
        source=made.source, bundle_sha256=made.plan.bundle_sha256, read_bundle=lambda _: made.bundle or b""
    )
    entry = dataclasses.replace(entries(made.computes["hangs"]), bundle=other.bundle)
    planned = made.plan.nodes[0]
    run_id = "run_" + "0" * 26
    plan = NodePlan(
        run_id=run_id,
        node="hangs",
        executor=planned.executor,
        input=None,
        input_sha256="0" * 64,
        dependencies={},
        policy=planned.policy,
    )
    control, host = Control(), Nowhere(tmp_path)
    assignment = Assignment(run_id=run_id, node="hangs", attempt=1, folder=tmp_path)
    context = Context(assignment, control=control, host=host, lease=None)
    outcome, _ = perform_in_worker(plan, entry, context=context, host=host, control=control)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.dispatched) == (FailureCode.INVALID_DATA, False)
    assert "damaged" in outcome.message
    assert not (tmp_path / "there").exists()


def test_a_folder_that_is_gone_fails_the_node_before_anything_starts(tmp_path):
    """The process would have no place to run in."""
    gone = tmp_path / "gone"
    gone.mkdir()
    made = compiled(gone, HANGS)
    for path in (gone / "flow.py", gone):
        path.unlink() if path.is_file() else path.rmdir()
    with Host() as host:
        run = host.start(made)
        assert run.wait(WAIT_S).status is RunStatus.FAILED
        (node,) = records(run.run_id).values()
        assert node.failure is not None
        assert str(gone) in node.failure.message


def test_sigterm_is_as_it_was() -> None:
    """Only a worker process hears it in another way."""
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
