"""Machine-wide admission: its folder, the capacities in force, and what is in use."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from hostler.config import Config
from hostler.diagnosis.findings import Finding, origin, wrong
from hostler.views.machine_rules import rules_text
from hostler.views.naming import claims_text
from hostler.views.terminal import shown_path
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import file_system_type
from hostres.inspection import inspect
from hostres.locks import NEW
from hostres.memory import available_mb
from hostres.settings import MachineSettings
from hostres.sharing import MODE
from hostres.top import snapshot

MACHINE = "HOSTLER_MACHINE_DIR"


def look_at_machine(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the machine folder.

    Args:
        config: Names it, and the capacities that the file wants.
        environ: Whether a variable names it.

    Raises:
        HostlerError: It cannot be read.

    """
    folder = config.machine_folder
    found_wrong = inspect(folder)
    where = f"{shown_path(str(folder))} ({origin(environ, MACHINE)})"
    refused, todo = None, ""
    if not os.path.lexists(folder):
        where += ": not there; the first admission makes it"
    elif not any(found.code for found in found_wrong):
        kind = file_system_type(folder)
        where += f": {_whose(folder, config.machine)}, on {kind or 'an unknown'} file system"
        refused = _refused(folder)
        if kind == "overlay":
            where += ", which is a layer of a container: who is outside it is not counted"
            todo = f"mount one folder of the machine for all, and name it in {MACHINE}, unless that is meant"
    yield Finding(name="machine", said=where, todo=todo)
    if refused is not None:
        yield wrong("machine", unavailable(f"nobody can be admitted in {folder}", refused))
    for found in found_wrong:
        if found.code is None:
            yield Finding(name="machine", said=found.what, todo=found.todo)
        else:
            yield wrong("machine", HostlerError(found.code, found.what, found.todo))
    top = snapshot(folder)
    different = {name: units for name, units in config.capacity.items() if top.capacity.get(name) != units}
    if different and top.tickets:
        error = HostlerError(
            Code.PROFILE_MISMATCH,
            f"the configuration says {claims_text(different)}, the machine in use says otherwise",
            "wait until nothing is admitted, or set equal capacities in [machine.capacity]",
        )
        yield wrong("capacity", error)
    capacity = {**top.capacity, **config.capacity} if not top.tickets else top.capacity
    yield from _rules(config.machine, capacity, real_memory=top.real_memory)
    explicit = f"; set in the configuration: {', '.join(sorted(config.capacity))}" if config.capacity else ""
    yield Finding(name="capacity", said=f"{claims_text(capacity)}{explicit}")
    used = {name: units for name, units in top.used.items() if units}
    waiting = sum(row.state == "waiting" for row in top.tickets)
    yield Finding(name="in use", said=f"{claims_text(used)}, {waiting} waiting")


def _whose(folder: Path, settings: MachineSettings) -> str:
    shared = stat.S_IMODE(folder.lstat().st_mode) == MODE
    return f"shared with the group {settings.group}" if shared else "private"


def _refused(folder: Path) -> OSError | None:
    """Return what the disk answers to who makes a file: all that is there reads well also where it takes nothing."""
    draft = folder / f"{NEW}{os.urandom(8).hex()}"
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"x")
        finally:
            draft.unlink()
            os.close(fd)
    except OSError as error:
        return OSError(error.errno, error.strerror)  # without the name of what is not there
    return None


def _rules(settings: MachineSettings, capacity: Mapping[str, int], *, real_memory: bool) -> Iterator[Finding]:
    if settings.claims is not None:
        try:
            settings.claims.check(capacity)
        except HostlerError as error:
            yield wrong("claims", error)
    by_memory = real_memory if settings.real_memory is None else settings.real_memory
    for line in rules_text(settings, available_mb() if by_memory else None):
        yield Finding(name="rule", said=line)
