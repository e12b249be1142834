"""Who has a file open, from `/proc/*/fd`: the identity of the open file decides, never a name.

`/proc/locks` names only the process that took a lock, which may be long dead while its child keeps it.
"""

# A scan of every descriptor of every process: plain strings.
# ruff: noqa: PTH116, PTH123, PTH208

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from hostres.procfs import command_of, process_ids

Identity = tuple[int, int]
"""Device and inode of an open file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process as a person knows it.

    Attributes:
        pid: Its number.
        command: Its command line, shortened.

    """

    pid: int
    command: str


def holders_of(files: Iterable[os.stat_result]) -> Mapping[Identity, tuple[Holder, ...]]:
    """Return the processes that hold the lock of each of *files*, by (device, inode).

    Args:
        files: What `stat` says of them. Readers that only look on are left out.

    """
    found: dict[Identity, list[Holder]] = {(file.st_dev, file.st_ino): [] for file in files}
    if found:
        for pid in sorted(process_ids()):
            held = identities(pid, found, locked_only=True)
            if held:
                holder = Holder(pid=pid, command=command_of(pid))
                for identity in held:
                    found[identity].append(holder)
    return {identity: tuple(holders) for identity, holders in found.items()}


def identities(pid: int, wanted: Collection[Identity], *, locked_only: bool = False) -> set[Identity]:
    """Return which of the *wanted* (device, inode) a process has open; nothing if one may not look."""
    return _open_where(pid, wanted, lambda name: not locked_only or _locked(pid, name))


def inherited(pid: int, wanted: Collection[Identity]) -> set[Identity]:
    """Return which of the *wanted* locks a process has inherited; whoever took one itself would not pass it on.

    What we open is closed when a program starts; only a child that was given a lease has it open without that mark.
    """
    return _open_where(pid, wanted, lambda name: _locked(pid, name) and not _flags(pid, name) & os.O_CLOEXEC)


def _open_where(pid: int, wanted: Collection[Identity], accepted: Callable[[str], bool]) -> set[Identity]:
    """Return which of the *wanted* a process has open by a descriptor that is accepted, which may be gone by then."""
    found: set[Identity] = set()
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return found
    for name in names:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            status = os.stat(f"/proc/{pid}/fd/{name}")
            identity = (status.st_dev, status.st_ino)
            if identity in wanted and accepted(name):
                found.add(identity)
    return found


def _flags(pid: int, name: str) -> int:
    with open(f"/proc/{pid}/fdinfo/{name}", "rb") as file:
        return int(next(line.split()[1] for line in file if line.startswith(b"flags:")), 8)


def _locked(pid: int, name: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{name}", "rb") as file:
        return b"lock:" in file.read()
