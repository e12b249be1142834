"""What is wrong with a machine folder, or worth a note. Looking makes nothing, removes nothing and mends nothing."""

import contextlib
import fcntl
import functools
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hostres.affinity import CPU, machine_cpus
from hostres.clock import boot_id
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import check_private_file, private_folder, refuse_network_file_system
from hostres.holders import Holder, holders_of
from hostres.listing import Listing
from hostres.locks import NEW, is_held
from hostres.open_folders import reopening
from hostres.procfs import STOPPED, read_process
from hostres.pulse import FILE as PULSE
from hostres.revocation import FOLDER
from hostres.state import DamagedStateError, StateFile
from hostres.tickets import TicketFolder, read_small

TICKETS: Final = "t"
FILES: Final = frozenset({"gate", "state.json", "decisions.json", PULSE})
SEVERAL: Final = 5
"""So many names are told; the rest is counted."""
PAUSE_S: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        what: What is the case, one line.
        todo: What to do about it, one line.
        code: The error that it leads to; None for what is only worth a note.

    """

    what: str
    todo: str
    code: Code | None = None


def inspect(folder: Path, *, gate_patience_s: float = 1.0) -> list[Finding]:
    """Look at everything in a machine folder.

    Args:
        folder: The machine folder; a missing one is fine.
        gate_patience_s: Seconds for which the gate may be held before that is told.

    """
    if not os.path.lexists(folder):
        return []
    found: list[Finding] = []
    try:
        folder = private_folder(folder, create=False)
        refuse_network_file_system(folder)
        os.listdir(folder)  # noqa: PTH208  else each look would say the same
    except HostlerError as error:
        return [_of(error)]
    except OSError as error:
        return [_closed(folder, error)]
    gate = functools.partial(_gate, patience_s=gate_patience_s)
    for look in (_names, _state, _decisions, _tickets, _revoked, _capacities, gate):
        try:
            found.extend(look(folder))
        except HostlerError as error:
            found.append(_of(error))
        except OSError as error:
            found.append(_closed(folder, error))
    return list(dict.fromkeys(found))


def _of(error: HostlerError) -> Finding:
    return Finding(what=error.what, todo=error.todo, code=error.code)


def _closed(folder: Path, error: OSError) -> Finding:
    refused = unavailable(f"{folder} cannot be read", error)
    return Finding(what=refused.what, todo=reopening(error) or refused.todo, code=refused.code)


def _several(names: Iterable[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - SEVERAL} more" if len(listed) > SEVERAL else ""
    return ", ".join(listed[:SEVERAL]) + more


def _processes(holders: Iterable[Holder]) -> str:
    names = []
    for holder in holders:
        process = read_process(holder.pid)
        stopped = ", which is stopped" if process is not None and process.state in STOPPED else ""
        names.append(f"pid {holder.pid} ({holder.command}){stopped}")
    return ", ".join(names) or "a process that cannot be seen from here"


def _names(folder: Path) -> Iterator[Finding]:
    """Modes, owners, links, and names that are nobody's."""
    strange = []
    for place in (folder, folder / TICKETS, folder / FOLDER):
        if not place.is_dir() or place.is_symlink():
            continue
        if place != folder:
            private_folder(place, create=False)
        listing = Listing.of(os.listdir(place)) if place != folder else None  # noqa: PTH208  names alone
        nobodys = set(listing.strange) if listing is not None else _unknown(folder)
        strange += [str((place / name).relative_to(folder)) for name in nobodys]
        for path in place.iterdir():
            if path.name in nobodys or (place == folder and path.name in (TICKETS, FOLDER) and path.is_dir()):
                continue
            with contextlib.suppress(FileNotFoundError):  # it went while we looked
                try:
                    check_private_file(path)
                except HostlerError as error:
                    yield _of(error)
    if strange:
        yield Finding(
            what=f"unknown files in {folder}: {_several(strange)}", todo="look at them; nothing here made them"
        )


def _unknown(folder: Path) -> set[str]:
    known = {*FILES, TICKETS, FOLDER}
    return {path.name for path in folder.iterdir() if path.name not in known and not path.name.startswith(NEW)}


def _state(folder: Path) -> Iterator[Finding]:
    state = StateFile(str(folder))
    try:
        damage = "missing" if state.read() is None else ""
    except DamagedStateError as error:
        damage = f"damaged ({error})"
    if not damage:
        return
    live = _live(folder / TICKETS)
    if live:
        yield Finding(
            what=f"{state.place} is {damage} while {len(live)} tickets live",
            todo="end the programs that hold or wait, then try again",
            code=Code.UNSAFE_STATE,
        )
    elif damage != "missing":
        yield Finding(what=f"{state.place} is {damage}", todo="nothing to do: the next ask makes a new one")


def _decisions(folder: Path) -> Iterator[Finding]:
    path = folder / "decisions.json"
    with contextlib.suppress(FileNotFoundError):
        try:
            whole = isinstance(json.loads(read_small(str(path))), dict)
        except (ValueError, RecursionError):
            whole = False
        if not whole:
            yield Finding(what=f"{path} is damaged", todo="repeat what was set with `hostler machine set`")


def _tickets(folder: Path) -> Iterator[Finding]:
    place = folder / TICKETS
    if not place.is_dir():
        return
    private_folder(place, create=False)  # else what is in it would be called unsafe as well, for what it is in
    tickets = TicketFolder(str(place))
    listing = tickets.scan()
    dead = []
    for entry in listing.entries:
        if not tickets.is_live(entry):
            dead.append(entry.name)
            continue
        try:
            tickets.read(entry.number)
        except HostlerError as error:
            if tickets.is_live(entry):
                yield _of(error)
    if dead:
        what = f"{len(dead)} names of tickets that are dead: {_several(dead)}"
        yield Finding(what=what, todo="nothing to do: the next asks remove them")


def _revoked(folder: Path) -> Iterator[Finding]:
    place = folder / FOLDER
    if place.is_dir():
        private_folder(place, create=False)
    for name in _live(place):
        with contextlib.suppress(FileNotFoundError):
            (holders,) = holders_of([os.lstat(place / name)]).values()
            yield Finding(
                what=f"ticket {name.split('.')[1]} is revoked, and {_processes(holders)} still holds it open",
                todo="end what should not run any more; what it does is counted nowhere",
            )


def _capacities(folder: Path) -> Iterator[Finding]:
    state = None
    with contextlib.suppress(DamagedStateError):
        state = StateFile(str(folder)).read()
    if state is None or state.boot != boot_id():
        return
    memory_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (1 << 20)
    for name, there, what in ((CPU, machine_cpus(), "CPUs"), ("memory-mb", memory_mb, "MB of memory")):
        if state.capacity.get(name, 0) > there:
            yield Finding(
                what=f"the capacity {name}={state.capacity[name]} is more than the {there} {what} of the machine",
                todo=f"`hostler machine set {name}={there}`, unless that is meant",
            )


def _gate(folder: Path, patience_s: float) -> Iterator[Finding]:
    path = folder / "gate"
    until = time.monotonic() + patience_s
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            while _is_locked(fd):
                if time.monotonic() >= until:
                    (holders,) = holders_of([os.fstat(fd)]).values()
                    yield Finding(
                        what=f"{path} has been held for {patience_s:g} s by {_processes(holders)}",
                        todo="continue or end that process: nobody is admitted meanwhile",
                        code=Code.UNAVAILABLE,
                    )
                    return
                time.sleep(PAUSE_S)
        finally:
            os.close(fd)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def _live(place: Path) -> list[str]:
    if not place.is_dir():
        return []
    names = [entry.name for entry in Listing.of(os.listdir(place)).entries]  # noqa: PTH208
    return [name for name in names if stat.S_ISFIFO(_mode(place / name)) and is_held(place / name)]


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return 0
