"""Which tickets live, and why each waiter waits: read without the gate, and without trusting names.

State comes from a ticket's name, life from its lock.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hostres import descriptors
from hostres.claims import MEMORY, default_capacity
from hostres.clock import boot_id, boot_ns
from hostres.errors import HostlerError, unavailable
from hostres.folders import private_folder
from hostres.listing import DOZING, Entry, Line, Listing
from hostres.memory import attainable, available_mb
from hostres.queue import Demand, Shortage, Wait, explain
from hostres.state import DamagedStateError, MachineState, StateFile
from hostres.tickets import Record, TicketFolder
from hostres.turnaround import read_turnaround

_TRIES = 8
"""How often the names are read again if one is not there any more; it may belong to somebody who lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A ticket that lived when it was looked at.

    Attributes:
        entry: Its name.
        record: What it claims, and for whom.
        status: What `fstat` says of its FIFO.

    """

    entry: Entry
    record: Record
    status: os.stat_result

    @property
    def demand(self) -> Demand:
        """What it claims, as the queue sees it."""
        demand = self.record.demand(self.entry.number)
        return demand._replace(dozing=True) if self.entry.state == DOZING else demand


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The machine folder at one moment.

    Attributes:
        boot_ns: The moment, on the boot-time clock.
        state: What the processes agree on; None if they have not yet, in this boot.
        listing: The names, without those of the dead.
        live: The live tickets by key, those that hold first.
        available_mb: Memory that is really available, None if the claims alone count.
        turnaround_ns: Moving average of a turn, from asking to release; 0 before the first.

    """

    boot_ns: int
    state: MachineState | None
    listing: Listing
    live: Mapping[str, Seen]
    available_mb: int | None = None
    turnaround_ns: int = 0

    @property
    def capacity(self) -> Mapping[str, int]:
        """The capacities of the machine, resource → units."""
        return self.state.capacity if self.state else default_capacity()

    def lacks_memory(self, short: Shortage) -> bool:
        """Return whether the claims of others leave a waiter enough, but not so much memory is really there."""
        missing = self.capacity.get(MEMORY, 0) - self._attainable().get(MEMORY, 0)
        return short.resource == MEMORY and missing > 0 and short.wanted <= short.free + missing

    def _attainable(self) -> Mapping[str, int]:
        if self.available_mb is None:
            return self.capacity
        return attainable(self.capacity, self._memory_held(), self.available_mb)

    def _memory_held(self) -> Iterator[tuple[int, float]]:
        for entry in self.listing.holding:
            seen = self.live[entry.key]
            if MEMORY in seen.record.claims:
                yield seen.record.claims[MEMORY], seen.status.st_ctime

    def line_of(self, entry: Entry) -> tuple[Line, Mapping[str, int]]:
        """Return the line in which a ticket stands and what there is for that line: the machine's, or a ticket's."""
        host = self.listing.host(entry)
        return self.listing.line(host), self.capacity if host is None else self.live[host.key].record.claims

    def waits(self) -> dict[str, Wait]:
        """Return for each waiter by key why it waits."""
        waits: dict[str, Wait] = {}
        numbers = {seen.entry.number: seen for seen in self.live.values()}
        lines: list[tuple[Line, Mapping[str, int]]] = [(self.listing, self._attainable())]
        lines += [(line, numbers[host].record.claims) for host, line in self.listing.inside.items() if host in numbers]
        patience_ns = self.state.patience_ns(self.turnaround_ns) if self.state else None
        for line, capacity in lines:
            keys = {entry.number: entry.key for entry in line.waiting}
            for wait in explain(
                [self.live[entry.key].demand for entry in line.holding],
                [self.live[entry.key].demand for entry in line.waiting],
                capacity,
                now_boot_ns=self.boot_ns,
                patience_ns=patience_ns,
            ):
                waits[keys[wait.number]] = wait
        return waits


def survey(folder: Path, records: dict[str, Record] | None = None) -> Survey | None:
    """Read the machine folder; None if there is none yet.

    Args:
        folder: The machine folder.
        records: As for `read_tickets`.

    Raises:
        HostlerError: `unsafe-state`, `unavailable`.

    """
    try:
        os.lstat(folder)
    except FileNotFoundError:
        return None
    folder = private_folder(folder, create=False)
    state = None
    try:
        with contextlib.suppress(DamagedStateError):
            state = StateFile(str(folder)).read()
        turnaround_ns = read_turnaround(folder)
        listing, live = read_tickets(folder / "t", records)
    except OSError as error:
        raise unavailable(f"{folder} cannot be read", error) from error
    if state is not None and state.boot != boot_id():
        state = None
    real = available_mb() if state is not None and state.real_memory else None
    return Survey(
        boot_ns=boot_ns(),
        state=state,
        listing=listing,
        live=live,
        available_mb=real,
        turnaround_ns=turnaround_ns,
    )


def read_tickets(folder: Path, records: dict[str, Record] | None = None) -> tuple[Listing, dict[str, Seen]]:
    """Return the names in a folder of tickets without those of the dead, and the live tickets by key.

    Args:
        folder: The folder; a missing one is an empty one.
        records: What was read before, by key, for who looks again and again: a record does not change as long as its
            key does not. Afterwards those of the live tickets.

    Raises:
        HostlerError: `unsafe-state`.

    """
    if not os.path.lexists(folder):
        return Listing(), {}
    tickets = TicketFolder(str(private_folder(folder, create=False)))
    for _ in range(_TRIES):
        listing = tickets.scan()
        live: dict[str, Seen] = {}
        gone = 0
        for entry in listing.entries:
            seen = _look_at(tickets, entry, records)
            if seen is None:
                listing.forget(entry)
                gone += not os.path.lexists(tickets.path(entry.name))
            else:
                live[entry.key] = seen
        if not gone:
            break  # else one may only be called otherwise by now
    if records is not None:
        records.clear()
        records.update({key: seen.record for key, seen in live.items()})
    return listing, live


def _look_at(tickets: TicketFolder, entry: Entry, records: Mapping[str, Record] | None) -> Seen | None:
    fd = tickets.watch(entry)
    if fd is None:
        return None
    try:
        status = os.fstat(fd)
    finally:
        descriptors.close(fd)
    try:
        known = records.get(entry.key) if records else None
        return Seen(entry=entry, record=known or tickets.read(entry.number), status=status)
    except HostlerError:
        if tickets.is_live(entry):
            raise
        return None  # it went while we looked
