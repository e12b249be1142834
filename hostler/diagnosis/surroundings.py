"""What the system gives this program: its clocks, its limits, and the variables that it reads."""

import resource
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from hostler.diagnosis.findings import Finding
from hostler.diagnosis.in_force import OTHERS, PLACES
from hostler.views.sizes import bytes_text
from hostres.clock import boot_ns
from hostres.heartbeat import HEARTBEAT_FD
from hostres.suggestions import nearest

RELEASED: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""No clock of a machine that runs this program is right and earlier."""
LEAST_FILES: Final = 512
"""A host needs some forty descriptors, and ten for each program that it runs."""
LEAST_PROCESSES: Final = 256
PREFIX: Final = "HOSTLER_"
GIVEN: Final = ("CPUS", "EVIDENCE", "INPUT", "LEASE", "NODE", "PROCESS", "RUN")
"""What programs of a node are given: not to be set by hand."""
_UNLIMITED: Final = 1 << 60
"""Control groups write "no limit" as a number near the largest there is."""


def look_at_surroundings(
    capacity: Mapping[str, int], environ: Mapping[str, str], groups: "Groups | None" = None
) -> Iterator[Finding]:
    """Look at the clocks, the limits and the variables.

    Args:
        capacity: Of the machine, in force.
        environ: The variables.
        groups: What the control groups of this program allow; as the system says by default.

    """
    yield told_clock(datetime.now(tz=UTC))
    yield from _limits()
    yield from _groups(groups_of(Path("/")) if groups is None else groups, capacity)
    yield from _variables(environ)


def told_clock(now: datetime) -> Finding:
    """Tell what the clocks say.

    Args:
        now: What the wall clock says.

    """
    up_s = boot_ns() // 1_000_000_000
    said = f"{now.isoformat(timespec='seconds').replace('+00:00', 'Z')}, {time.tzname[0]}; up {up_s // 3600} h"
    wrong = now < RELEASED
    todo = "set it right (`timedatectl set-ntp true`); durations do not go by it, dates and `gc` do" if wrong else ""
    return Finding(name="clock", said=f"{said}, which cannot be" if wrong else said, todo=todo)


def _limits() -> Iterator[Finding]:
    files, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    processes, most_processes = resource.getrlimit(resource.RLIMIT_NPROC)
    todo = ""
    if 0 <= files < LEAST_FILES:
        todo = f"{_raise('n', 'NOFILE', LEAST_FILES * 8, files, most_files)}; each running program takes about ten"
    elif 0 <= processes < LEAST_PROCESSES:
        todo = f"{_raise('u', 'NPROC', None, processes, most_processes)}; media programs start many threads"
    yield Finding(
        name="limits",
        said=f"{_number(files)} open files, {_number(processes)} processes of this user",
        todo=todo,
    )
    size, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    if size != resource.RLIM_INFINITY:
        what = f"no file may grow beyond {bytes_text(size)}, so that large results fail"
        yield Finding(name="limits", said=what, todo=_raise("f", "FSIZE", None, size, most))


def _raise(letter: str, name: str, wanted: int | None, now: int, most: int) -> str:
    """Return how to raise a limit.

    Args:
        letter: Of the option of `ulimit`.
        name: As units of systemd call it.
        wanted: What would do, None for no limit.
        now: What it is.
        most: What its owner may raise it to; negative for no limit.

    """
    if most >= 0 and (most <= now or wanted is None):
        return f"raise its hard limit (`Limit{name}=` of a unit, limits.conf(5))"
    to = "unlimited" if wanted is None else wanted if most < 0 else min(wanted, most)
    return f"`ulimit -{letter} {to}`, before Hostler starts"


def _number(limit: int) -> str:
    return "any number of" if limit == resource.RLIM_INFINITY else str(limit)


class Groups(NamedTuple):
    """What the control groups of a program allow, None where they do not say.

    Attributes:
        memory_bytes: Beyond it the kernel kills.
        cpus: Beyond it the kernel pauses.
        processes: Beyond it nothing starts, threads counted.

    """

    memory_bytes: int | None = None
    cpus: float | None = None
    processes: int | None = None


def groups_of(root: Path) -> Groups:
    """Return what the control groups of this program allow, both of version 1 and 2, see cgroups(7).

    Args:
        root: Of the file system; `/` but in tests.

    """
    memory: list[float] = []
    cpus: list[float] = []
    processes: list[float] = []
    for folder, version in _folders(root):
        if version == 2:
            memory += _numbers(folder / "memory.max")
            processes += _numbers(folder / "pids.max")
            cpus += _ratio(_numbers(folder / "cpu.max"))
        else:
            memory += _numbers(folder / "memory.limit_in_bytes")
            processes += _numbers(folder / "pids.max")
            cpus += _ratio([*_numbers(folder / "cpu.cfs_quota_us"), *_numbers(folder / "cpu.cfs_period_us")])
    return Groups(
        memory_bytes=min((int(one) for one in memory), default=None),
        cpus=min(cpus, default=None),
        processes=min((int(one) for one in processes), default=None),
    )


def _folders(root: Path) -> Iterator[tuple[Path, int]]:
    """Yield the folders of the groups that this program is in, and of those around them."""
    try:
        rows = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for row in rows:
        _, controllers, place = row.split(":", 2)
        base = root / "sys/fs/cgroup"
        if controllers:
            base /= controllers.removeprefix("name=")
        inner = base / place.lstrip("/")
        inside = inner if inner.is_dir() else base  # a container sees its own group as the root
        for folder in (inside, *inside.parents):
            if folder != base and base not in folder.parents:
                break
            yield folder, 1 if controllers else 2


def _numbers(path: Path) -> list[float]:
    try:
        words = path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return []
    return [float(word) for word in words if word.isdigit() and int(word) < _UNLIMITED]


def _ratio(numbers: list[float]) -> list[float]:
    return [numbers[0] / numbers[1]] if len(numbers) == 2 and numbers[1] else []


def _groups(groups: Groups, capacity: Mapping[str, int]) -> Iterator[Finding]:
    memory_mb = None if groups.memory_bytes is None else groups.memory_bytes >> 20
    promised = capacity.get("memory-mb", 0)
    if memory_mb is not None and promised > memory_mb:
        what = f"the control group of this program may use {memory_mb} MB, less than the capacity memory-mb={promised}"
        yield Finding(name="limits", said=what, todo=f"`hostler machine set memory-mb={memory_mb * 8 // 10}`")
    if groups.cpus is not None and capacity.get("cpu", 0) > groups.cpus:
        what = f"the control group of this program gets {groups.cpus:g} CPUs, less than the capacity cpu"
        yield Finding(name="limits", said=what, todo=f"`hostler machine set cpu={max(1, int(groups.cpus))}`")
    if groups.processes is not None and groups.processes < LEAST_PROCESSES:
        what = f"the control group of this program may have {groups.processes} processes and threads"
        yield Finding(name="limits", said=what, todo="allow it more (`pids.max`); media programs start many threads")


def _variables(environ: Mapping[str, str]) -> Iterator[Finding]:
    known = {*PLACES, *OTHERS, HEARTBEAT_FD, *(f"{PREFIX}{name}" for name in GIVEN)}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            near = nearest(name, known)
            todo = f"did you mean {near}?" if near else "take it away, unless a program of yours reads it"
            yield Finding(name="environment", said=f"nothing of Hostler's reads {name}", todo=todo)
