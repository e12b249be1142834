"""The machine folder: what processes decide together, under the gate.

A process admits only itself. No wake-up is lost: a watch is opened before the probe that finds its ticket
alive, so the hang-up must come; and who is admitted pokes whoever must look next before the rename that
commits it, which makes the one who was poked wait at the gate until it is done. Time alone lets nobody go,
it only makes the oldest waiter patient; so nothing need wake anybody for it.
"""

import os
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from hostres.arrival import Arrivals, Left
from hostres.claims import MEMORY, check_claims
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import is_private_folder, private_folder, refuse_network_file_system
from hostres.gate import Gate
from hostres.heirs import Heirs
from hostres.issuing import Issuer
from hostres.listing import (
    HOLDING,
    MAX_NUMBER,
    WAITING,
    Entry,
    Listing,
    name_of,
    nonce_of,
)
from hostres.locks import LOOK, WATCH, FifoLock, poke
from hostres.nesting import ALONE, Asker, check_part, check_wait, took_part
from hostres.profile import Profile
from hostres.settings import MachineSettings
from hostres.state import MachineState, StateFile
from hostres.stillness import Stillness
from hostres.sweeping import Sweeper
from hostres.ticket import Ticket
from hostres.tickets import MAX_TICKETS, Record, TicketFolder
from hostres.turnaround import Turnaround
from hostres.usher import Usher


class Machine:
    """One process's view of a machine folder.

    Attributes:
        folder: The machine folder.
        settings: What this process goes by.
        looks: How often a waiter of this process looked.
        safety_net_looks: How often one looked although nothing had woken it.
        safety_net_progress: How often that was what made progress; expected to stay 0.
        inherit: Admits a waiting ticket without the gate, if it may go whatever others want; see `Heirs.inherit`.

    """

    def __init__(self, folder: Path, settings: MachineSettings) -> None:
        self.folder = private_folder(folder)
        refuse_network_file_system(self.folder)
        self.tickets = TicketFolder(str(private_folder(self.folder / "t")))
        self._places = (str(self.folder), self.tickets.place)
        self.looks = self.safety_net_looks = self.safety_net_progress = 0
        self._gate = Gate.at(f"{self.folder}/gate")
        self._state_file = StateFile(str(self.folder))
        self._turnaround = Turnaround(self._gate)
        self._sweeper = Sweeper(self.tickets)
        self.settings = settings
        self._heirs = Heirs(self.tickets, self._sweeper)
        self._usher = Usher(
            self._places[0], self.tickets, self._sweeper, self._heirs, self._state_file, self._turnaround
        )
        self.inherit: Final = self._heirs.inherit
        self._ended: deque[Ticket] = deque()
        """Those that hold no longer, since the last ask."""
        self._issuer = Issuer(self.tickets, settings.claims)
        self._arrivals = Arrivals(self.tickets, self._state_file, self._issuer, self._usher, self._sweeper)
        self._profile = Profile(
            self._state_file,
            self.tickets,
            self._sweeper,
            settings.capacity,
            since_boot_ns=settings.read_boot_ns,
        )

    def capacity(self) -> Mapping[str, int]:
        """Return the capacities that the next ask will meet, read without the gate."""
        return self._profile.expected()

    def ask(self, record: Record, *, asker: Asker = ALONE, until: float | None = None) -> Ticket:
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
        try:
            return self._gate.hold(until, self._ask, record, asker)
        except OSError as error:
            raise unavailable(f"no ticket could be made in {self.folder}", error) from error

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
            HostlerError: `wait-aborted`: it was taken back or removed; `unsafe-state`; `unavailable`; `wait-timeout`.

        """
        try:
            if unprompted and self._usher.finds_the_same(ticket):
                self.looks += 1
                self.safety_net_looks += 1
                return False
            return self._gate.hold(until, self._look_now, ticket, hung, unprompted)
        except OSError as error:
            raise unavailable("the queue could not be read", error) from error

    def released(self, ticket: Ticket) -> None:
        """Take note that this process has closed a ticket that held; the next ask removes its name."""
        self._ended.append(ticket)  # no more now: whoever comes next may be waiting for this processor

    def close(self) -> None:
        """Close what is open for the sake of tickets that wait no more."""
        self._heirs.close()

    def _ask(self, record: Record, asker: Asker) -> Ticket:
        try:
            self._settle()
            names = self.tickets.names()
            ticket = self._arrivals.by_a_short_way(names, record, alone=not asker.parents)
            if ticket is not None:
                return ticket
            listing = self.tickets.listing(names)
            if asker.parents or record.priority > 0:
                self.tickets.disown(listing)
            if listing.inherited:
                before_ns = self._turnaround.read()
                self._usher.count(before_ns, self._heirs.turnaround_ns(before_ns, listing))
            dead = self._sweeper.tidy(listing)
            state = self._agree_on_rules(self._profile.in_force(listing), listing)
            self._arrivals.looked_at_all(state)
            if listing.tickets >= MAX_TICKETS and self._sweeper.live(listing) >= MAX_TICKETS:
                raise HostlerError(
                    Code.UNAVAILABLE, f"the machine has {MAX_TICKETS} tickets already", "wait until some are done"
                )
            number = max(listing.highest + 1, state.next_ticket)
            if number > MAX_NUMBER:
                raise HostlerError(
                    Code.UNSAFE_STATE,
                    f"{self.tickets.place} holds number {number - 1}, and no ticket has a higher one",
                    "remove what is called so; nothing here made it",
                )
            return self._enter(number, record, asker, listing, state, dead)
        finally:
            self._sweeper.sweep()

    def _tell_of(self, dead: Entry, listing: Listing) -> None:
        """Let somebody look whom the end of a ticket concerns: it may have been told to watch it, and not have yet."""
        line = listing.line(listing.host(dead))
        behind = line.awake if dead.state != HOLDING else line.lookouts
        for entry in [entry for entry in behind if dead.state == HOLDING or entry.number > dead.number][:1]:
            self._poke(entry)

    def _settle(self) -> None:
        """Do what the last hand-overs of this process have left to do, now that it has the gate for something else."""
        self._heirs.settle()
        while self._ended:
            ticket = self._ended.popleft()
            self._sweeper.released(ticket.key)
            self._arrivals.left = Left.by(ticket)

    def _look_now(self, ticket: Ticket, hung: Collection[str], unprompted: bool) -> bool:  # noqa: FBT001  of `hold`
        try:
            with ticket.mutex:
                if ticket.withdrawn or (unprompted and ticket.need_not_look()):
                    return False
                self.looks += 1
                words = ticket.heard()  # under the gate: whatever is changed afterwards comes with another poke
                adapted = ticket.adapts is not None and self._adapt(ticket)
                names = self.tickets.names()
                prompted = hung or (words and not ticket.waiting.after)
                plain = prompted and not (unprompted or adapted or LOOK in words or ticket.parents)
                if plain and not ticket.summons.told and ticket.waiting.name in names:
                    admitted = self._usher.takes_over(ticket, names, hung)
                    if admitted is not None:
                        ticket.stillness = None
                        return admitted
                listing = self.tickets.listing(names)
                self._sweeper.inherited(listing)
                dozed = self._usher.stand_up(ticket, listing)
                thorough = adapted or dozed or unprompted or LOOK in words or not (words or hung)
                state = self._profile.agreed(listing)
                admitted = self._see(ticket, listing, state, hung, thorough=thorough, unprompted=unprompted)
                ticket.stillness = Stillness.of(ticket, names, listing, state) if unprompted and not admitted else None
                return admitted
        finally:
            self._sweeper.sweep()

    def _see(
        self,
        ticket: Ticket,
        listing: Listing,
        state: MachineState,
        hung: Collection[str],
        *,
        thorough: bool,
        unprompted: bool,
    ) -> bool:
        before = set[int]()
        if unprompted:  # of whom a living heir is just about to see the end does not count
            before.update(entry.number for entry in listing.entries)
            before.difference_update(entry.after for entry in listing.waiting)
        admitted = self._usher.look(ticket, listing, state, hung=hung, thorough=thorough, unprompted=unprompted)
        if not admitted and ticket.host == 0:
            check_claims(ticket.record.claims, state.capacity)  # the capacity may have been lowered meanwhile
        if unprompted:
            self.safety_net_looks += 1
            by_event = not (state.real_memory and MEMORY in ticket.record.claims)  # memory has none
            if before - {entry.number for entry in listing.entries} or (admitted and by_event):
                self.safety_net_progress += 1
        return admitted

    def _enter(
        self,
        number: int,
        record: Record,
        asker: Asker,
        listing: Listing,
        state: MachineState,
        dead: Sequence[Entry],
    ) -> Ticket:
        host = asker.host(listing, self.tickets) if asker.parents else None
        held = self.tickets.demand(host) if host is not None else None
        asked, record = record, self._issuer.taken(record, state, held)
        demand = record.demand(number)
        if host is not None and held is not None:
            check_part(demand, host, held)
        line = listing.line(host)
        seating = self._usher.seating
        room = seating.has_room(demand, listing, host, state)
        go = room and not line.waiting
        if room and not go:
            patience_ns = state.patience_ns(self._turnaround.read())
            go = number in seating.who_may_go(listing, host, state, patience_ns=patience_ns, newcomer=demand)
        if host is not None and not go:
            check_wait(asker, host, self.tickets.place)
        if go or listing.nested or not listing.lookouts:  # else whoever watches them comes to see that they have ended
            self._sweeper.bury_names(dead, below=listing.highest)
            for entry in dead:
                self._tell_of(entry, listing)
        if go:
            for chief in line.lookouts[:1]:
                self._poke(chief, WATCH)  # the new holder
        nonce = nonce_of(record.priority)
        parents = (host.number, *host.parents) if host is not None else ()
        cpus = self._usher.cpus(number, record, host, listing, state) if go else ""
        for_itself = room or parents or self._issuer.adapts(asked)
        heir = None if for_itself else self._heirs.born(demand, nonce, listing, state)
        name = heir[0].name if heir else name_of(number, nonce, HOLDING if go else WAITING, parents) + cpus
        ticket = self._issuer.issue(demand, nonce, name, record, asked, parents)
        self._sweeper.surpass(listing)
        if heir:
            ticket.be_called(*heir)
        took_part(ticket, asker)
        if go:
            self._usher.hold(ticket)
            return ticket
        try:
            line.add(ticket.waiting)
            self._usher.look(ticket, listing, state, thorough=room)
            if listing.lookouts[:1] == [ticket.waiting]:
                self._sweeper.bury_names(dead, below=listing.highest)  # whoever watched them has gone too
        except BaseException:
            ticket.withdraw()
            ticket.unwatch()
            raise
        return ticket

    def _adapt(self, ticket: Ticket) -> bool:
        """Let a waiting ticket that takes all there is take what there is by now; return whether that has changed.

        A ticket is known by its nonce, and what it claims is read but once. So it is born again under its number, and
        whoever watches it sees the old one hang up.

        Raises:
            HostlerError: `wait-aborted`; `invalid-claims`: it takes more of something else than there is by now.

        """
        policy = self._issuer.policy
        if policy is None or ticket.adapts is None:
            return False
        listing = self.tickets.scan()
        self._usher.stand_up(ticket, listing)
        host = listing.host(ticket.waiting)
        room = self._profile.agreed(listing).capacity if host is None else self.tickets.demand(host).units
        record = ticket.record._replace(claims=policy.physical(ticket.adapts, room))
        if record.claims == ticket.record.claims:
            return False
        self.tickets.disown(listing)
        nonce = nonce_of(record.priority)
        self.tickets.rewrite(ticket.number, record)
        lock = FifoLock.born(self.tickets.place, name_of(ticket.number, nonce, WAITING, ticket.parents))
        old, demand = ticket.lock, record.demand(ticket.number)
        ticket.be_born_again(demand, nonce, lock, record)
        self.tickets.known[ticket.key] = demand
        self.tickets.sweep_name(os.path.basename(old.place))  # noqa: PTH119  a plain string
        old.close()
        return True

    def _agree_on_rules(self, state: MachineState, listing: Listing) -> MachineState:
        """Put in force what this process sets of the rules by which all go."""
        ours = self.settings
        patience = state.patience if ours.patience is None else ours.patience
        real_memory = state.real_memory if ours.real_memory is None else ours.real_memory
        if (patience, real_memory) == (state.patience, state.real_memory):
            return state
        self.tickets.disown(listing)
        next_ticket = max(listing.highest + 1, state.next_ticket)
        state = state._replace(patience=patience, real_memory=real_memory, next_ticket=next_ticket)
        for line in (listing, *listing.inside.values()):
            for chief in line.awake[:1]:
                self._poke(chief)  # what was kept may be free: it tells those that may go, once it may enter the gate
        self._state_file.write(state)
        return state

    def _poke(self, entry: Entry, word: bytes = LOOK) -> bool:
        return poke(self.tickets.path(entry.name), word)

    def _check_folders(self) -> None:
        for place in self._places:
            if not is_private_folder(place):
                private_folder(Path(place))
