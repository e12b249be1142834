"""Leftovers: processes of a run that outlived the host that started them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hostres.procfs import Process, all_processes, ancestors, command_of, environment_of, read_process
from hostres.trees import descendants, end_processes

RUN: Final = "HOSTLER_RUN"
NODE: Final = "HOSTLER_NODE"
MARKERS: Final = (RUN, NODE)
"""Variables in the environment of every process started for a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A living process of an earlier attempt.

    Attributes:
        pid: Its number.
        start_time: Seconds from boot to its start.
        command: Its command line.
        run_id: The run it was started for.
        node: The node it was started for.

    """

    pid: int
    start_time: float
    command: tuple[str, ...]
    run_id: str
    node: str


def find_leftovers(run_id: str) -> list[Leftover]:
    """Return the living processes that were started for a run, never this one or one it descends from.

    Args:
        run_id: The run.

    """
    return [_leftover(process, run_id, node) for process, node in _marked(run_id)]


def end_leftovers(found: Iterable[Leftover], *, grace_s: float) -> list[Leftover]:
    """End leftovers with all that descends from them.

    Args:
        found: What `find_leftovers` returned.
        grace_s: Seconds between TERM and KILL.

    Returns:
        Those that could not be ended.

    """
    known = {(one.pid, one.start_time): one for one in found}
    nodes = {(one.run_id, one.node) for one in known.values()}

    def find() -> list[Process]:
        processes = all_processes()
        roots = {pid for pid, one in processes.items() if one.identity in known}
        for run_id in {run_id for run_id, _ in nodes}:
            roots.update(one.pid for one, node in _marked(run_id) if (run_id, node) in nodes and one.pid in processes)
        return descendants(processes, roots, ancestors(processes))

    default = next(iter(known.values()), None)
    left = end_processes(find, grace_s=grace_s) if default else []
    return [
        known.get(one.identity) or _leftover(one, default.run_id, default.node) for one in left if default is not None
    ]


def _marked(run_id: str) -> list[tuple[Process, str]]:
    processes = all_processes()
    spared = ancestors(processes)
    found = []
    for pid, process in processes.items():
        if pid in spared or process.gone:
            continue
        environment = environment_of(pid)
        if environment.get(RUN.encode()) != run_id.encode():
            continue
        now = read_process(pid)  # the environment was that of the process we mean, not of a later one
        if now is not None and now.identity == process.identity:
            found.append((now, environment.get(NODE.encode(), b"").decode("utf-8", "replace")))
    return found


def _leftover(process: Process, run_id: str, node: str) -> Leftover:
    return Leftover(
        pid=process.pid,
        start_time=process.start_time,
        command=tuple(command_of(process.pid).split(" ")),
        run_id=run_id,
        node=node,
    )
