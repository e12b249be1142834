"""What processes use of the machine, and for whom: from one look at `/proc` to the next."""

import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from hostres.clock import boot_ns
from hostres.procfs import Process, all_processes

Owner = TypeVar("Owner", bound=Hashable)
"""For whom a process works: a ticket, a node."""

LEAST_S: Final = 0.1
"""In less time than that the kernel's ticks say little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process of a tree.

    Attributes:
        process: The process.
        cpu: CPUs that it kept busy since the last look; 1.0 is a whole one.
        depth: How many of its ancestors are in the same tree.
        shared: It works for several owners, so that what it uses is nobody's alone.

    """

    process: Process
    cpu: float
    depth: int = 0
    shared: bool = False


class Meter:
    """Tells of each process how busy it kept the machine since it was last asked."""

    def __init__(
        self,
        *,
        look: Callable[[], dict[int, Process]] = all_processes,
        clock: Callable[[], float] = time.monotonic,
        since_boot_s: Callable[[], float] = lambda: boot_ns() / 1e9,
    ) -> None:
        """Prepare it.

        Args:
            look: Returns all processes.
            clock: Monotonic seconds.
            since_boot_s: Seconds since boot, as start times count them.

        """
        self._look = look
        self._clock = clock
        self._since_boot_s = since_boot_s
        self._before: dict[tuple[int, float], float] = {}
        self._before_s = 0.0

    def read(self) -> tuple[dict[int, Process], dict[int, float]]:
        """Look; return the processes by number, and how many CPUs each kept busy, also by number.

        One that was not there at the last look tells its average since it started.
        """
        processes, now_s, since_boot_s = self._look(), self._clock(), self._since_boot_s()
        passed_s = now_s - self._before_s
        busy = {}
        for pid, process in processes.items():
            before_s = self._before.get(process.identity)
            if before_s is None or passed_s <= 0:
                used_s, took_s = process.cpu_s, since_boot_s - process.start_time
            else:
                used_s, took_s = process.cpu_s - before_s, passed_s
            busy[pid] = max(0.0, used_s / max(took_s, LEAST_S))
        self._before = {process.identity: process.cpu_s for process in processes.values()}
        self._before_s = now_s
        return processes, busy


def trees(
    roots: Mapping[Owner, Collection[int]], processes: Mapping[int, Process], busy: Mapping[int, float]
) -> dict[Owner, tuple[Member, ...]]:
    """Return the living processes that work for each owner, parents before children.

    A process that is nobody's root works for whom its nearest such ancestor works, unless that works for several.

    Args:
        roots: The numbers of processes that are known to work for each owner.
        processes: All processes, by number.
        busy: CPUs that each kept busy.

    """
    owners: dict[int, list[Owner]] = {}
    for owner, pids in roots.items():
        for pid in pids:
            owners.setdefault(pid, []).append(owner)
    works_for = _Heirs(owners, processes)
    members: dict[Owner, dict[int, Process]] = {owner: {} for owner in roots}
    for pid, process in processes.items():
        if not process.gone:
            for owner in works_for.of(pid):
                members[owner][pid] = process
    return {
        owner: tuple(
            Member(process=process, cpu=busy.get(process.pid, 0.0), depth=depth, shared=len(owners.get(pid, ())) > 1)
            for pid, process, depth in _parents_first(found)
        )
        for owner, found in members.items()
    }


class _Heirs(Generic[Owner]):
    """Finds out for whom a process works."""

    def __init__(self, owners: dict[int, list[Owner]], processes: Mapping[int, Process]) -> None:
        self._owners = owners
        self._processes = processes
        self._found: dict[int, list[Owner]] = {}

    def of(self, pid: int) -> list[Owner]:
        """Return the owners of a process."""
        if pid in self._owners:
            return self._owners[pid]
        climbed: list[int] = []
        found: list[Owner] = []
        while pid in self._processes and pid not in climbed:
            if pid in self._found:
                found = self._found[pid]
                break
            if pid in self._owners:
                found = self._owners[pid] if len(self._owners[pid]) == 1 else []
                break
            climbed.append(pid)
            pid = self._processes[pid].parent
        self._found.update(dict.fromkeys(climbed, found))
        return found


def _parents_first(found: Mapping[int, Process]) -> list[tuple[int, Process, int]]:
    children: dict[int, list[Process]] = {}
    for process in found.values():
        parent = process.parent if process.parent in found else 0
        children.setdefault(parent, []).append(process)
    ordered: list[tuple[int, Process, int]] = []
    todo = [(process, 0) for process in _youngest_first(children.get(0, ()))]
    while todo:
        process, depth = todo.pop()
        ordered.append((process.pid, process, depth))
        todo += [(child, depth + 1) for child in _youngest_first(children.get(process.pid, ()))]
    return ordered


def _youngest_first(processes: Collection[Process]) -> list[Process]:
    return sorted(processes, key=lambda one: (one.start_time, one.pid), reverse=True)
