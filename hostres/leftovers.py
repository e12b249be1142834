"""Leftovers: processes of a run that outlived the host that started them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hostres.holders import inherited
from hostres.procfs import STOPPED, Process, all_processes, ancestors, command_of, environment_of, read_process
from hostres.revocation import FOLDER
from hostres.survey import read_tickets, survey
from hostres.trees import Patience, descendants, end_processes

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
        stopped: Whether it does nothing until somebody continues it.

    """

    pid: int
    start_time: float
    command: tuple[str, ...]
    run_id: str
    node: str
    stopped: bool = False


def find_leftovers(run_id: str, machine_folder: Path | None = None) -> list[Leftover]:
    """Return the living processes that were started for a run, never this one or one it descends from.

    Args:
        run_id: The run.
        machine_folder: Where the tickets of its nodes are; then also what has thrown the marker away and still holds
            such a ticket is found.

    Raises:
        HostlerError: `unsafe-state`, `unavailable`: that folder cannot be read.

    """
    return [_leftover(process, run_id, node) for process, node in _all_of(run_id, machine_folder)]


def end_leftovers(found: Iterable[Leftover], *, grace_s: float, machine_folder: Path | None = None) -> list[Leftover]:
    """End leftovers with all that descends from them.

    Args:
        found: What `find_leftovers` returned.
        grace_s: Seconds between TERM and KILL.
        machine_folder: As for `find_leftovers`.

    Returns:
        Those that could not be ended.

    """
    known = {(one.pid, one.start_time): one for one in found}
    nodes = {(one.run_id, one.node) for one in known.values()}

    def find() -> list[Process]:
        processes = all_processes()
        roots = {pid for pid, one in processes.items() if one.identity in known}
        for run_id in {run_id for run_id, _ in nodes}:
            roots.update(
                one.pid
                for one, node in _all_of(run_id, machine_folder)
                if (run_id, node) in nodes and one.pid in processes
            )
        return descendants(processes, roots, ancestors(processes))

    default = next(iter(known.values()), None)
    left = end_processes(find, Patience(grace_s)) if default else []
    return [
        known.get(one.identity) or _leftover(one, default.run_id, default.node) for one in left if default is not None
    ]


def _all_of(run_id: str, machine_folder: Path | None) -> list[tuple[Process, str]]:
    marked = _marked(run_id)
    if machine_folder is None:
        return marked
    known = {process.identity for process, _ in marked}
    return marked + [one for one in _holding(run_id, machine_folder) if one[0].identity not in known]


def _holding(run_id: str, machine_folder: Path) -> list[tuple[Process, str]]:
    """Return the processes that have inherited a ticket of a node of the run; a host that lives holds its own."""
    found = survey(machine_folder)
    if found is None:
        return []
    mark = f"{run_id} "
    seen = [*found.live.values(), *read_tickets(machine_folder / FOLDER)[1].values()]
    nodes = {
        (one.status.st_dev, one.status.st_ino): one.record.name.removeprefix(mark)
        for one in seen
        if one.record.name.startswith(mark)
    }
    if not nodes:
        return []
    processes = all_processes()
    spared = ancestors(processes)
    return [
        (process, nodes[identity])
        for pid, process in processes.items()
        if pid not in spared and not process.gone
        for identity in inherited(pid, nodes)
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
        stopped=process.state in STOPPED,
    )
