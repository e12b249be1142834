"""The capacities of the machine as a person sees and changes them.

A change is in force at once: who waits for what is there now is woken, who waits for what is not there any more is
told, and who holds keeps it. The configuration is changed with it, so that the next program and the next boot agree.
"""

import contextlib
import os
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hostres.claims import MAX_UNITS, default_capacity, is_name, is_units
from hostres.clock import boot_ns
from hostres.configuration import BYTE_ORDER_MARK, configuration_path
from hostres.decisions import Decision, DecisionFile
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import private_folder, refuse_network_file_system
from hostres.gate import Gate
from hostres.locks import poke
from hostres.memory import available_mb
from hostres.profile import Profile
from hostres.queue import KEY
from hostres.replacement import Replacement, replacement
from hostres.settings import MachineSettings, check_number, machine_settings
from hostres.state import StateFile
from hostres.suggestions import did_you_mean
from hostres.sweeping import Sweeper
from hostres.tickets import Listing, TicketFolder
from hostres.toml_text import with_capacity
from hostres.top import REVOKED, snapshot

TRIES: Final = 8
"""How often a configuration is read anew that somebody else changes at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of the machine.

    Attributes:
        name: Its name.
        units: Its capacity.
        used: Units that are admitted.
        source: Where the capacity comes from: "configuration", "decision" (of a person, not in this configuration),
            "default" or "program".
        configured: What the configuration says, if that is not in force.

    """

    name: str
    units: int
    used: int
    source: str
    configured: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacities:
    """What the machine has.

    Attributes:
        resources: In order of their names.
        profile: Short name of the profile in force, equal for equal capacities.
        turnaround_s: Seconds from asking to release, on a moving average; None before the first.
        settings: What the configuration says.
        available_mb: Memory that is really available, None if that is not what memory-mb is admitted by.

    """

    resources: tuple[Resource, ...]
    profile: str
    turnaround_s: float | None
    settings: MachineSettings
    available_mb: int | None


def capacities(folder: Path, environ: Mapping[str, str]) -> Capacities:
    """Return the capacities that the next ask will meet; nothing is made or changed.

    Args:
        folder: The machine folder.
        environ: The environment, which says where the configuration is.

    Raises:
        HostlerError: `unsafe-state`, `invalid-profile`, or as `machine_settings`.

    """
    from hostres.state import profile_id  # noqa: PLC0415  hashing, for people alone

    settings = machine_settings(environ)
    configured = settings.capacity
    top = snapshot(folder)
    idle = all(row.state == REVOKED for row in top.tickets)
    in_force = {**top.capacity, **configured} if idle else top.capacity
    if settings.claims is not None:
        settings.claims.check(in_force)
    real_memory = top.real_memory if settings.real_memory is None else settings.real_memory
    decisions = DecisionFile(str(folder)).read()
    defaults = default_capacity()

    def source(name: str, units: int) -> str:
        if configured.get(name) == units:
            return "configuration"
        if name in decisions and decisions[name].units == units:
            return "decision"
        return "default" if defaults.get(name) == units else "program"

    return Capacities(
        resources=tuple(
            Resource(
                name=name,
                units=units,
                used=top.used.get(name, 0),
                source=source(name, units),
                configured=configured[name] if configured.get(name, units) != units else None,
            )
            for name, units in sorted(in_force.items())
        ),
        profile=profile_id(in_force),
        turnaround_s=top.turnaround_s,
        settings=settings,
        available_mb=available_mb() if real_memory else None,
    )


def set_capacities(folder: Path, environ: Mapping[str, str], changes: Mapping[str, int | None]) -> None:
    """Change capacities, in force and in the configuration.

    Args:
        folder: The machine folder.
        environ: The environment, which says where the configuration is.
        changes: Resource → units; None takes an own resource away, and gives one of every machine its default back.

    Raises:
        HostlerError: `invalid-data`: no name or no units, or a configuration that cannot be changed; `not-found`: a
            resource to be taken away is not there; `invalid-profile`: too many; `conflict`: somebody changes the
            configuration all the time; `unsafe-state`, `unavailable`. Then nothing is changed.

    """
    for name, units in changes.items():
        if not (is_name(name) and (units is None or is_units(units, least=0))):
            todo = f"write RES=UNITS, as in ffmpeg=2, of at most {MAX_UNITS} units"
            raise HostlerError(Code.INVALID_DATA, f"{name}={units} is not a capacity", todo)
    folder = private_folder(folder)
    refuse_network_file_system(folder)
    private_folder(folder / "t")
    path = configuration_path(environ)
    try:
        for _ in range(TRIES):
            seen = _stamp(path)
            configured = machine_settings(environ).capacity  # what nobody could use is not changed
            wanted = {**configured, **changes}
            check_number([name for name, units in wanted.items() if units is not None], path)
            before = path.read_bytes() if seen else b""
            mark = BYTE_ORDER_MARK if before.startswith(BYTE_ORDER_MARK) else b""
            text = before.removeprefix(mark).decode()
            for name, units in changes.items():
                text = with_capacity(text, name, units)
            if not seen and not text:
                draft: contextlib.AbstractContextManager[Replacement | None] = contextlib.nullcontext()
            else:
                draft = replacement(path, mark + text.encode())
            with draft as written, Gate.at(f"{folder}/gate"):
                if _stamp(path) == seen:
                    _put_in_force(folder, changes, written, configured)
                    return
    except OSError as error:
        raise unavailable("nothing was changed, as the capacities cannot be written", error) from error
    raise HostlerError(Code.CONFLICT, f"somebody else is changing {path} all the time", "try again later")


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no signal to this thread come between one step and the next."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _put_in_force(
    folder: Path, changes: Mapping[str, int | None], draft: Replacement | None, configured: Collection[str]
) -> None:
    tickets = TicketFolder(str(folder / "t"))
    state_file = StateFile(str(folder))
    decision_file = DecisionFile(str(folder))
    listing = tickets.scan()
    state = Profile(state_file, tickets, Sweeper(tickets), {}).agreed(listing)
    defaults = default_capacity()
    for name, units in changes.items():
        if units is None and not (name in state.capacity or name in configured or name in defaults):
            todo = did_you_mean(name, {*state.capacity, *configured, *defaults}, "see `hostler machine show`")
            raise HostlerError(Code.NOT_FOUND, f"there is no resource {name} to take back", todo)
    capacity = dict(state.capacity)
    for name, wanted in changes.items():
        units = defaults.get(name) if wanted is None else wanted
        if units is None:
            capacity.pop(name, None)
        else:
            capacity[name] = units
    wanted_state = state._replace(capacity=capacity, next_ticket=max(listing.highest + 1, state.next_ticket))
    try:
        decision_file.prepare(_decided(decision_file, changes))
        state_file.prepare(wanted_state)  # whatever has no room has said so by now
        tickets.disown(listing)
        for name in _concerned(tickets, listing, capacity):
            poke(tickets.path(name))  # it waits at the gate until all is done
        with _undisturbed():
            if draft is not None:
                draft.commit()
            # dated anew: until now somebody may have read the old configuration, who has not heard of this
            decision_file.prepare(_decided(decision_file, changes))
            decision_file.commit()  # changes nothing as long as the state says otherwise
            state_file.commit(wanted_state)
    except BaseException:
        decision_file.discard()
        state_file.discard()
        if draft is not None:
            _undo(draft)
        raise


def _decided(file: DecisionFile, changes: Mapping[str, int | None]) -> Mapping[str, Decision]:
    now_boot_ns = boot_ns()
    return {**file.read(), **{name: Decision(units=units, boot_ns=now_boot_ns) for name, units in changes.items()}}


def _undo(draft: Replacement) -> None:
    try:
        draft.undo()
    except OSError as error:
        what = "the configuration was changed, what is in force was not, and the old one cannot be put back"
        raise unavailable(what, error) from error


def _concerned(tickets: TicketFolder, listing: Listing, capacity: Mapping[str, int]) -> Iterable[str]:
    """Return who must look: the chief, who wakes all that may go now, and whoever waits for what is there no more."""
    first = 2  # the chief may be dying
    for entry in listing.awake:
        units: Mapping[str, int] = {}
        with contextlib.suppress(HostlerError):
            units = tickets.demand(entry).units
        never = any(wanted > capacity.get(name, 0) for name, wanted in units.items() if name[0] != KEY)
        if first or never:
            first = max(0, first - 1)
            yield entry.name
