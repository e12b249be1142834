"""Operations in a process of their own: the context of any other, and an end by cancel, deadline, drain or accident."""

import os

import pytest

from hostler import Host
from hostler.views.asking import rulings
from hostler.views.plan import plan_json, plan_text
from hostler.views.show import show_json, show_text
from hostres.leftovers import find_leftovers
from store.lifecycle import RunStatus, Status
from store.policy import FailureCode
from store.reader import Reader
from store.rules import DEFAULT_RULES
from tests.hostler.worker_support import WAIT_S, compiled, home, is_gone, log_of, records
from tests.support import until

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
        crashed, _, innermost = failures["crashes"].message.partition(': File "')
        assert crashed == "its worker process crashed with SIGSEGV"
        assert innermost.split(" / ")[0].endswith(" in crashes")
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
