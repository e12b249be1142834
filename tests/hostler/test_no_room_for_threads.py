"""Where the system has no room for another thread: told in clean words, nothing hangs, nothing is left."""

import threading
from typing import Any

import pytest
from pydantic import BaseModel

from hostler import Host, Policy, operation, workflow
from hostler.config import Config
from hostres.errors import Code, HostlerError
from hostres.locks import is_held
from store.home import Home
from store.lifecycle import RunStatus
from store.policy import FailureCode
from store.reader import Reader


class Nothing(BaseModel):
    pass


@operation("threads.echo", policy=Policy(effect="local-read", claims={"cpu": 1}))
def echo(ctx, input: Nothing) -> Nothing:
    ctx.run(["true"])
    return Nothing()


@workflow("threads")
def flow(build):
    first = build.call(echo, key="a", input={})
    build.call(echo, key="b", input={}, after=[first])


class Room:
    """Room for so many threads more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
        self.left = threads
        self.asked_in_vain = 0
        start = threading.Thread.start

        def limited(thread: threading.Thread) -> None:
            if self.left == 0:
                self.asked_in_vain += 1
                raise RuntimeError("can't start new thread")
            self.left -= 1
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", limited)


def failures(run_id: str) -> list[Any]:
    with Reader.open(Home.open(Config.load().home, create=False)) as store:
        return [node.failure for node in store.nodes(run_id) if node.failure is not None]


def attempted() -> tuple[str | None, RunStatus | None, HostlerError | None]:
    """Run the workflow on a host of its own; return the run, where it stood, and how the host failed."""
    run_id = None
    try:
        with Host() as host:
            run = host.submit(flow)
            run_id = run.run_id
            return run_id, run.wait(timeout=60).status, None
    except HostlerError as error:
        return run_id, None, error


@pytest.mark.parametrize("threads", range(16))
def test_a_host_without_room_for_a_thread_says_so_and_its_run_goes_on_elsewhere(monkeypatch, threads):
    """Whichever it is that cannot start: of the host, its actors, the work, or what attends to a program."""
    with monkeypatch.context() as patched:
        room = Room(patched, threads)
        run_id, status, error = attempted()
    if error is not None:
        assert error.code is Code.UNAVAILABLE
        assert "no further thread can be started" in error.what
        assert "ulimit -u" in error.todo
    elif status is not RunStatus.COMPLETED:
        assert room.asked_in_vain
        assert {failure.code for failure in failures(run_id or "")} == {FailureCode.UNAVAILABLE}
    if run_id is not None:
        with Host() as host:
            again = host.resume(run_id).wait(timeout=60)
        assert again.status is (status or RunStatus.COMPLETED)


def test_a_program_that_nobody_could_attend_to_is_ended(monkeypatch):
    """It was left running, with the place on the machine that it inherited."""
    with Host() as host, host.lease({"cpu": 1}) as lease, monkeypatch.context() as patched:
        assert host.responds(within_s=60)  # its actors are there
        Room(patched, 0)
        with pytest.raises(HostlerError, match="sleep cannot be attended to: no further thread") as caught:
            lease.run(["sleep", "60"])
        assert caught.value.code is Code.UNAVAILABLE
        place = lease.place
        lease.release()
        assert not is_held(place)
