"""Bounds and faults of a node's own work: time, size, kinds of values, what it raises, what it leaves."""

import math
import os
import threading
import time
from typing import Any

import psutil
import pytest
from pydantic import BaseModel

from actors.scheduling import stopping
from hostler import Host, Policy, operation, workflow
from hostler.config import Config
from store.contracts import NodeRecord
from store.home import Home
from store.lifecycle import RunStatus, Status
from store.policy import FailureCode
from store.reader import Reader
from tests.support import until


class Given(BaseModel):
    model_config = {"extra": "allow"}


class Value(BaseModel):
    value: float = 0.0
    text: str = ""


def run_one(function, *, timeout=60, given=None, during=None, gives=Value, **policy) -> tuple[NodeRecord, RunStatus]:
    """Run one operation made of *function* and return its record."""

    def body(ctx, input: Given) -> Value:
        return function(ctx)

    body.__annotations__ = {"input": Given, "return": gives}
    work = operation("test.one", version=1, policy=Policy(**{"effect": "local-derived-write", **policy}))(body)

    @workflow("one", version=1)
    def one(build):
        build.call(work, key="one", input=given or {})
        return {}

    with Host() as host:
        run = host.submit(one)
        if during is not None:
            during(run)
        status = run.wait(timeout=timeout).status
    with Reader.open(Home.open(Config.load().home, create=False)) as reader:
        (record,) = reader.nodes(run.run_id)
        return record, status


def test_a_node_out_of_time_is_ended_with_its_processes():
    def sleeps(ctx):
        ctx.run(["sleep", "60"])

    record, status = run_one(sleeps, max_seconds=0.2)
    assert (record.failure.code, status) == (FailureCode.TIMEOUT, RunStatus.FAILED)


def test_a_callback_that_ignores_its_deadline_is_given_up_on_and_publishes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(stopping, "OVERDUE_AFTER_S", 0.2)
    go, tried = threading.Event(), threading.Event()

    def stubborn(ctx):
        go.wait(60)
        (ctx.workspace / "x").write_text("late")
        try:
            ctx.publish("x", tmp_path / "late.txt")
        finally:
            tried.set()

    record, _ = run_one(stubborn, max_seconds=0.2)
    assert record.failure.code is FailureCode.TIMEOUT
    go.set()
    assert tried.wait(60)
    assert not (tmp_path / "late.txt").exists()


def test_what_a_listener_raises_fails_the_node_once_its_program_has_ended(tmp_path):
    """It was logged nowhere, and the node completed with what had been heard until then."""

    def listening(ctx):
        def hear(chunk):
            raise LookupError("no such line")

        ctx.run(["sh", "-c", f"echo one; touch {tmp_path}/ended"], on_stdout=hear)

    record, _ = run_one(listening)
    assert record.status is Status.FAILED
    assert "LookupError: no such line" in record.failure.message
    assert (tmp_path / "ended").exists()


def test_a_value_that_is_no_json_is_refused_with_its_path():
    """Field case 67."""
    record, _ = run_one(lambda ctx: Value(value=-math.inf))
    assert record.failure.code is FailureCode.INVALID_DATA
    assert "value" in record.failure.message


def test_a_result_over_its_limit_fails_its_node_and_says_to_use_a_file():
    """Field case 66."""
    record, _ = run_one(lambda ctx: Value(text="x" * 2000), max_output_bytes=1000)
    assert record.failure.code is FailureCode.INVALID_DATA
    assert "too large" in record.failure.message
    assert "file" in record.failure.todo


@pytest.mark.parametrize("levels", [300, 2000])
def test_a_result_that_is_nested_too_deeply_fails_its_node_and_says_so(levels):
    """Field case 66."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    record, status = run_one(lambda ctx: Loose(value=value), gives=Loose)
    assert (record.failure.code, status) == (FailureCode.INVALID_DATA, RunStatus.FAILED)
    assert "nested too deeply" in record.failure.message
    assert "file" in record.failure.todo


def test_a_result_that_has_no_json_form_is_not_called_too_deep():
    """pydantic says both with kinds of ValueError."""
    record, status = run_one(lambda ctx: Loose(value=object()), gives=Loose)
    assert status is RunStatus.FAILED
    assert "deeply" not in record.failure.message
    assert "object" in record.failure.message


def test_words_that_are_too_long_for_the_system_are_told_with_another_way():
    """Field case 66: 140 kB in one argument, which no Linux takes (execve(2), MAX_ARG_STRLEN)."""

    def says_much(ctx):
        ctx.run(["true", "x" * 140_000])

    record, status = run_one(says_much)
    assert status is RunStatus.FAILED
    assert "argument list too long" in record.failure.message
    assert "file" in record.failure.todo


def test_an_error_text_of_50_mb_is_cut_and_ends_the_run():
    """Field case 66."""

    def raises(ctx):
        raise ValueError("x" * 50_000_000)

    record, status = run_one(raises)
    assert record.failure.code is FailureCode.INTERNAL
    assert len(record.failure.message) < 5000
    assert status is RunStatus.FAILED


def test_an_exception_is_told_with_its_place_and_its_traceback_is_kept():
    def raises(ctx):
        return Value(value=1 / 0)

    record, _ = run_one(raises)
    assert "ZeroDivisionError: division by zero (test_host_limits.py:" in record.failure.message
    (log,) = Config.load().home.glob("logs/*/one/1.error")
    assert "return Value(value=1 / 0)" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_device_is_never_replaced_by_a_published_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    def publishes(ctx):
        (ctx.workspace / "x").write_text("x")
        ctx.publish("x", tmp_path / "pipe")
        return Value()

    record, _ = run_one(publishes)
    assert record.failure.code is FailureCode.CONFLICT
    assert (tmp_path / "pipe").is_fifo()


class Loose(BaseModel):
    value: Any = None


@pytest.mark.parametrize("hidden", [math.nan, [1, {"a": math.inf}], {"a": (0.5, -math.inf)}])
def test_a_number_that_is_none_is_refused_however_deep_it_hides(hidden):
    """Field case 67."""
    record, _ = run_one(lambda ctx: Loose(value=hidden), gives=Loose)
    assert record.failure.code is FailureCode.INVALID_DATA
    assert "$.value" in record.failure.message


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


@pytest.mark.parametrize("error", [Unprintable(), KeyboardInterrupt(), MemoryError(), SystemExit(3)])
def test_whatever_an_operation_raises_ends_its_node_and_says_its_kind(error):
    def raises(ctx):
        raise error

    record, status = run_one(raises)
    assert (record.failure.code, status) == (FailureCode.INTERNAL, RunStatus.FAILED)
    assert type(error).__name__ in record.failure.message


def test_an_error_text_that_is_no_unicode_ends_its_node_and_not_the_run():
    def raises(ctx):
        raise ValueError("no such take: caf\udce9.mp4")

    record, status = run_one(raises)
    assert "caf?.mp4" in record.failure.message
    assert status is RunStatus.FAILED


def test_a_program_that_is_missing_is_named():
    def missing(ctx):
        ctx.run(["no-such-program-here"])

    record, _ = run_one(missing)
    assert record.failure.code is FailureCode.UNAVAILABLE
    assert "no-such-program-here" in record.failure.message


def test_a_failing_program_is_told_by_its_code_and_its_last_words():
    def fails(ctx):
        ctx.run(["sh", "-c", "echo first >&2; echo 'caf\\351 is wrong' >&2; exit 3"])

    record, _ = run_one(fails)
    assert record.failure.code is FailureCode.SUBPROCESS
    assert "exit code 3" in record.failure.message
    assert "is wrong" in record.failure.message


def test_a_program_killed_from_outside_is_retryable_and_said_so():
    """Field case 17."""

    def killed(ctx):
        ctx.run(["sh", "-c", "kill -9 $$"])

    record, _ = run_one(killed)
    assert record.failure.retryable
    assert "signal 9" in record.failure.message


def test_what_a_program_leaves_in_the_background_is_ended_with_it_and_its_lease_is_free():
    left = {}

    def leaves(ctx):
        done = ctx.run(["sh", "-c", "sleep 60 & echo $!; setsid sh -c 'echo $$; exec sleep 60' & sleep 0.2"])
        left["pids"] = [int(word) for word in done.stdout.split()]
        return Value()

    record, status = run_one(leaves, claims={"cpu": 1})
    assert status is RunStatus.COMPLETED, record.failure
    assert len(left["pids"]) == 2
    assert not [pid for pid in left["pids"] if runs(pid)]


def runs(pid: int) -> bool:
    """Say whether a process still runs; one that only waits for its new parent to reap it does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_an_exit_code_can_be_looked_at_instead():
    def looks(ctx):
        done = ctx.run(["sh", "-c", "echo out; echo err >&2; exit 7"], check=False)
        return Value(text=f"{done.code} {done.stdout!r} {done.stderr!r}")

    record, status = run_one(looks)
    assert status is RunStatus.COMPLETED
    assert record.failure is None


def test_processes_of_a_node_know_their_run_node_and_share_of_the_machine():
    seen = {}

    def asks(ctx):
        done = ctx.run(
            ["sh", "-c", 'echo "$HOSTLER_RUN $HOSTLER_NODE $HOSTLER_CPUS $OMP_NUM_THREADS"; test -n "$HOSTLER_LEASE"']
        )
        seen["text"] = done.stdout.decode()
        return Value()

    run_one(asks, claims={"cpu": 1})
    run_id, node, cpus, threads = seen["text"].split()
    assert run_id.startswith("run_")
    assert (node, cpus, threads) == ("one", "1", "1")


def test_what_an_interrupted_attempt_left_is_gone_before_the_next_one():
    starts = []

    def leaves(ctx):
        starts.append(sorted(path.name for path in ctx.workspace.iterdir()))
        (ctx.workspace / "half.mp4").write_text("half")
        if len(starts) == 1:
            ctx.run(["sleep", "60"])
        return Value()

    def body(ctx, input: Given) -> Value:
        return leaves(ctx)

    body.__annotations__ = {"input": Given, "return": Value}
    work = operation("test.leaves", version=1, policy=Policy(effect="local-derived-write"))(body)

    @workflow("leaves", version=1)
    def flow(build):
        build.call(work, key="one", input={})
        return {}

    with Host() as host:
        run = host.submit(flow)
        until(lambda: starts)
    with Host() as host:
        assert host._adopt(run.run_id, {("test.leaves", 1): work}, {}).wait(60).status is RunStatus.COMPLETED
    assert starts == [[], []]


def test_progress_reaches_subscribers_clamped_and_never_going_back():
    """Field case 24."""
    reports = []

    def works(ctx):
        for fraction in (-1.0, 0.25, math.nan, 0.1, 7.0):
            ctx.progress(fraction, "encoding")
            time.sleep(0.21)  # the rate of the view is part of what is tested
        return Value()

    def listen(run):
        run.subscribe(lambda report: reports.append(report.fraction) if hasattr(report, "fraction") else None)

    run_one(works, during=listen)
    known = [fraction for fraction in reports if fraction is not None]
    assert known == sorted(known)
    assert set(known) <= {0.0, 0.25, 1.0}


def test_a_node_that_cannot_be_cancelled_finishes():
    started, go = threading.Event(), threading.Event()

    def works(ctx):
        started.set()
        assert go.wait(60)
        return Value()

    def cancel(run):
        assert started.wait(60)
        run.cancel()
        go.set()

    record, status = run_one(works, cancellable=False, during=cancel)
    assert record.status is Status.COMPLETED
    assert status is RunStatus.COMPLETED


@pytest.mark.parametrize("how", ["swallows", "checks"])
def test_cancelled_python_work_stops_where_it_looks(how):
    started = threading.Event()

    def works(ctx):
        started.set()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if how == "checks":
                ctx.check_cancelled()
            else:
                try:
                    ctx.run(["sleep", "5"])
                except Exception:
                    return Value(text="swallowed")
        return Value()

    def cancel(run):
        assert started.wait(60)
        run.cancel()

    record, status = run_one(works, during=cancel)
    assert (record.status, status) == (Status.CANCELLED, RunStatus.CANCELLED)
