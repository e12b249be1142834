"""Nodes that beat, in a real host: what is silent is ended, what beats or has grace goes on, and the view hears of it."""

import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from actors.messages import Progress
from hostler import Heartbeat, Host, Isolation, Policy, operation, workflow
from hostler.principal import principal
from hostres.leftovers import find_leftovers
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.lifecycle import RunStatus, Status
from store.policy import FailureCode
from store.reader import Reader
from store.requests import post
from tests.support import until

BEAT = '> "/dev/fd/$HOSTLER_HEARTBEAT_FD"'
HANGS = f'echo "{{}}" {BEAT}; sleep 600 & sleep 600'
MORE = f"""echo '{{"fraction": 0.75, "text": "more"}}' {BEAT}"""


class Fifo(BaseModel):
    path: str


def beats(ctx, input: Fifo) -> Fifo:
    """Beat by itself and through a program, once somebody listens."""
    ctx.run(["cat", input.path])
    ctx.beat({"fraction": 0.5, "text": "half"})
    ctx.beat()
    ctx.run(["sh", "-c", MORE])
    ctx.beat(1.0, "done")
    return input


POLICY = Policy(effect="local-read", heartbeat=Heartbeat(seconds=60))
APART = POLICY.model_copy(update={"isolation": Isolation.PROCESS})
in_thread = operation("test.beats", version=1, policy=POLICY)(beats)
in_process = operation("test.beats-apart", version=1, policy=APART)(beats)


@workflow("commands", version=1)
def commands(build, script: str, grace: float = 0.0):
    heartbeat = {"seconds": 0.1, **({"grace_seconds": grace} if grace else {})}
    build.command(["sh", "-c", script], key="a", heartbeat=heartbeat)


def test_a_silent_program_is_ended_with_all_it_has_started_and_its_node_says_that_it_stalled() -> None:
    """G14: its processes are ended."""
    with Host() as host:
        run = host.submit(commands, script=HANGS)
        outcome = run.wait(timeout=60)
        assert outcome.status is RunStatus.FAILED
        with Reader.open(Home.open(host.config.home, create=False)) as reader:
            (node,) = reader.nodes(run.run_id)
        assert node.failure is not None
        assert (node.status, node.failure.code) == (Status.FAILED, FailureCode.STALLED)
        assert find_leftovers(run.run_id) == []


def test_a_silent_program_whose_first_beat_has_grace_is_let_work_to_its_end() -> None:
    """G15: it never beats, but it runs."""
    with Host() as host:
        assert host.submit(commands, script="sleep 1", grace=0.1).wait(timeout=60).status is RunStatus.COMPLETED


@pytest.mark.parametrize("code", [in_thread, in_process])
def test_beats_of_code_and_of_its_programs_feed_the_view_and_leave_no_event(code, tmp_path: Path) -> None:
    """Beats with progress are progress, as ffmpeg's is; none of them is stored."""

    @workflow("beating", version=1)
    def build_it(build, fifo: str):
        build.call(code, key="a", input={"path": fifo})

    fifo, told = tmp_path / "fifo", list[Progress]()
    os.mkfifo(fifo)
    with Host() as host:
        run = host.submit(build_it, fifo=str(fifo))
        run.subscribe(lambda change: told.append(change) if isinstance(change, Progress) else None)
        fifo.write_text("go")
        assert run.wait(timeout=60).status is RunStatus.COMPLETED
        until(lambda: bool(told) and told[-1].fraction == 1.0)
        with Reader.open(Home.open(host.config.home, create=False)) as reader:
            events = [event.kind.value for event in reader.events(run.run_id)]
    assert (told[0].fraction, told[0].text, told[0].attempt) == (0.5, "half", 1)
    assert len(events) == len([kind for kind in events if kind.startswith(("run-", "node-"))])


class Job(BaseModel):
    probed: str


def elsewhere(ctx, job: Job) -> bool:
    """Say that it runs, twice; then that it has gone."""
    with Path(job.probed).open("a") as file:
        file.write("asked\n")
    return Path(job.probed).read_text().count("asked") < 3


@operation(
    "test.waits", policy=Policy(effect="local-read", heartbeat=Heartbeat(seconds=0.1)), probe=elsewhere
)  # fmt: skip
def waits(ctx, input: Job) -> Job:
    while True:
        ctx.run(["sleep", "600"])


def test_a_silent_operation_that_can_look_is_stopped_only_when_its_job_has_gone(tmp_path: Path) -> None:
    """Running extends, absent reclaims."""

    @workflow("waiting", version=1)
    def waiting(build, probed: str):
        build.call(waits, key="a", input={"probed": probed})

    probed = tmp_path / "probed"
    with Host() as host:
        run = host.submit(waiting, probed=str(probed))
        assert run.wait(timeout=60).status is RunStatus.FAILED
        with Reader.open(Home.open(host.config.home, create=False)) as reader:
            (node,) = reader.nodes(run.run_id)
    assert node.failure is not None
    assert node.failure.code is FailureCode.STALLED
    assert probed.read_text() == "asked\n" * 3


def test_a_program_that_has_got_stuck_is_recovered_by_a_person_and_made_again(tmp_path: Path) -> None:
    """`recover` ends it; the next attempt finds another world."""
    marker = tmp_path / "second"
    script = f"test -e {marker} && exit 0; touch {marker}; exec sleep 600"
    with Host() as host:
        run = host.submit(commands, script=script, grace=600.0)
        until(marker.exists)
        home = Home.open(host.config.home, create=False)
        request = Request(
            request_id="r", run_id=run.run_id, kind=RequestKind.RECOVER, node="a", principal=principal(),
            reason="it hangs", at=SystemClock().now().at,
        )  # fmt: skip
        post(home, request, clock=SystemClock())
        assert run.wait(timeout=60).status is RunStatus.COMPLETED
        with Reader.open(home) as reader:
            (node,) = reader.nodes(run.run_id)
    assert node.attempt == 2
