"""For which node of a run a process works."""

import os
import subprocess
import sys

from hostres.attribution import YOUNG_S, Attribution
from hostres.procfs import Process, all_processes

RUN = "run_01jd0000000000000000000000"


def marks(run: str, node: str) -> dict[bytes, bytes]:
    return {b"HOSTLER_RUN": run.encode(), b"HOSTLER_NODE": node.encode()}


def test_processes_are_found_by_their_environment_and_only_those_of_the_run() -> None:
    environments = {1: marks(RUN, "a/b"), 2: marks(RUN, "c"), 3: marks("run_other", "a/b"), 4: {}, 5: marks(RUN, "c")}
    processes = {pid: Process(pid=pid, start_time=0.0) for pid in environments}
    processes[5] = Process(pid=5, start_time=0.0, state="Z")
    found = Attribution(RUN, ask=lambda pid: environments[pid]).find(processes, 100.0)
    assert found == {"a/b": [1], "c": [2]}


def test_who_is_old_enough_is_asked_once_and_who_is_young_again() -> None:
    asked: list[int] = []
    environments = {1: marks(RUN, "a"), 2: dict[bytes, bytes]()}

    def ask(pid: int) -> dict[bytes, bytes]:
        asked.append(pid)
        return environments[pid]

    attribution = Attribution(RUN, ask=ask)
    processes = {1: Process(pid=1, start_time=0.0), 2: Process(pid=2, start_time=100.0 - YOUNG_S / 2)}
    assert attribution.find(processes, 100.0) == {"a": [1]}
    environments[2] = marks(RUN, "b")  # it has become the program that it was started for
    assert attribution.find(processes, 101.0) == {"a": [1], "b": [2]}
    assert attribution.find(processes, 110.0) == {"a": [1], "b": [2]}
    assert attribution.find(processes, 111.0) == {"a": [1], "b": [2]}
    assert asked == [1, 2, 2, 2]


def test_a_number_that_another_process_has_got_is_asked_anew() -> None:
    attribution = Attribution(RUN, ask=lambda _: marks(RUN, "a"))
    attribution.find({7: Process(pid=7, start_time=0.0)}, 100.0)
    other = Attribution(RUN, ask=lambda _: {})
    other._known = attribution._known
    assert other.find({7: Process(pid=7, start_time=50.0)}, 100.0) == {}


def test_a_real_process_is_found() -> None:
    environ = {**os.environ, "HOSTLER_RUN": RUN, "HOSTLER_NODE": "real"}
    line = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(line, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert Attribution(RUN).find(all_processes(), 1e9) == {"real": [child.pid]}
        child.communicate(b"\n")
