"""`hostler exec` against the commands that people use for the same: GNU parallel's `sem`, and flock(1)."""

import contextlib
import os
import select
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from scripts.benchmarks.crew import LIMIT_S, LostError
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.jobs import TRUE
from scripts.benchmarks.results import Goal, Row, informing, ratio, unmeasured
from scripts.benchmarks.stored_runs import Stored
from scripts.benchmarks.surroundings import scratch

JOB: Final = 'date +%s%N >>"$0.began"; sleep .02; date +%s%N >>"$0.ended"'
"""A job that notes when it begins and ends; its first argument names the notes."""

FIRST: Final = 'while [ ! -e "$0.go" ]; do sleep .01; done; date +%s%N >>"$0.began"; date +%s%N >>"$0.ended"'
"""The job that keeps the others waiting until all of them do."""

IDLE_LOOKS: Final = 4
IDLE_NS: Final = 1_000_000
"""All of them together spend less from look to look: one that waits does see to its line now and then."""


def rows(effort: Effort) -> list[Row]:
    """Measure the commands."""
    return [*_through_two_slots(effort), *_gaps(effort), *_one_by_one(effort)]


def _through_two_slots(effort: Effort) -> list[Row]:
    sem = shutil.which("sem")
    ours = theirs = 0.0
    for _ in range(effort.rounds):
        with scratch() as place:
            ours += _all_at_once([[*_exec(), TRUE]] * effort.commands, _settings(place, slots=2))
            if sem is not None:
                theirs += _by_sem(sem, effort.commands, _settings(place, slots=2))
    count = effort.rounds * effort.commands
    name, goal = f"{count} × true, 2 slots, by hostler exec / sem", Goal(limit=0.3)
    told = f"in rounds of {effort.commands}, all at once"
    return [
        ratio(name, ours, theirs, goal, told)
        if sem is not None
        else unmeasured(name, "×", goal, "GNU parallel's sem is not installed"),
        informing(f"{count} × true, 2 slots, by hostler exec", ours, "s", told),
        *([informing(f"{count} × true, 2 slots, by sem", theirs, "s")] if sem is not None else []),
    ]


def _gaps(effort: Effort) -> list[Row]:
    flock = shutil.which("flock")
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(max(1, effort.rounds // 2)):
        with scratch() as place:
            settings = _settings(place, slots=1)
            ours += _gaps_of([*_exec(), "sh", "-c"], place / "exec", settings, effort.many)
            if flock is not None:
                theirs += _gaps_of([flock, str(place / "slot"), "sh", "-c"], place / "flock", settings, effort.many)
    name, goal = f"gap between jobs, {effort.many} queued, hostler exec / flock(1)", Goal(limit=1.5)
    mine = statistics.median(ours)
    note = "p50, with the start of sh and date"
    return [
        ratio(name, mine, statistics.median(theirs), goal, note)
        if theirs
        else unmeasured(name, "×", goal, "flock(1) is not installed"),
        informing("gap between jobs, hostler exec", mine, "ms"),
        *([informing("gap between jobs, flock(1)", statistics.median(theirs), "ms")] if theirs else []),
    ]


def _one_by_one(effort: Effort) -> list[Row]:
    ways = {
        "true by hostler exec": [*_exec(), TRUE],
        "hostler --version": [*_hostler(), "--version"],
        "hostler runs": [*_hostler(), "runs"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    with scratch() as place:
        settings = _settings(place, slots=1)
        _store_runs(place / "home", effort.listed)
        _all_at_once(list(ways.values()), settings)  # the folder is made, the byte code written
        for _ in range(max(1, effort.rounds * effort.commands // 4)):
            for name, command in ways.items():
                times[name].append(_all_at_once([command], settings))
    found = {name: statistics.median(values) for name, values in times.items()}
    bare = found["python -c pass"]
    return [
        ratio("one true by hostler exec / python -c pass", found["true by hostler exec"], bare, Goal(limit=5)),
        ratio("hostler --version / python -c pass", found["hostler --version"], bare, Goal(limit=2)),
        ratio(f"hostler runs, of {effort.listed} / python -c pass", found["hostler runs"], bare, Goal(limit=5)),
        *(informing(f"one {name}", 1000 * value, "ms") for name, value in found.items()),
    ]


def _store_runs(home: Path, count: int) -> None:
    stored = Stored(home)
    for _ in range(count):
        stored.create(1)
    stored.close()


def _hostler() -> list[str]:
    script = Path(sys.executable).with_name("hostler")
    return [str(script)] if script.exists() else [sys.executable, "-m", "hostler"]


def _exec() -> list[str]:
    return [*_hostler(), "exec", "--claim", "slot=1", "--"]


def _settings(place: Path, *, slots: int) -> dict[str, str]:
    """Return an environment in which all that is written lies in *place*."""
    config = place / "config.toml"
    config.write_text(f"[machine.capacity]\nslot = {slots}\n", encoding="utf-8")
    parallel = place / "parallel"
    parallel.mkdir(exist_ok=True)
    (parallel / "will-cite").touch()
    left_out = ("HOSTLER_", "PYTHONDONTWRITEBYTECODE")  # without byte code it would be the compiler that is measured
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {
        **kept,
        "HOME": str(place),
        "TMPDIR": str(place),
        "PARALLEL_HOME": str(parallel),
        "HOSTLER_HOME": str(place / "home"),
        "HOSTLER_MACHINE_DIR": str(place / "machine"),
        "HOSTLER_CONFIG": str(config),
    }


def _all_at_once(commands: Sequence[Sequence[str]], settings: Mapping[str, str]) -> float:
    began = time.monotonic()
    with _started(commands, settings) as processes:
        _reap(processes)
        return time.monotonic() - began


def _by_sem(sem: str, count: int, settings: Mapping[str, str]) -> float:
    began = time.monotonic()
    for _ in range(count):
        with _started([[sem, "--id", "bench", "-j2", TRUE]], settings) as processes:
            _reap(processes)
    with _started([[sem, "--id", "bench", "--wait"]], settings) as processes:
        _reap(processes)
    return time.monotonic() - began


def _gaps_of(command: Sequence[str], notes: Path, settings: Mapping[str, str], queued: int) -> list[float]:
    """Return the milliseconds from a job's last act to the first of the next."""
    with _started([[*command, FIRST, str(notes)]], settings) as first:
        _until_idle(first)
        with _started([[*command, JOB, str(notes)]] * queued, settings) as others:
            _until_idle(others)
            notes.with_suffix(".go").touch()
            _reap([*first, *others])
    began, ended = (sorted(map(int, notes.with_suffix(end).read_text().split())) for end in (".began", ".ended"))
    return [(after - before) / 1e6 for after, before in zip(began[1:], ended, strict=False)]


@contextlib.contextmanager
def _started(
    commands: Sequence[Sequence[str]], settings: Mapping[str, str]
) -> Iterator[list["subprocess.Popen[bytes]"]]:
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            processes.append(  # noqa: PERF401  what was started must be known if the next one fails
                subprocess.Popen(
                    command,
                    env=settings,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
                process.wait()


def _reap(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    for process in processes:
        code = _awaited(process)
        if code != 0:
            raise LostError(f"{process.args!r} ended with {code}")


def _awaited(process: "subprocess.Popen[bytes]") -> int:
    """Wait for its end as it comes: with a limit `wait` looks after 0.5, 1.5, 3.5 ms and so on, which would be seen."""
    end = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(end, select.POLLIN)
        if not poll.poll(LIMIT_S * 1000):
            raise LostError(f"{process.args!r} did not end")
        return process.wait()
    finally:
        os.close(end)


def _until_idle(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Wait until they have not used the processor to speak of for a while."""
    until = time.monotonic() + LIMIT_S
    before, same = -IDLE_NS, 0
    while same < IDLE_LOOKS:
        now = sum(_cpu_ns(process.pid) for process in processes)
        same = same + 1 if now - before < IDLE_NS else 0
        before = now
        if time.monotonic() > until:
            raise LostError("the queue never came to rest")
        time.sleep(0.05)


def _cpu_ns(pid: int) -> int:
    return time.clock_gettime_ns((~pid << 3) | 2)
