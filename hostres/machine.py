"""The machine folder: what processes decide together, under the gate.

A process admits only itself. No wake-up is lost: a watch is opened before the probe that finds its ticket
alive, so the hang-up must come; and who is admitted pokes whoever must look next before the rename that
commits it, which makes the one who was poked wait at the gate until it is done. Time alone lets nobody go,
it only makes the oldest waiter patient; so nothing need wake anybody for it.
"""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from hostres import affinity
from hostres.claims import MEMORY, check_claims
from hostres.clock import boot_ns
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import private_folder, refuse_network_file_system
from hostres.listing import DOZING, HOLDING, WAITING, Entry, Line, Listing, name_of
from hostres.locks import FifoLock, Gate, is_unread, poke
from hostres.nesting import Asker, check_part, check_wait, took_part
from hostres.profile import Profile
from hostres.pulse import FILE as PULSE
from hostres.queue import Demand, decide
from hostres.settings import MachineSettings
from hostres.state import MachineState, StateFile
from hostres.summons import to_rouse
from hostres.sweeping import Sweeper
from hostres.ticket import Ticket
from hostres.tickets import MAX_TICKETS, Record, TicketFolder
from hostres.watching import Watcher


class Machine:
    """One process's view of a machine folder.

    Attributes:
        folder: The machine folder.
        settings: What this process goes by.
        looks: How often a waiter of this process looked.
        safety_net_looks: How often one looked although nothing had woken it.
        safety_net_progress: How often that was what made progress; expected to stay 0.

    """

    COUNT_S: Final = 0.25
    """Turns count once in so many seconds: their average is advice, and writing it delays a hand-over."""

    def __init__(self, folder: Path, settings: MachineSettings) -> None:
        self.folder = private_folder(folder)
        refuse_network_file_system(self.folder)
        self.tickets = TicketFolder(str(private_folder(self.folder / "t")))
        self.looks = self.safety_net_looks = self.safety_net_progress = 0
        self._gate = Gate.at(f"{self.folder}/gate")
        self._state_file = StateFile(str(self.folder))
        self._sweeper = Sweeper(self.tickets)
        self._watcher = Watcher(self.tickets, self._sweeper)
        self.settings = settings
        self._profile = Profile(self._state_file, self.tickets, self._sweeper, settings.capacity)

    def capacity(self) -> Mapping[str, int]:
        """Return the capacities that the next ask will meet, read without the gate."""
        return self._profile.expected()

    def ask(self, record: Record, *, asker: Asker | None = None, until: float | None = None) -> Ticket:
        """Make a ticket: holding at once if the queue lets it go, else waiting.

        Args:
            record: What it claims, and for whom.
            asker: Under which leases it is asked for.
            until: Monotonic second after which the gate is not waited for.

        Raises:
            HostlerError: `invalid-claims`, `conflict`, `profile-mismatch`, `unsafe-state`, `unavailable`,
                `wait-timeout`.

        """
        self._check_folders()
        with self._deciding("no ticket could be made", until):
            listing = self.tickets.scan()
            self._sweeper.tidy(listing)
            state = self._agree_on_rules(self._profile.in_force(listing), listing)
            check_claims(record.claims, state.capacity)
            if listing.tickets >= MAX_TICKETS and self._sweeper.live(listing) >= MAX_TICKETS:
                raise HostlerError(
                    Code.UNAVAILABLE, f"the machine has {MAX_TICKETS} tickets already", "wait until some are done"
                )
            number = max(listing.highest + 1, state.next_ticket)
            return self._enter(number, record, asker or Asker(), listing, state)

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
            if not self._stand_up(ticket, listing):
                raise HostlerError(
                    Code.OWNERSHIP_LOST, f"ticket {ticket.number} was removed while it waited", "ask again"
                )
            state = self._profile.agreed(listing)
            if listing.host(ticket.entry(WAITING)) is None:
                check_claims(ticket.record.claims, state.capacity)  # the capacity may have been lowered meanwhile
            before = listing.tickets
            admitted = self._look(ticket, listing, state, hung=hung, unprompted=unprompted)
            if unprompted:
                self.safety_net_looks += 1
                by_event = not (state.real_memory and MEMORY in ticket.record.claims)  # memory has none
                if listing.tickets < before or (admitted and by_event):
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

    def _enter(self, number: int, record: Record, asker: Asker, listing: Listing, state: MachineState) -> Ticket:
        host = asker.host(listing, self.tickets)
        held = self.tickets.demand(host) if host is not None else None
        if self.settings.claims is not None:
            self.settings.claims.check(state.capacity)
            claims = self.settings.claims.physical(record.claims, held.units if held else state.capacity)
            record = record._replace(claims=claims)
        demand = record.demand(number)
        if host is not None and held is not None:
            check_part(demand, host, held)
        line = listing.line(host)
        go = number in self._who_may_go(listing, host, state, demand)
        if host is not None and not go:
            check_wait(asker, host, self.tickets.place)
        if go:
            for chief in line.awake[:1]:
                self._poke(chief)  # it must watch the new holder
        nonce = os.urandom(4).hex()
        parents = (host.number, *host.parents) if host is not None else ()
        self.tickets.write(number, record)
        try:
            cpus = self._cpus(record, host, listing, state) if go else ""
            name = name_of(number, nonce, HOLDING if go else WAITING, parents)
            lock = FifoLock.born(self.tickets.place, name + cpus)
        except BaseException:
            self.tickets.sweep_name(f"{number}.json")
            raise
        ticket = Ticket(number, nonce, lock, record, parents)
        self.tickets.remember(ticket.key, ticket.demand)
        took_part(ticket, asker)
        if go:
            self._hold(ticket)
            return ticket
        try:
            line.add(ticket.entry(WAITING))
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
        me = ticket.entry(WAITING)
        swept = self._watcher.watch(ticket, listing, hung, unprompted=unprompted)
        state = self._count_turns(state, swept, hung)
        host = listing.host(me)
        line = listing.line(host)
        moved, ticket.host = ticket.host != (host.number if host else 0), host.number if host else 0
        may_go = self._who_may_go(listing, host, state)
        concerned = self._let_doze(ticket, listing, line, may_go)
        if concerned:
            may_go = self._who_may_go(listing, host, state)
        awake = line.awake
        mine = awake.index(me)
        ticket.rank = min(mine, 2)
        # the record of a ticket, as a change of its FIFO would let it seem to have been admitted just now
        ticket.pulse.place = f"{self.folder}/{PULSE}" if host is None else self.tickets.path(f"{host.number}.json")
        if unprompted or mine <= 1:
            ticket.pulse.leave(again=unprompted)
        admitted = ticket.number in may_go
        going = [entry for entry in awake if entry.number in may_go and entry != me]
        if admitted or hung or swept or concerned or unprompted or mine == 0:
            concerned.update(going)
        if admitted or moved:
            concerned.update(awake[mine + 1 : mine + 2])  # it has a new predecessor, or is the new chief
        if admitted:
            concerned.add(awake[0])  # it must watch the new holder
        concerned.discard(me)
        deaf = self._deaf(ticket, line)
        ticket.roused.note(deaf, ())  # who has heard it and is roused again has heard nothing yet
        slow = [*ticket.summons.slow(going), *ticket.roused.slow(deaf)]
        roused = to_rouse(awake, me, slow, chief=unprompted and mine > 0)
        concerned.update(roused)
        for entry in sorted(concerned):
            self._poke(entry)
        ticket.summons.note(() if admitted else going, concerned)
        ticket.roused.note(() if admitted else {*deaf, *roused}, concerned, hasty=bool(slow) or ticket.rank > 1)
        if admitted:
            cpus = self._cpus(ticket.record, host, listing, state)
            ticket.lock.rename(self.tickets.path(ticket.entry(HOLDING).name + cpus))
            self._hold(ticket)
        return admitted

    def _stand_up(self, ticket: Ticket, listing: Listing) -> bool:
        """Return whether a ticket is in its line; if others let it doze, it does so no longer."""
        me, asleep = ticket.entry(WAITING), ticket.entry(DOZING)
        line = listing.line(listing.host(me))
        if asleep in line.waiting:
            ticket.lock.place = self.tickets.path(asleep.name)
            ticket.lock.rename(self.tickets.path(me.name))
            listing.replace(asleep, WAITING)
        return me in line.waiting

    def _let_doze(self, ticket: Ticket, listing: Listing, line: Line, may_go: Collection[int]) -> set[Entry]:
        """Let those doze that may go or were roused, and do not move; return them and whoever stands behind them."""
        concerned: set[Entry] = set()
        silent = ticket.summons.silent([entry for entry in line.awake if entry.number in may_go])
        for entry in {*silent, *ticket.roused.silent(self._deaf(ticket, line))}:
            if entry.key != ticket.key:
                asleep = listing.replace(entry, DOZING)
                self.tickets.rename(entry, asleep)
                concerned.add(asleep)  # once it moves, it looks
                concerned.update([behind for behind in line.awake if behind.number > entry.number][:1])
        return {entry for entry in concerned if entry in line.waiting}

    def _deaf(self, ticket: Ticket, line: Line) -> list[Entry]:
        """Return those that *ticket* has roused and that have not heard it."""
        if not ticket.roused:
            return []
        roused = [entry for entry in line.awake if entry in ticket.roused]
        return [entry for entry in roused if is_unread(self.tickets.path(entry.name))]

    def _cpus(self, record: Record, host: Entry | None, listing: Listing, state: MachineState) -> str:
        within = affinity.of_name(host.name) if host is not None else ()
        if host is not None and not within:
            return ""  # that one has no CPUs of its own to give away
        names = (entry.name for entry in listing.line(host).holding)
        return affinity.suffix(record.claims, names, state.capacity, within=within)

    def _hold(self, ticket: Ticket) -> None:
        ticket.admitted_boot_ns = boot_ns()
        ticket.holding = True
        self._sweeper.own(ticket.key)
        ticket.unwatch()

    def _who_may_go(
        self, listing: Listing, host: Entry | None, state: MachineState, newcomer: Demand | None = None
    ) -> tuple[int, ...]:
        line = listing.line(host)
        capacity = state.capacity if host is None else self.tickets.demand(host).units
        while True:
            living = listing.tickets
            holders = [demand for entry in tuple(line.holding) if (demand := self._demand(entry, listing))]
            waiters = [demand for entry in tuple(line.waiting) if (demand := self._demand(entry, listing))]
            if listing.tickets == living:
                break  # else what stood inside a dead one stands here now
        if newcomer is not None:
            waiters.append(newcomer)
        if host is None:
            capacity = self._attainable(state, line, waiters)
        return decide(holders, waiters, capacity, patience_ns=state.patience_ns, now_boot_ns=boot_ns()).go

    def _agree_on_rules(self, state: MachineState, listing: Listing) -> MachineState:
        """Put in force what this process sets of the rules by which all go."""
        ours = self.settings
        patience = state.patience if ours.patience is None else ours.patience
        real_memory = state.real_memory if ours.real_memory is None else ours.real_memory
        if (patience, real_memory) == (state.patience, state.real_memory):
            return state
        next_ticket = max(listing.highest + 1, state.next_ticket)
        state = state._replace(patience=patience, real_memory=real_memory, next_ticket=next_ticket)
        self._state_file.write(state)
        for line in (listing, *listing.inside.values()):
            for chief in line.awake[:1]:
                self._poke(chief)  # what was kept may be free: it tells those that may go
        return state

    def _attainable(self, state: MachineState, line: Line, waiters: Iterable[Demand]) -> Mapping[str, int]:
        """Return the capacity of the machine, with no more memory than there really is if anybody waits for some."""
        if not state.real_memory or not any(MEMORY in waiter.units for waiter in waiters):
            return state.capacity
        from hostres.memory import attainable, available_mb  # noqa: PLC0415  few ask for it

        held = []
        for entry in line.holding:
            units = self.tickets.demand(entry).units.get(MEMORY)
            if units is not None:
                with contextlib.suppress(FileNotFoundError):
                    held.append((units, os.lstat(self.tickets.path(entry.name)).st_ctime))
        return attainable(state.capacity, held, available_mb())

    def _demand(self, entry: Entry, listing: Listing) -> Demand | None:
        try:
            return self.tickets.demand(entry)
        except HostlerError:
            if not self._sweeper.dead(entry, listing):
                raise
            return None  # what a dead ticket left behind need not be whole

    def _poke(self, entry: Entry) -> None:
        poke(self.tickets.path(entry.name))

    def _count_turns(
        self, state: MachineState, swept: Mapping[Entry, Demand | None], hung: Collection[str]
    ) -> MachineState:
        turns = [
            boot_ns() - demand.asked_boot_ns
            for entry, demand in swept.items()
            if demand is not None and entry.state == HOLDING and entry.key in hung and not entry.parents
        ]
        if turns and self._state_file.age_s() >= self.COUNT_S:
            for turn in turns:
                state = state._replace(turnaround_ns=state.after_turn(max(1, turn)))
            with contextlib.suppress(OSError):  # a full disk must not stop a hand-over
                self._state_file.write(state)
        return state

    def _check_folders(self) -> None:
        for place in (str(self.folder), self.tickets.place):
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(place)
                if stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077 and status.st_uid == os.geteuid():
                    continue
            private_folder(Path(place))
