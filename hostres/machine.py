"""The machine folder: what processes decide together, under the gate.

A process admits only itself. No wake-up is lost: a watch is opened before the probe that finds its ticket
alive, so the hang-up must come; and who is admitted pokes whoever must look next before the rename that
commits it, which makes the one who was poked wait at the gate until it is done.
"""

import contextlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from hostres.claims import check_claims
from hostres.clock import boot_ns
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import private_folder, refuse_network_file_system
from hostres.locks import FifoLock, Gate, poke
from hostres.profile import Profile
from hostres.queue import Demand, decide
from hostres.state import MachineState, StateFile
from hostres.sweeping import Sweeper
from hostres.ticket import Ticket
from hostres.tickets import HOLDING, MAX_TICKETS, WAITING, Entry, Listing, Record, TicketFolder


class Machine:
    """One process's view of a machine folder.

    Attributes:
        folder: The machine folder.
        looks: How often a waiter of this process looked.
        safety_net_looks: How often one looked although nothing had woken it.
        safety_net_progress: How often that was what made progress; expected to stay 0.

    """

    COUNT_S: Final = 0.25
    """Turns count once in so many seconds: their average is advice, and writing it delays a hand-over."""

    def __init__(self, folder: Path, explicit: Mapping[str, int]) -> None:
        self.folder = private_folder(folder)
        refuse_network_file_system(self.folder)
        self.tickets = TicketFolder(str(private_folder(self.folder / "t")))
        self.looks = self.safety_net_looks = self.safety_net_progress = 0
        self._gate = Gate.at(f"{self.folder}/gate")
        self._state_file = StateFile(str(self.folder))
        self._sweeper = Sweeper(self.tickets)
        self._profile = Profile(self._state_file, self.tickets, self._sweeper, explicit)

    def capacity(self) -> Mapping[str, int]:
        """Return the capacities that the next ask will meet, read without the gate."""
        return self._profile.expected()

    def ask(self, record: Record, *, until: float | None = None) -> Ticket:
        """Make a ticket: holding at once if the queue lets it go, else waiting.

        Args:
            record: What it claims, and for whom.
            until: Monotonic second after which the gate is not waited for.

        Raises:
            HostlerError: `invalid-claims`, `profile-mismatch`, `unsafe-state`, `unavailable`, `wait-timeout`.

        """
        self._check_folders()
        with self._deciding("no ticket could be made", until):
            listing = self.tickets.scan()
            self._sweeper.tidy(listing)
            state = self._profile.in_force(listing)
            check_claims(record.claims, state.capacity)
            if listing.tickets >= MAX_TICKETS and self._sweeper.live(listing) >= MAX_TICKETS:
                raise HostlerError(
                    Code.UNAVAILABLE, f"the machine has {MAX_TICKETS} tickets already", "wait until some are done"
                )
            return self._enter(max(listing.highest + 1, state.next_ticket), record, listing, state)

    def look(
        self,
        ticket: Ticket,
        *,
        hung: Collection[str] = (),
        unprompted: bool = False,
        until: float | None = None,
    ) -> bool:
        """Look whether a waiting ticket may go, and admit it if so.

        Args:
            ticket: A ticket of this process.
            hung: Keys of watched tickets that hung up.
            unprompted: Nothing woke it: trust no watch, probe everybody.
            until: Monotonic second after which the gate is not waited for.

        Returns:
            Whether it is admitted.

        Raises:
            HostlerError: `ownership-lost`: its file is gone; `unsafe-state`; `unavailable`; `wait-timeout`.

        """
        with self._deciding("the queue could not be read", until), ticket.mutex:
            if ticket.withdrawn:
                return False
            self.looks += 1
            listing = self.tickets.scan()
            if ticket.entry(WAITING) not in listing.waiting:
                raise HostlerError(
                    Code.OWNERSHIP_LOST, f"ticket {ticket.number} was removed while it waited", "ask again"
                )
            state = self._profile.in_force(listing)
            before = listing.tickets
            admitted = self._look(ticket, listing, state, hung=hung, unprompted=unprompted)
            if unprompted:
                self.safety_net_looks += 1
                if admitted or listing.tickets < before:
                    self.safety_net_progress += 1
            return admitted

    def released(self, ticket: Ticket) -> None:
        """Take note that this process has closed a ticket that held; the next ask removes its name."""
        self._sweeper.released(ticket.key)

    @contextlib.contextmanager
    def _deciding(self, what: str, until: float | None) -> Iterator[None]:
        try:
            self._gate.enter(until=until)
            try:
                yield
            finally:
                self._gate.leave()
        except OSError as error:
            raise unavailable(what, error) from error

    def _enter(self, number: int, record: Record, listing: Listing, state: MachineState) -> Ticket:
        go = number in self._who_may_go(listing, state, record.demand(number))
        if go and listing.waiting:
            self._poke(listing.waiting[0])  # the chief must watch the new holder
        nonce = os.urandom(4).hex()
        self.tickets.write(number, record)
        try:
            name = f"{HOLDING if go else WAITING}.{number}.{nonce}"
            lock = FifoLock.born(self.tickets.place, name)
        except BaseException:
            self.tickets.sweep_name(f"{number}.json")
            raise
        ticket = Ticket(number, nonce, lock, record)
        self.tickets.remember(ticket.key, ticket.demand)
        if go:
            self._hold(ticket)
            return ticket
        try:
            listing.waiting.append(ticket.entry(WAITING))
            self._look(ticket, listing, state)
        except BaseException:
            ticket.withdraw()
            ticket.unwatch()
            raise
        return ticket

    def _look(
        self,
        ticket: Ticket,
        listing: Listing,
        state: MachineState,
        *,
        hung: Collection[str] = (),
        unprompted: bool = False,
    ) -> bool:
        swept = self._watch(ticket, listing, hung, unprompted=unprompted)
        self._count_turns(state, swept, hung)
        may_go = self._who_may_go(listing, state)
        mine = listing.waiting.index(ticket.entry(WAITING))
        ticket.rank = min(mine, 2)
        admitted = ticket.number in may_go
        concerned: set[Entry] = set()
        if admitted or hung or swept or mine == 0:
            concerned.update(entry for entry in listing.waiting if entry.number in may_go)
        if admitted:
            concerned.update(listing.waiting[mine + 1 : mine + 2])  # it has a new predecessor, or is the new chief
            concerned.add(listing.waiting[0])  # it must watch the new holder
        concerned.discard(ticket.entry(WAITING))
        for entry in sorted(concerned):
            self._poke(entry)
        if admitted:
            ticket.lock.rename(self.tickets.path(ticket.entry(HOLDING).name))
            self._hold(ticket)
        return admitted

    def _hold(self, ticket: Ticket) -> None:
        ticket.admitted_boot_ns = boot_ns()
        ticket.holding = True
        self._sweeper.own(ticket.key)
        ticket.unwatch()

    def _watch(
        self, ticket: Ticket, listing: Listing, hung: Collection[str], *, unprompted: bool
    ) -> dict[Entry, Demand | None]:
        """Watch whom *ticket* waits for; the dead are removed and returned."""
        swept: dict[Entry, Demand | None] = {}
        wanted: set[str] = set()

        def alive(entry: Entry) -> bool:
            if entry.key in ticket.watches and entry.key not in hung and not unprompted:
                return True
            ticket.unwatch([entry.key])
            fd = self.tickets.watch(entry)
            if fd is None:
                swept[entry] = self.tickets.demand_of_dead(entry) if entry.key in hung else None
                self._sweeper.bury(entry, listing)
                return False
            ticket.watches[entry.key] = fd
            return True

        older = [entry for entry in listing.waiting if entry.number < ticket.number]
        while older:
            if alive(older[-1]):
                wanted.add(older[-1].key)
                break
            older.pop()
        if unprompted:
            older = [entry for entry in older if alive(entry)]
        if not older or unprompted:
            holding = [entry for entry in tuple(listing.holding) if alive(entry)]
            if not older:
                wanted.update(entry.key for entry in holding)
        ticket.unwatch(ticket.watches.keys() - wanted)
        return swept

    def _who_may_go(self, listing: Listing, state: MachineState, newcomer: Demand | None = None) -> tuple[int, ...]:
        holders = [demand for entry in tuple(listing.holding) if (demand := self._demand(entry, listing))]
        waiters = [demand for entry in tuple(listing.waiting) if (demand := self._demand(entry, listing))]
        if newcomer is not None:
            waiters.append(newcomer)
        return decide(holders, waiters, state.capacity).go

    def _demand(self, entry: Entry, listing: Listing) -> Demand | None:
        try:
            return self.tickets.demand(entry)
        except HostlerError:
            if not self._sweeper.dead(entry, listing):
                raise
            return None  # what a dead ticket left behind need not be whole

    def _poke(self, entry: Entry) -> None:
        poke(self.tickets.path(entry.name))

    def _count_turns(self, state: MachineState, swept: Mapping[Entry, Demand | None], hung: Collection[str]) -> None:
        turns = [
            boot_ns() - demand.asked_boot_ns
            for entry, demand in swept.items()
            if demand is not None and entry.state == HOLDING and entry.key in hung
        ]
        if turns and self._state_file.age_s() >= self.COUNT_S:
            average = state
            for turn in turns:
                average = replace(average, turnaround_ns=average.after_turn(max(1, turn)))
            with contextlib.suppress(OSError):  # a full disk must not stop a hand-over
                self._state_file.write(average)

    def _check_folders(self) -> None:
        for place in (str(self.folder), self.tickets.place):
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(place)
                if stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077 and status.st_uid == os.geteuid():
                    continue
            private_folder(Path(place))
