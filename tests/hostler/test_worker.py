"""Workflows whose functions run in worker processes: each way to end has its own outcome, and the host goes on."""

import dataclasses
import os
import signal
import sqlite3
import sys
import textwrap
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from actors.assignment import Assignment
from actors.context import Context
from actors.control import Control
from actors.outcomes import Failed
from actors.worker import perform_in_worker
from hostler import Host, HostlerError, Policy, load, operation
from hostler.compiler import Compiled, compile_workflow
from hostler.config import Config
from hostler.views.asking import rulings
from hostler.views.plan import plan_json, plan_text
from hostler.views.show import show_json, show_text
from hostler.worker_code import RunEntries
from hostres.leftovers import find_leftovers
from hostres.procfs import read_process
from store.contracts import NodeRecord
from store.home import Home
from store.lifecycle import RunStatus, Status
from store.plans import NodePlan
from store.policy import FailureCode
from store.reader import Reader
from store.rules import DEFAULT_RULES
from tests.hostler.test_host import Number
from tests.support import until

WAIT_S = 120.0
"""A bound, never a verdict: a busy machine takes seconds to start a process."""

HEAD = """
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hostler import Build, Context, FailureCode, OperationFailed, Policy, compute, operation, workflow

WRITES = Policy(effect="local-derived-write", isolation="process", max_seconds=60)
"""


def compiled(folder: Path, code: str, **inputs: Any) -> Compiled:
    (folder / "flow.py").write_text(HEAD + textwrap.dedent(code), encoding="utf-8")
    return compile_workflow(load("flow.py", folder=folder), inputs, folder=folder)


def home() -> Home:
    return Home.open(Config.load().home, create=False)


def records(run_id: str) -> Mapping[str, NodeRecord]:
    with Reader.open(home()) as reader:
        return {node.key: node for node in reader.nodes(run_id)}


def log_of(run_id: str, node: str, stream: str = "stdout") -> str:
    return home().logs_of(run_id, node, 1)[stream].read_text()


def is_gone(pid: int) -> bool:
    process = read_process(pid)
    return process is None or process.gone


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
    functions = [raises, unfit, leaves, drops_out, killed, large, odd, deep, no_number, hungry, talks, forks]
    functions += [bare, models, no_number_in_a_model]
    made = {each.name: build.call(each, key=each.name, input=1) for each in functions}
    return {name: made[name] for name in ("talks", "forks", "bare", "models")}
"""

WAYS = {
    "raises": (Status.FAILED, FailureCode.INVALID_DATA, "KeyError: 1 (flow.py:"),
    "unfit": (Status.FAILED, FailureCode.INVALID_DATA, "Text.v is not text (flow.py:"),
    "leaves": (Status.AMBIGUOUS_CODE, FailureCode.INTERNAL, "SystemExit: 3"),
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


OPERATIONS = """
class Given(BaseModel):
    n: int = 0

@operation("test.all", policy=Policy(effect="local-derived-write", isolation="process", claims={"cpu": 1}))
def everything(ctx: Context, input: Given) -> Given:
    print("printed")
    ctx.progress(0.25, "a quarter")
    ctx.progress(1.0, "all")
    assert not ctx.cancelled
    ctx.check_cancelled()
    assert ctx.idempotency_key == f"{ctx.run_id}:all:1" == f"{ctx.run_id}:{ctx.node}:{ctx.attempt}"
    assert list(ctx.workspace.iterdir()) == []
    ran = ctx.run(["sh", "-c", "echo ran; echo $HOSTLER_LEASE; cat"], stdin=b"fed")
    assert ran.stdout.split() == [b"ran", ctx.lease.environment["HOSTLER_LEASE"].encode(), b"fed"]
    ctx.lease.assert_owned()
    assert dict(ctx.lease.claims) == {"cpu": 1}
    assert ctx.lease.run([sys.executable, "-c", "import os; os.fstat(%d)" % ctx.lease.fd]).code == 0
    (ctx.workspace / "made").write_text(str(os.getpid()))
    assert ctx.publish("made", "out/made.txt") == ctx.folder / "out/made.txt"
    return Given(n=input.n + 1)

@operation("test.fails", policy=WRITES)
def fails(ctx: Context, input: Given) -> Given:
    raise OperationFailed(FailureCode.PROVIDER_TRANSIENT, "busy", "wait", retryable=True, after_s=7)

@operation("test.crashes", policy=WRITES)
def crashes(ctx: Context, input: Given) -> Given:
    os.kill(os.getpid(), signal.SIGSEGV)

@operation("test.paid", policy=Policy(effect="project-mutation", resume="ambiguous-after-dispatch", isolation="process"))
def paid(ctx: Context, input: Given) -> Given:
    os.kill(os.getpid(), signal.SIGKILL)

@operation("test.program", policy=WRITES)
def program(ctx: Context, input: Given) -> Given:
    ctx.run(["sh", "-c", "echo no such film >&2; exit 4"])

@operation("test.shape", policy=WRITES)
def shape(ctx: Context, input: Given) -> Given:
    return {"n": "many"}

@workflow("operations")
def flow(build: Build):
    for each in (fails, crashes, program, shape):
        build.call(each, key=each.kind.partition(".")[2], input={})
    return build.call(everything, key="all", input={"n": 1})
"""


def test_an_operation_in_a_process_of_its_own_has_the_context_of_any_other(tmp_path):
    """All of it: place, programs, lease, progress, publication; and failures keep their words."""
    heard = []
    with Host() as host:
        run = host.start(compiled(tmp_path, OPERATIONS))
        run.subscribe(heard.append)
        outcome = run.wait(WAIT_S)
        found = records(run.run_id)
        assert found["all"].status is Status.COMPLETED, found["all"]
        assert outcome.status is RunStatus.PARTIAL
        assert int((tmp_path / "out/made.txt").read_text()) != os.getpid()
        assert log_of(run.run_id, "all") == "printed\n"
        assert log_of(run.run_id, "all", "stdout.2").startswith("ran\n")
        assert found["all"].gate_passed
        assert ("all", 1.0, "all") in [(each.node, each.fraction, each.text) for each in heard if hasattr(each, "text")]
        failures = {key: node.failure for key, node in found.items() if node.failure is not None}
        assert failures["fails"].model_dump() == {
            "code": "provider-transient",
            "message": "busy",
            "todo": "wait",
            "retryable": True,
        }
        assert failures["crashes"].message.startswith("its worker process crashed with SIGSEGV")
        assert "Fatal Python error: Segmentation fault" in log_of(run.run_id, "crashes", "stderr")
        assert failures["program"].code is FailureCode.SUBPROCESS
        assert failures["program"].message == "sh ended with exit code 4: no such film"
        assert failures["shape"].code is FailureCode.INVALID_DATA


def test_a_worker_of_a_paid_call_that_is_killed_leaves_it_ambiguous(tmp_path):
    """Field case 87: nobody knows what the provider has seen; it is not called again."""
    code = (
        OPERATIONS.partition("@workflow")[0]
        + "@workflow('w')\ndef flow(build):\n    build.call(paid, key='paid', input={})\n"
    )
    made = compiled(tmp_path, code)
    with Host() as host:
        run = host.start(made)
        assert run.wait(WAIT_S).status is RunStatus.AMBIGUOUS
        assert records(run.run_id)["paid"].status is Status.AMBIGUOUS
        assert records(run.run_id)["paid"].attempt == 1


STOPPED = """
class Given(BaseModel):
    n: int = 0

@operation("test.busy", policy=WRITES)
def busy(ctx: Context, input: Given) -> Given:
    try:
        ctx.path("there").write_text(str(os.getpid()))
        while True:
            pass
    finally:
        ctx.path("tidied").write_text(f"{ctx.cancelled}")

@operation("test.late", policy=WRITES)
def late(ctx: Context, input: Given) -> Given:
    (ctx.workspace / "x").write_text("")
    ctx.path("there").write_text(str(os.getpid()))
    try:
        while True:
            time.sleep(0.01)
    except BaseException:
        pass
    ctx.publish("x", "published")

@workflow("stopped")
def flow(build: Build, which: str):
    build.call({"busy": busy, "late": late}[which], key="stopped", input={})
"""


@pytest.mark.parametrize("which", ["busy", "late"])
def test_a_cancel_ends_code_that_never_looks_and_what_comes_later_publishes_nothing(which, tmp_path):
    """A loop without an end in a thread could only be given up on; a process is ended, and may tidy up."""
    with Host() as host:
        run = host.start(compiled(tmp_path, STOPPED, which=which))
        until(lambda: (tmp_path / "there").exists() and (tmp_path / "there").read_text(), timeout=WAIT_S)
        run.cancel()
        assert run.wait(WAIT_S).status is RunStatus.CANCELLED
        assert is_gone(int((tmp_path / "there").read_text()))
        assert (tmp_path / "tidied").exists() is (which == "busy")
        assert not (tmp_path / "published").exists()


def test_a_deadline_ends_a_process_that_a_thread_would_have_kept(tmp_path):
    """It fails by its time, and its process is gone before it says so."""
    made = compiled(
        tmp_path,
        STOPPED.replace(
            "policy=WRITES", "policy=Policy(effect='local-derived-write', isolation='process', max_seconds=3)"
        ),
        which="busy",
    )
    with Host() as host:
        run = host.start(made)
        assert run.wait(WAIT_S).status is RunStatus.FAILED
        (node,) = records(run.run_id).values()
        assert node.failure is not None
        assert node.failure.code is FailureCode.TIMEOUT
        assert find_leftovers(run.run_id) == []


LAZY = """
@workflow("lazy")
def flow(build: Build):
    from steps_of_this_test import sum_of, where
    return [build.call(sum_of, key="sum", input=[1, 2]), build.call(where, key="where", input={})["found"]]
"""
STEPS = """
@compute
def rest(input):
    return None

class Given(BaseModel):
    n: int = 0

class Found(BaseModel):
    found: str

@operation("test.where", policy=Policy(isolation="process"))
def where(ctx: Context, input: Given) -> Found:
    print("caf\\xe9")
    return Found(found=__file__)

sum_of = compute("sum")(sum_up)
"""


def test_what_the_workflow_imports_only_when_it_is_called_is_found_too(tmp_path, monkeypatch):
    """It is in the bundle, and was there when the plan was made; and a locale without letters breaks no print."""
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    (tmp_path / "steps_of_this_test.py").write_text(HEAD + "from sums_of_this_test import sum_up\n" + STEPS)
    (tmp_path / "sums_of_this_test.py").write_text("def sum_up(input):\n    return sum(input)\n")
    with Host() as host:
        run = host.start(compiled(tmp_path, LAZY))
        outcome = run.wait(WAIT_S)
        assert outcome.outputs == [3, str(tmp_path / "steps_of_this_test.py")], records(run.run_id)
        assert log_of(run.run_id, "where") == "café\n"


PACKAGE = """
class Given(BaseModel):
    n: int = 0

@operation("test.where", policy=Policy(isolation="process"))
def where(ctx: Context, input: Given) -> dict_of:
    return dict_of(found=[__name__, __file__])

@compute
def trusted(input):
    return [__name__.partition(".")[2], __file__]

@workflow("packaged")
def flow(build: Build):
    return [build.call(where, key="where", input={})["found"], build.call(trusted, key="trusted", input=None)]
""".replace("@operation", "class dict_of(BaseModel):\n    found: list[str]\n\n@operation", 1)


@pytest.mark.parametrize("installed", [True, False])
def test_code_of_a_package_is_found_whether_it_is_installed_or_lies_in_the_folder(installed, tmp_path, monkeypatch):
    """`package.module:name` has its own names, its own place, and no file of its own folder in the way."""
    package = f"parcel_{'installed' if installed else 'lying'}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / package / "flows.py").write_text(HEAD + PACKAGE)
    if installed:
        monkeypatch.syspath_prepend(str(tmp_path))
    made = compile_workflow(load(f"{package}.flows:flow", folder=tmp_path), {}, folder=tmp_path)
    with Host() as host:
        outcome = host.start(made).wait(WAIT_S)
    assert outcome.status is RunStatus.COMPLETED
    file = str(tmp_path / package / "flows.py")
    (name, where), trusted = cast("Any", outcome.outputs)
    assert where == file
    assert name == f"{package}.flows" if installed else name.endswith(f".{package}.flows")
    assert trusted == [f"{package}.flows", file]


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


def test_a_drained_host_hands_an_interrupted_process_over_and_another_begins_it_anew(tmp_path):
    """Deterministic work is not lost, only done again; the tidying of the first attempt has been."""
    made = compiled(tmp_path, STOPPED, which="busy")
    with Host() as host:
        run = host.start(made)
        until(lambda: (tmp_path / "there").exists() and (tmp_path / "there").read_text(), timeout=WAIT_S)
    assert (tmp_path / "tidied").read_text() == "True"
    (node,) = records(run.run_id).values()
    assert node.status is Status.READY
    first = int((tmp_path / "there").read_text())
    assert is_gone(first)
    with Host() as host:
        again = host.resume(run.run_id)
        until(lambda: (tmp_path / "there").read_text() not in {"", str(first)}, timeout=WAIT_S)
        again.cancel()
        assert again.wait(WAIT_S).status is RunStatus.CANCELLED


def test_plan_and_show_say_what_has_a_process_of_its_own(tmp_path):
    """A person sees it before and after."""
    made = compiled(tmp_path, STOPPED, which="busy")
    said = rulings(made.plan, rules=DEFAULT_RULES, principal="human:ada", folder="/")
    assert "test.busy@1, own process" in plan_text(made.plan, made.plan_sha256, said, width=80)
    assert plan_json(made.plan, made.plan_sha256, said)["nodes"][0]["policy"]["isolation"] == "process"
    with Host() as host:
        run_id = host.create(made)
    with Reader.open(home()) as reader:
        view, nodes = reader.run(run_id), reader.nodes(run_id)
    assert show_json(view, made.plan, nodes)["nodes"][0]["isolation"] == "process"
    said = rulings(made.plan, rules=DEFAULT_RULES, principal="human:ada", folder="/")
    assert "test.busy@1, own process" in show_text(view, made.plan, nodes)


def test_an_operation_that_no_process_could_find_is_refused_before_anything_runs(tmp_path):
    """A closure cannot be imported."""

    @operation("test.inner", policy=Policy(isolation="process"))
    def inner(ctx, input: Number) -> Number:
        return input

    (tmp_path / "flow.py").write_text(HEAD)
    from hostler import workflow  # noqa: PLC0415

    @workflow("inner")
    def flow(build):
        build.call(inner, key="a", input={})

    with pytest.raises(HostlerError, match="top level of its module"):
        compile_workflow(flow, {}, folder=tmp_path)


def test_sigterm_is_as_it_was() -> None:
    """Only a worker process hears it in another way."""
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
