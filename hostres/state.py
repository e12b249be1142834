"""`state.json` of the machine folder: the profile in force and the next ticket.

Replaced by rename, under the gate. Nothing in it outlives a reboot but the number of the next ticket, so
nothing is synced.
"""

# Plain strings on the hot path.
# ruff: noqa: PTH104, PTH108

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from hostres.claims import is_name, is_units
from hostres.errors import Code, HostlerError
from hostres.folders import MAX_BYTES
from hostres.listing import MAX_NUMBER
from hostres.locks import NEW
from hostres.patience import DEFAULT, Patience
from hostres.tickets import read_small, write_new

_FORMAT: Final = 1


class DamagedStateError(Exception):
    """`state.json` cannot be understood."""


class MachineState(NamedTuple):
    """What the processes of the machine agree on.

    Attributes:
        boot: The boot it belongs to.
        next_ticket: No ticket below it will be given out again.
        capacity: The profile in force, resource → units.
        patience: The patience in force, if a program has set one.
        real_memory: Memory must really be available, not only be left of the claims.

    """

    boot: str
    next_ticket: int
    capacity: Mapping[str, int]
    patience: Patience | None = None
    real_memory: bool = False

    def patience_ns(self, turnaround_ns: int) -> int:
        """Return how long the oldest waiter lets others pass, given how long a turn takes on average."""
        return (self.patience or DEFAULT).after(turnaround_ns)


def profile_id(capacity: Mapping[str, int]) -> str:
    """Return a short name for capacities, equal for equal ones."""
    import hashlib  # noqa: PLC0415  for people alone; who hands over needs none of it

    return hashlib.sha256(json.dumps(dict(sorted(capacity.items()))).encode()).hexdigest()[:12]


class StateFile:
    """Reads and writes `state.json`; what writes must hold the gate."""

    def __init__(self, folder: str) -> None:
        self.place = f"{folder}/state.json"
        self._new = f"{folder}/{NEW}state"
        self._seen: tuple[int, int, int] | None = None
        self._state: MachineState | None = None

    def read(self) -> MachineState | None:
        """Return the state, None if there is no file.

        Raises:
            DamagedStateError: The file cannot be understood.
            HostlerError: `unsafe-state`: it is not private, or too large.

        """
        try:
            status = os.lstat(self.place)
        except FileNotFoundError:
            self._seen = None
            return None
        seen = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        if seen != self._seen:
            self._state = _parse(read_small(self.place))
            self._seen = seen
        return self._state

    def unchanged(self) -> MachineState | None:
        """Return the state if its file is the one that was read last, else None."""
        try:
            status = os.lstat(self.place)
        except OSError:
            return None
        return self._state if (status.st_ino, status.st_mtime_ns, status.st_ctime_ns) == self._seen else None

    def known(self) -> MachineState | None:
        """Return the state, None if there is none that can be understood."""
        try:
            return self.read()
        except DamagedStateError:
            return None

    def write(self, state: MachineState) -> None:
        """Replace the state.

        Raises:
            HostlerError: `invalid-profile`: it is more than anybody would read.
            OSError: It cannot be written; the old one stands.

        """
        self.prepare(state)
        self.commit(state)

    def prepare(self, state: MachineState) -> None:
        """Write the next state beside the old one, which stands until `commit`.

        Raises:
            HostlerError: `invalid-profile`: it is more than anybody would read.
            OSError: It cannot be written.

        """
        content = {
            "format": _FORMAT,
            "boot": state.boot,
            "next_ticket": state.next_ticket,
            "profile": {"capacity": dict(sorted(state.capacity.items()))},
        }
        if state.patience is not None:
            content["patience"] = state.patience.to_json()
        if state.real_memory:
            content["real_memory"] = True
        data = json.dumps(content).encode()
        if len(data) > MAX_BYTES:
            raise HostlerError(
                Code.INVALID_PROFILE,
                f"{len(state.capacity)} resources would make {self.place} larger than {MAX_BYTES} bytes",
                "set fewer resources, or give them shorter names",
            )
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._new)
        write_new(self._new, data)

    def commit(self, state: MachineState) -> None:
        """Put in its place what `prepare` wrote.

        Raises:
            OSError: It cannot be renamed; the old one stands.

        """
        os.rename(self._new, self.place)
        status = os.lstat(self.place)
        self._seen, self._state = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns), state

    def discard(self) -> None:
        """Take away what `prepare` wrote and nobody put in its place."""
        with contextlib.suppress(OSError):
            os.unlink(self._new)


def _parse(data: bytes) -> MachineState:
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedStateError(str(error)) from error
    match value:
        case {
            "format": 1,
            "boot": str(boot),
            "next_ticket": int(next_ticket),
            "profile": {"capacity": dict(capacity)},
        } if 1 <= next_ticket <= MAX_NUMBER and all(
            is_name(name) and is_units(units, least=0) for name, units in capacity.items()
        ):
            return MachineState(
                boot=boot,
                next_ticket=next_ticket,
                capacity=capacity,
                patience=_patience(value.get("patience")),
                real_memory=value.get("real_memory") is True,
            )
    raise DamagedStateError("unknown content")


def _patience(value: Any) -> Patience | None:
    if value is None:
        return None
    try:
        return Patience(**value)
    except (TypeError, HostlerError) as error:
        raise DamagedStateError("unknown patience") from error
