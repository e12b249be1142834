"""What of the machine concerns a run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostler.commands.gauge import Gauge
from tests.hostres.support import children, coordinator, holder, waiting
from tests.support import until

RUN = "run_01jd0000000000000000000000"
WORK = "import sys\nkept = b'x' * (32 << 20)\nprint(flush=True)\nwhile not sys.stdin.readline(): pass"


def folder() -> Path:
    return Path(os.environ["HOSTLER_MACHINE_DIR"])


def test_it_sees_what_the_processes_of_a_node_use_also_those_that_they_started() -> None:
    environ = {**os.environ, "HOSTLER_RUN": RUN, "HOSTLER_NODE": "a/b"}
    line = ["env", "-u", "HOSTLER_RUN", sys.executable, "-c", WORK]
    shell = ["sh", "-c", '"$@"; true', "sh", *line]
    with subprocess.Popen(shell, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        gauge = Gauge(RUN, folder())
        assert gauge.look().usage["a/b"].memory_bytes > 32 << 20, "of the one without the mark"
        assert Gauge("run_other", folder()).look().usage == {}
        child.communicate(b"\n")
    assert gauge.look().usage == {}


def test_it_looks_who_holds_what_a_node_waits_for_only_if_one_waits() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}, name=f"{RUN} first"), children() as start:
        start(holder({"x": 1}, name=f"{RUN} second"))
        waiting(1)
        gauge = Gauge(RUN, folder())
        assert gauge.look().held == {}
        gauge.queued = True
        assert gauge.look().held == {"second": "waits for x, held by first"}


def test_a_look_that_fails_leaves_what_was_seen_last(monkeypatch: pytest.MonkeyPatch) -> None:
    gauge = Gauge(RUN, folder())
    looks: list[None] = []

    def look() -> None:
        looks.append(None)
        raise OSError

    monkeypatch.setattr(gauge, "look", look)
    monkeypatch.setattr("hostler.commands.gauge.EVERY_S", 0.001)
    before = gauge.looked
    with gauge:
        until(lambda: len(looks) > 2)
    assert gauge.looked is before
