"""Who lives is the same from everywhere: another PID namespace, another host name; and a fence outlives its run."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hostres.errors import Code
from store import requests
from store.contracts import RequestKind
from store.hosts import host_alive
from store.reader import Reader
from store.requests import cancel_id, post
from tests.store.support import CLOCK, DIAMOND, NOTE, Setting, assert_refused, record_of, request_of
from tests.store.test_claims import OWNER, claim_refused

ELSEWHERE = ("--pid", "--fork", "--kill-child", "--mount-proc", "--uts")


@cache
def namespace() -> tuple[str, ...] | None:
    """Return the command that runs another in a PID and host-name namespace of its own; None where that is denied."""
    for more in ((), ("--user", "--map-root-user")):
        command = ("unshare", *more, *ELSEWHERE)
        if shutil.which("unshare"):
            trial = [*command, "hostname", "elsewhere"]
            if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
                return command
    return None


def test_an_owner_in_another_pid_namespace_and_under_another_name_lives_until_it_is_dead(setting: Setting) -> None:
    command = namespace()
    if command is None:
        pytest.skip("this system lets nobody make a PID namespace")
    run = setting.created()
    inside = ["sh", "-c", 'hostname elsewhere && exec "$@"', "sh", sys.executable, "-c", OWNER]
    owner = subprocess.Popen(
        [*command, *inside, str(setting.home.root), run],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    try:
        assert owner.stdin is not None
        assert owner.stdout is not None
        host_id = owner.stdout.readline().split()[1]
        owner.stdin.write("\n")
        assert owner.stdout.readline() == "owner 1\n"
        assert host_alive(setting.home, host_id)
        assert_refused(claim_refused(setting, run), Code.CONFLICT, host_id)
    finally:
        owner.kill()
        owner.communicate()
    assert not host_alive(setting.home, host_id)
    assert setting.store.claim(run, setting.identity).fence.generation == 2


def test_an_owner_out_here_lives_for_those_in_another_pid_namespace(setting: Setting) -> None:
    command = namespace()
    if command is None:
        pytest.skip("this system lets nobody make a PID namespace")
    run = setting.claimed().fence.run_id
    done = subprocess.run(
        [*command, sys.executable, "-c", OWNER, str(setting.home.root), run],
        input="\n\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[1:] == ["refused conflict"], done.stderr


def test_a_fence_of_a_removed_run_does_not_open_one_made_again_under_its_id(setting: Setting) -> None:
    """The number of a claim can be the same then; its token never is."""
    record = record_of(DIAMOND)
    setting.store.create(record, DIAMOND, bundle=None)
    stale = setting.store.claim(record.run_id, setting.identity)
    connection = setting.store._connection
    numbers = connection.execute("SELECT run FROM runs").fetchall()
    connection.execute("DELETE FROM runs")
    setting.store.create(record, DIAMOND, bundle=None)
    claimed = setting.store.claim(record.run_id, setting.identity)
    assert (claimed.fence.generation, claimed.fence.host_id) == (stale.fence.generation, stale.fence.host_id)
    assert connection.execute("SELECT run FROM runs").fetchall() > numbers
    assert_refused(setting.write(stale, events=(NOTE,)), Code.CONFLICT, "no longer in force")
    setting.accept(claimed, events=(NOTE,))


def test_a_generation_is_reserved_by_the_claim_itself_also_of_an_owner_that_never_wrote(setting: Setting) -> None:
    run = setting.created()
    for generation in range(1, 4):
        child = os.fork()
        if child == 0:
            other = Setting(setting.home.root)
            assert other.store.claim(run, other.identity).fence.generation == generation
            os.kill(os.getpid(), signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert setting.store.claim(run, setting.identity).fence.generation == 4


@pytest.mark.parametrize("owner_dies", [False, True])
def test_a_request_whose_poster_was_killed_before_the_wake_up_is_consumed_all_the_same(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, owner_dies: bool
) -> None:
    """By the next owner; by the one that lives as soon as anybody asks again, or wakes it for another run."""
    run = setting.created()
    other = Setting(setting.home.root)
    claimed = other.store.claim(run, other.identity)
    request = request_of(run, RequestKind.CANCEL, request_id=cancel_id(run))
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(requests, "wake", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        post(setting.home, request, clock=CLOCK)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    if owner_dies:
        other.store.close()
        other.identity._lock.close()  # as the kernel does
        (waiting,) = setting.store.claim(run, setting.identity).requests
    else:
        assert select.select([other.identity.fd], [], [], 0)[0] == []
        assert not post(setting.home, request, clock=CLOCK)  # the first stands, and the owner is woken now
        assert select.select([other.identity.fd], [], [], 5)[0] == [other.identity.fd]
        (waiting,) = other.store.requests([run])
        other.accept(claimed, consumed=(waiting.request_id,))
        assert other.store.requests([run]) == []
        other.close()
    assert waiting.request_id == request.request_id


MANY = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.store.support import *
setting = Setting(Path(sys.argv[1]))
claimed = setting.store.claim(sys.argv[4], setting.identity)
print("ready", flush=True)
sys.stdin.readline()
refused = [str(answer) for answer in (setting.write(claimed, events=(NOTE,)) for _ in range(int(sys.argv[3]))) if answer]
print(json.dumps({"run": claimed.fence.run_id, "refused": refused}))
setting.close()
"""
HOLDS = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    connection.execute("BEGIN IMMEDIATE")
    time.sleep(0.2)  # what another program does meanwhile
    connection.execute("ROLLBACK")
print("{}")
"""


@contextlib.contextmanager
def talking(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Give a Python program that one can talk to; it is gone afterwards."""
    process = subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_many_processes_write_at_once_beside_one_that_holds_the_lock_and_none_sees_it(setting: Setting) -> None:
    """Field case 46."""
    root = str(Path(requests.__file__).parents[1])
    writers = [("-c", MANY, str(setting.home.root), root, "30", setting.created()) for _ in range(3)]
    with contextlib.ExitStack() as started:
        programs = [
            started.enter_context(talking(*arguments))
            for arguments in [*writers, ("-c", HOLDS, str(setting.home.database))]
        ]
        for one in programs:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in programs:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        listed = 0
        with Reader.open(setting.home) as reader:
            while any(one.poll() is None for one in programs[:3]):
                listed += len(reader.runs()) == 3
        answers = [one.communicate(timeout=60) for one in programs]
    assert all(one.returncode == 0 for one in programs)
    for said, _ in answers[:3]:
        answer = json.loads(said)
        assert answer["refused"] == []
        with Reader.open(setting.home) as reader:
            assert [event.seq for event in reader.events(answer["run"])] == list(range(1, 33))
    assert listed
