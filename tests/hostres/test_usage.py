"""What processes use, and for whom."""

import os
import subprocess
import sys

import pytest

from hostres.procfs import Process, all_processes, read_process
from hostres.usage import Meter, trees


def process(pid: int, parent: int = 1, **more: object) -> Process:
    return Process(pid=pid, parent=parent, start_time=float(pid), **more)  # type: ignore[arg-type]


def by_number(*processes: Process) -> dict[int, Process]:
    return {one.pid: one for one in processes}


def test_it_is_told_how_busy_a_process_was_since_the_last_look_and_of_a_new_one_since_its_start() -> None:
    looks = iter(
        [
            by_number(process(10, cpu_s=30.0)),
            by_number(process(10, cpu_s=31.0), process(68, cpu_s=3.0)),
            by_number(Process(pid=10, start_time=69.0, cpu_s=0.5), process(68, cpu_s=3.0)),
        ]
    )
    clock = iter([100.0, 102.0, 104.0])
    boot = iter([70.0, 72.0, 74.0])
    meter = Meter(look=lambda: next(looks), clock=lambda: next(clock), since_boot_s=lambda: next(boot))
    assert meter.read()[1] == {10: pytest.approx(0.5)}
    assert meter.read()[1] == {10: pytest.approx(0.5), 68: pytest.approx(0.75)}
    assert meter.read()[1] == {10: pytest.approx(0.1), 68: 0.0}, "the number is another's by now"


def test_a_process_works_for_whom_its_nearest_known_ancestor_works() -> None:
    processes = by_number(
        process(1, 0), process(10), process(11, 10), process(12, 11), process(13, 12), process(20), process(30, 10)
    )
    found = trees({"a": [11], "b": [13, 20]}, processes, {12: 0.5})
    assert [(one.process.pid, one.depth, one.cpu) for one in found["a"]] == [(11, 0, 0.0), (12, 1, 0.5)]
    assert [(one.process.pid, one.depth) for one in found["b"]] == [(13, 0), (20, 0)]


def test_what_works_for_several_is_shared_and_its_children_are_nobodys() -> None:
    processes = by_number(process(10), process(11, 10), process(12, 10), process(13, 12))
    found = trees({"a": [10], "b": [10, 12], "c": [99]}, processes, {})
    assert [(one.process.pid, one.shared) for one in found["a"]] == [(10, True)]
    assert [(one.process.pid, one.depth, one.shared) for one in found["b"]] == [
        (10, 0, True),
        (12, 1, False),
        (13, 2, False),
    ]
    assert found["c"] == ()


def test_the_dead_count_for_nobody_and_a_circle_of_parents_ends() -> None:
    processes = by_number(process(10, state="Z"), process(11, 12), process(12, 11))
    assert trees({"a": [10]}, processes, {}) == {"a": ()}


def test_parents_stand_before_their_children_and_the_older_first() -> None:
    processes = by_number(process(10), process(14, 10), process(12, 10), process(13, 12), process(15, 10))
    (members,) = trees({"a": [10]}, processes, {}).values()
    assert [one.process.pid for one in members] == [10, 12, 13, 14, 15]


def test_a_real_process_tells_its_time_and_memory() -> None:
    code = "import os\nwhile sum(os.times()[:2]) < 0.3: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        there = read_process(child.pid)
        assert there is not None
        assert there.cpu_s >= 0.25
        assert there.resident_bytes > 1 << 20
        processes, busy = Meter().read()
        assert 0 < busy[child.pid] <= os.cpu_count()  # type: ignore[operator]
        assert processes.keys() & all_processes().keys() >= {child.pid, os.getpid()}
        child.communicate(b"\n")
