"""Process trees: everything a process has started, wherever it went, and ending all of it.

A descendant may leave its parent (which dies), its session (`setsid`) and its environment, but seldom all of them
and its open files. So it is found by any: parents, session, a token in the environment, an inherited descriptor.

We do not make ourselves the reaper of orphans (PR_SET_CHILD_SUBREAPER): it would hold for the whole program that
embeds us, which would get children that it never started, and have to reap them without ever taking another's exit
status; and it would find nobody that is not found here.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from hostres.holders import Identity, identities
from hostres.procfs import STOPPED, Process, all_processes, ancestors, environment_of, send_signal, wait_for_any

TOKEN: Final = "HOSTLER_PROCESS"  # noqa: S105  the name of a variable
"""Names in a process's environment the supervised processes it descends from, the outermost first."""

RESCAN_S: Final = 0.1
KILL_S: Final = 5.0
"""After KILL, a process that the kernel does not let go within this is left, and named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """How to recognise the tree of one supervised process.

    Attributes:
        leader: Its first process, which is the leader of its session.
        token: Its own entry in `TOKEN`.
        files: Identities of descriptors that it inherited.

    """

    leader: Process
    token: bytes
    files: frozenset[Identity] = frozenset()

    def members(self) -> list[Process]:
        """Return its living processes, the first one first."""
        processes = all_processes()
        spared = ancestors(processes)
        there = processes.get(self.leader.pid)
        same = there is None or there.identity == self.leader.identity
        roots = {pid for pid, one in processes.items() if same and one.session == self.leader.pid}
        if there is not None and same:
            roots.add(there.pid)
        strangers = [one for pid, one in processes.items() if pid not in roots and pid not in spared]
        roots.update(one.pid for one in strangers if one.start_time >= self.leader.start_time and self._known(one))
        return descendants(processes, roots, spared)

    def _known(self, process: Process) -> bool:
        tokens = environment_of(process.pid).get(TOKEN.encode(), b"").split(b":")
        if self.token in tokens:
            return True
        # One that has another's token is another's. A child of ours that is not yet its program has copies of
        # everything, for a moment.
        if tokens != [b""] or process.parent == os.getpid() or not self.files:
            return False
        return bool(identities(process.pid, self.files, locked_only=True))


def descendants(
    processes: dict[int, Process], roots: Iterable[int], spared: Collection[int] = frozenset()
) -> list[Process]:
    """Return the living *roots* and all that descend from them, parents first.

    Args:
        processes: All processes.
        roots: Where to start.
        spared: Never returned.

    """
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: dict[int, Process] = {}
    todo = sorted(roots, key=lambda pid: (processes[pid].start_time, pid))
    while todo:
        pid = todo.pop(0)
        if pid not in found and pid not in spared:
            found[pid] = processes[pid]
            todo.extend(children.get(pid, ()))
    return [process for process in found.values() if not process.gone]


class Patience:
    """The grace between TERM and KILL, which may be shortened while it lasts; any thread."""

    def __init__(self, grace_s: float) -> None:
        self._until = time.monotonic() + grace_s

    def shorten(self, grace_s: float) -> None:
        """Let it end in *grace_s* seconds from now, if it lasts longer."""
        self._until = min(self._until, time.monotonic() + grace_s)

    @property
    def left_s(self) -> float:
        """Seconds that it still lasts; not above zero once it is over."""
        return self._until - time.monotonic()


def end_processes(find: Callable[[], list[Process]], patience: Patience) -> list[Process]:
    """End processes: one TERM to each, the grace, KILL.

    Args:
        find: Returns those that live; asked again and again, as they may start more.
        patience: The grace.

    Returns:
        Those that could not be ended.

    """
    asked: set[tuple[int, float]] = set()
    while True:
        living = find()
        if not living:
            return []
        for process in living:
            if process.identity not in asked:
                asked.add(process.identity)
                if send_signal(process, signal.SIGTERM) and process.state in STOPPED:
                    send_signal(process, signal.SIGCONT)  # a stopped one would never see it
        left_s = patience.left_s
        if left_s <= 0:
            break
        wait_for_any(living, min(RESCAN_S, left_s))
    until = time.monotonic() + KILL_S
    while living := find():
        if time.monotonic() >= until:
            return living
        for process in living:
            send_signal(process, signal.SIGKILL)
        wait_for_any(living, RESCAN_S)
    return []
