"""kill -9 of a worker's own process at each step of a lease and of a submission: nothing is lost, nothing counts twice."""

import signal
import subprocess
import sys

import pytest

from hostler import Host, Worker, compile_workflow, workflow
from hostler.config import Config
from store.home import Home
from store.proving import numbers, prove
from store.reader import Reader

DONE = {"status": "success", "summary": "done", "usage": {"tokens": 5}}
PROGRAM = """
import os, signal, sys
from hostler import work_client
from hostler.host import Host

action, point = sys.argv[1:3]

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def dies_after(function):
    def called(*given, **named):
        function(*given, **named)
        die()
    return called

worker = work_client.Worker("ann", lease_s=3600)
if action == "submit":
    work = worker.next()
if point == "before-post":
    work_client.post = die
elif point == "after-post":
    work_client.post = dies_after(work_client.post)
elif point == "claimed":
    Host._adopt = dies_after(Host._adopt)
elif point == "after-answer":
    work_client.Worker._answer = dies_after(work_client.Worker._answer)
if action == "next":
    worker.next()
else:
    worker.submit(work, {"status": "success", "summary": "done", "usage": {"tokens": 5}})
"""
POINTS = ("before-post", "after-post", "claimed", "after-answer")


@workflow("outside", version=1)
def outside(build):
    build.agent("do it", key="work")


def home() -> Home:
    return Home.open(Config.load().home, create=False)


def killed(action: str, point: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, action, point], timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("action", ["next", "submit"])
@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_is_killed_finds_its_work_again_and_it_counts_once(action, point):
    """G18: the same worker asks again, and brings the same result again."""
    with Host() as host:
        run_id = host.create(compile_workflow(outside, {}, folder=Config.load().home))
    killed(action, point)
    worker = Worker("ann", lease_s=3600)
    work = worker.next()
    key = f"{run_id}:work:1"
    if work is not None:
        assert work.key == key
    else:
        assert action == "submit"
        assert point != "before-post"  # what was posted counts, whoever takes it up
    assert worker.submit(key, DONE) == "completed"
    with Reader.open(home()) as reader:
        kinds = [event.kind.value for event in reader.events(run_id)]
        (record,) = reader.nodes(run_id)
    assert (record.status.value, record.attempt) == ("completed", 1)
    assert (kinds.count("spending"), kinds.count("node-running")) == (1, 1)
    assert [prove(home(), number).problems for number in numbers(home())] == [()]
