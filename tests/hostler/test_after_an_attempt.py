"""An attempt ends with its work: the host reads no longer on its behalf, and a context that was saved does nothing."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from actors.control import OperationAborted
from hostler import Build, Context, Host, OperationFailed, Policy, operation, workflow
from hostler.config import Config
from store.home import Home
from store.lifecycle import RunStatus
from store.reader import Reader
from tests.support import until


class Given(BaseModel):
    pass


class Value(BaseModel):
    value: int = 0


def operated(function: Callable[[Context], object], **policy: Any) -> Any:
    """Return a workflow of one operation that is made of *function*."""

    @operation("test.one", version=1, policy=Policy(effect="local-derived-write", **policy))
    def body(ctx: Context, input: Given) -> Value:
        function(ctx)
        return Value()

    @workflow("one", version=1)
    def one(build: Build) -> None:
        build.call(body, key="one", input={})

    return one


@workflow("endless", version=1)
def endless(build: Build) -> None:
    """Leave a file that nobody can read to its end."""
    build.command(["truncate", "-s", "2T", "f"], key="one", outputs={"f": "f"}, claims={"whisper": 1})


def reads(name: str) -> bool:
    """Say whether this process has a file of that name open."""
    for link in Path("/proc/self/fd").iterdir():
        try:
            if os.readlink(link).endswith(f"/{name}"):
                return True
        except OSError:
            continue
    return False


def test_a_cancelled_run_is_over_though_its_output_could_be_read_for_hours() -> None:
    """And what it held on the machine is free."""
    with Host() as host:
        run = host.submit(endless)
        until(lambda: reads("f"))
        run.cancel()
        assert run.wait(timeout=60).status is RunStatus.CANCELLED
        host.lease({"whisper": 1}, wait=0).release()


def test_a_host_that_closes_hands_a_run_back_though_its_output_could_be_read_for_hours() -> None:
    with Host() as host:
        run = host.submit(endless)
        until(lambda: reads("f"))
    assert not reads("f")
    with Host() as host:
        host.cancel(run.run_id)


@pytest.mark.parametrize("claims", [{}, {"whisper": 1}])
def test_a_context_that_was_saved_does_nothing_once_its_attempt_has_ended(
    claims: dict[str, int], tmp_path: Path
) -> None:
    saved: list[Context] = []

    def saves(ctx: Context) -> None:
        (ctx.workspace / "f").touch()
        saved.append(ctx)

    with Host() as host:
        assert host.submit(operated(saves, claims=claims)).wait(timeout=60).status is RunStatus.COMPLETED
        (ctx,) = saved
        for late in (
            lambda: ctx.run(["touch", tmp_path / "late"]),
            lambda: ctx.publish("f", tmp_path / "late"),
            ctx.before_publication,
            lambda: ctx.spend(tokens=1),
            lambda: ctx.evidence("late", "test"),
            ctx.beat,
            ctx.check_cancelled,
        ):
            with pytest.raises(OperationAborted, match="the attempt has ended"):
                late()
        ctx.progress(0.5, "late")  # which is never a fault
    assert ctx.brought == ()
    assert not (tmp_path / "late").exists()


def test_a_late_first_look_at_a_workspace_does_not_empty_that_of_another_attempt() -> None:
    saved: list[Context] = []
    with Host() as host:
        assert host.submit(operated(saved.append)).wait(timeout=60).status is RunStatus.COMPLETED
        with pytest.raises(OperationAborted, match="the attempt has ended"):
            _ = saved[0].workspace


def test_what_a_thread_still_runs_is_ended_with_its_attempt(tmp_path: Path) -> None:
    """Before its lease is given back, so that nobody is let in beside it."""
    told: list[BaseException] = []
    pid = tmp_path / "pid"

    def leaves(ctx: Context) -> None:
        def runs() -> None:
            try:
                ctx.run(["sh", "-c", f"echo $$ > {pid}; exec sleep 600"])
            except OperationAborted as error:
                told.append(error)

        thread = threading.Thread(target=runs, daemon=True)
        threads.append(thread)
        thread.start()
        until(lambda: pid.exists() and pid.read_text().strip() and ctx._control._trees)

    threads: list[threading.Thread] = []
    with Host() as host:
        assert host.submit(operated(leaves, claims={"whisper": 1})).wait(timeout=60).status is RunStatus.COMPLETED
        assert not Path(f"/proc/{pid.read_text().strip()}").exists()
        threads[0].join(60)
    assert [str(error) for error in told] == ["the attempt has ended"]


def test_publishing_a_folder_is_refused_before_anything_is_let_through(tmp_path: Path) -> None:
    """A run that was killed after it could not go on: a folder cannot be replaced as a file can."""

    def publishes(ctx: Context) -> None:
        (ctx.workspace / "d").mkdir()
        with pytest.raises(OperationFailed, match="/d is a folder, not a file"):
            ctx.publish("d", tmp_path / "out")

    with Host() as host:
        run = host.submit(operated(publishes))
        assert run.wait(timeout=60).status is RunStatus.COMPLETED
    assert not (tmp_path / "out").exists()
    with Reader.open(Home.open(Config.load().home, create=False)) as reader:
        (record,) = reader.nodes(run.run_id)
    assert not record.gate_passed


def test_a_link_to_a_file_is_published_as_that_file(tmp_path: Path) -> None:
    """The link itself would lead into the workspace for ever."""

    def publishes(ctx: Context) -> None:
        (ctx.workspace / "f").write_text("whole")
        (ctx.workspace / "link").symlink_to("f")
        ctx.publish("link", tmp_path / "out")

    with Host() as host:
        assert host.submit(operated(publishes)).wait(timeout=60).status is RunStatus.COMPLETED
    assert not (tmp_path / "out").is_symlink()
    assert (tmp_path / "out").read_text() == "whole"


@pytest.mark.parametrize("name", ["pipe", "f"])
def test_a_program_reads_a_file_of_its_workspace_and_no_pipe(name: str) -> None:
    """Opening a pipe waits for a writer, and nobody could end that wait."""
    read: list[bytes] = []

    def runs(ctx: Context) -> None:
        os.mkfifo(ctx.workspace / "pipe")
        (ctx.workspace / "f").write_text("whole")
        read.append(ctx.run(["cat"], stdin=Path(name)).stdout)

    with Host() as host:
        result = host.submit(operated(runs)).wait(timeout=60)
    assert (result.status, read) == ((RunStatus.FAILED, []) if name == "pipe" else (RunStatus.COMPLETED, [b"whole"]))
