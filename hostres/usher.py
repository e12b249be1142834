"""Who decides for one waiting ticket of this process whether it goes, lets it hold, and tells whoever must know of it.

There are two ways: the long one thinks of all that hold and wait, the short one (`hostres.succession`) of the names.
"""

from collections.abc import Collection, Mapping

from hostres import affinity
from hostres.claims import MEMORY
from hostres.clock import boot_ns
from hostres.errors import Code, HostlerError
from hostres.heirs import Heirs, promised
from hostres.listing import DOZING, HOLDING, RECORD, WAITING, Entry, Listing, name_of
from hostres.locks import ALIVE, LOOK, WATCH, is_locked, poke
from hostres.pulse import FILE as PULSE
from hostres.queue import Demand, succeeds
from hostres.rousing import Rouser
from hostres.seating import Seating
from hostres.state import MachineState, StateFile
from hostres.succession import front
from hostres.sweeping import Sweeper
from hostres.ticket import Ticket
from hostres.tickets import Record, TicketFolder
from hostres.turnaround import Turnaround, after_turns
from hostres.watching import Watcher


class Usher:
    """Decides for the tickets of one process, one at a time; all but `finds_the_same` is called under the gate.

    Attributes:
        seating: Sees who may go.

    """

    def __init__(
        self,
        folder: str,
        tickets: TicketFolder,
        sweeper: Sweeper,
        heirs: Heirs,
        state_file: StateFile,
        turnaround: Turnaround,
    ) -> None:
        self.seating = Seating(tickets, sweeper)
        self._folder = folder
        self._pulse = f"{folder}/{PULSE}"
        self._rouser = Rouser(tickets)
        self._watcher = Watcher(tickets, sweeper)
        self._tickets = tickets
        self._sweeper = sweeper
        self._heirs = heirs
        self._state_file = state_file
        self._turnaround = turnaround

    def look(
        self,
        ticket: Ticket,
        listing: Listing,
        state: MachineState,
        *,
        hung: Collection[str] = (),
        thorough: bool,
        unprompted: bool = False,
    ) -> bool:
        """Look the long way: watch whom it must, see who may go, tell whoever must know, and admit it if it may.

        Args:
            ticket: A ticket of this process, waiting.
            listing: What `t/` holds.
            state: What the processes agree on.
            hung: As for `look`.
            thorough: See who may go even if nothing has changed among those that it watches.
            unprompted: As for `look`.

        """
        me, watched = ticket.waiting, set(ticket.watches)
        swept = self._watcher.watch(ticket, listing, hung, unprompted=unprompted)
        gone = watched - ticket.watches.keys()
        before_ns = self._turnaround.read()
        turnaround_ns = after_turns(before_ns, _turns(swept), boot_ns())
        host = listing.host(me)
        line = listing.line(host)
        moved, ticket.host = ticket.host != (host.number if host else 0), host.number if host else 0
        settled = not (thorough or moved or hung or swept or gone)
        may_go: tuple[int, ...] = ()
        to_look = set[Entry]()
        plain = not (thorough or moved or unprompted or ticket.summons.told) and gone <= {entry.key for entry in swept}
        if plain and self._is_next(ticket, listing, swept, state, min(before_ns, turnaround_ns)):
            may_go = (ticket.number,)
        elif not settled:
            patience_ns = state.patience_ns(turnaround_ns)
            may_go = self.seating.who_may_go(listing, host, state, patience_ns=patience_ns)
            to_look = self._rouser.let_doze(ticket, listing, line, may_go)
            if to_look:
                may_go = self.seating.who_may_go(listing, host, state, patience_ns=patience_ns)
        awake, lookouts = line.awake, line.lookouts
        mine = awake.index(me)
        self.take_place(ticket, host, mine, unprompted=unprompted)
        admitted = ticket.number in may_go
        going = [entry for entry in awake if entry.number in may_go and entry != me]
        if admitted or hung or swept or to_look or unprompted or mine == 0 or lookouts[:1] == [me]:
            to_look.update(going)
        to_live = set(self._rouser.to_rouse(ticket, awake, going, unprompted=unprompted))
        to_watch = set[Entry]()
        if moved or (admitted and (line.holding or line.waiting[0] != me)):
            # it has a new predecessor, or more to watch than this ticket
            to_watch.update([entry for entry in awake[mine + 1 : mine + 2] if not entry.after])
        if admitted and (line.holding or line.waiting[0] != me):
            to_watch.update([entry for entry in lookouts if entry != me][:1])  # the new holder
        for entry in sorted((to_look | to_watch | to_live) - {me}):
            # as long as somebody has not moved that may go, whoever comes to be the chief must see to it
            word = LOOK if entry in to_look or going else WATCH if entry in to_watch else ALIVE
            there = poke(self._tickets.path(entry.name), word)
            if not there and self._sweeper.dead(entry, listing):
                poke(self._tickets.path(me.name))  # it looks again, as that one would have been first
        if not settled and (going or ticket.summons.told):
            ticket.summons.note(() if admitted else going, to_look | to_watch | to_live)
        if admitted:
            self.admit(ticket, self.cpus(ticket.number, ticket.record, host, listing, state))
        elif not (settled or ticket.parents or ticket.adapts is not None):
            self._heirs.see(ticket, listing, state)
        self.count(before_ns, turnaround_ns)
        return admitted

    def takes_over(self, ticket: Ticket, names: Collection[str], hung: Collection[str]) -> bool | None:
        """Look the short way: admit a ticket if it is plain that it may go and nobody else might who might not before.

        Args:
            ticket: A ticket that waits for the machine, and that nothing but a hang-up has woken, or the word that it
                stands first: whatever else may have changed who may go comes with another word.
            names: The names in `t/`.
            hung: Keys of watched tickets that hung up.

        Returns:
            Whether it is admitted; None if only the long way can tell.

        """
        found = front(names, ticket.number, ticket.watches.keys())
        if found is None:
            return None
        state = self._state_file.known()
        if state is None or (state.real_memory and MEMORY in ticket.demand.units):
            return None  # what there is of memory the names do not tell
        dead, holders = dict[str, Demand](), dict[str, Demand]()
        for name, key in found.holders.items():
            lives = self._watcher.begins(ticket, name) if key not in ticket.watches else key not in hung
            if not lives and key in hung and is_locked(ticket.watches[key]):
                return None
            demand = self._tickets.known.get(key)
            if demand is None:
                return None
            (holders if lives else dead)[name] = demand
        if not dead:
            if ticket.roused.told:
                return None
            self.take_place(ticket, None, 0, unprompted=False)
            return False
        before_ns, now_ns = self._turnaround.read(), boot_ns()
        turnaround_ns = after_turns(before_ns, [dead[name] for name in dead if found.holders[name] in hung], now_ns)
        patience_ns = state.patience_ns(min(before_ns, turnaround_ns))
        gone, there = dead.values(), holders.values()
        if not succeeds(ticket.demand, gone, there, state.capacity, patience_ns=patience_ns, now_boot_ns=now_ns):
            return None
        if holders and found.next_one:
            poke(self._tickets.path(found.next_one), WATCH)  # it watches nobody but this ticket
        self.admit(ticket, affinity.suffix(ticket.record.claims, holders, state.capacity))
        self.count(before_ns, turnaround_ns)
        for name, demand in dead.items():
            self._sweeper.bury_name(name, demand.number, below=ticket.number)
        return True

    def stand_up(self, ticket: Ticket, listing: Listing) -> bool:
        """Let a ticket doze no longer if others let it; return whether it stands otherwise than it thought.

        Raises:
            HostlerError: `wait-aborted`: it is not in its line, as somebody has taken it back or removed it.

        """
        line = listing.line(listing.host(ticket.waiting))
        if ticket.waiting in line.waiting:
            return False
        me = ticket.waiting.in_state(WAITING)
        if me in line.waiting:
            ticket.be_called(me)
            return True
        asleep = ticket.entry(DOZING)
        if asleep not in line.waiting:
            raise self._sent_away(ticket)
        self._tickets.disown(listing)  # it is about to stand before some of them again
        ticket.be_called(asleep)
        ticket.lock.rename(self._tickets.path(me.name))
        ticket.be_called(me)
        listing.replace(asleep, WAITING)
        return True

    def _sent_away(self, ticket: Ticket) -> HostlerError:
        from hostres.revocation import is_revoked  # noqa: PLC0415  only to say why

        how = "taken back" if is_revoked(self._folder, ticket.number) else "removed"
        return HostlerError(Code.WAIT_ABORTED, f"ticket {ticket.number} was {how} while it waited", "ask again")

    def _is_next(
        self, ticket: Ticket, listing: Listing, swept: Collection[Entry], state: MachineState, turnaround_ns: int
    ) -> bool:
        """Return whether a ticket may go that stands first, and nobody else might who might not before.

        Args:
            ticket: A ticket of this process, waiting.
            listing: What `t/` holds, without the dead.
            swept: The dead that it has found: nothing else has come free since somebody thought of all.
            state: What the processes agree on.
            turnaround_ns: As for `succeeds`, the average from which the patience follows.

        """
        plain = swept and not (listing.nested or state.real_memory) and listing.waiting[0] == ticket.waiting
        if not plain or any(entry.state == DOZING or not entry.nonce.isalnum() for entry in listing.waiting):
            return False
        held = [self._tickets.demand_of_dead(entry) for entry in swept if entry.state == HOLDING]
        dead = [demand for demand in held if demand is not None]
        if len(dead) < len(swept):
            return False
        holders = [self._tickets.demand(entry) for entry in listing.holding]
        patience_ns, now_ns = state.patience_ns(turnaround_ns), boot_ns()
        return succeeds(ticket.demand, dead, holders, state.capacity, patience_ns=patience_ns, now_boot_ns=now_ns)

    def take_place(self, ticket: Ticket, host: Entry | None, place: int, *, unprompted: bool) -> None:
        """Let a ticket know where it stands in its line, and leave the sign of that if it is to look after it."""
        ticket.rank = min(place, 2)
        # the record of a ticket, as a change of its FIFO would let it seem to have been admitted just now
        ticket.pulse.place = self._pulse if host is None else self._tickets.path(f"{host.number}{RECORD}")
        if unprompted or place <= 1:
            ticket.pulse.leave(again=unprompted)

    def finds_the_same(self, ticket: Ticket) -> bool:
        """Look whether all is as it was when nothing had prompted the last look either: see `hostres.stillness`."""
        still = ticket.stillness
        if still is None:
            return False
        with ticket.mutex:
            if ticket.withdrawn or not still.lasts(ticket, self._tickets, self._state_file):
                return False
            if not self._rouser.all_move(ticket, still.chief):
                return False
            ticket.pulse.leave(again=True)
        return True

    def cpus(self, number: int, record: Record, host: Entry | None, listing: Listing, state: MachineState) -> str:
        """Return what the name of a ticket gets when it is admitted: its CPUs, or nothing.

        Args:
            number: Of the ticket.
            record: What it claims.
            host: The ticket inside which it is admitted, None for the machine.
            listing: What `t/` holds.
            state: What the processes agree on.

        """
        if affinity.CPU not in record.claims:
            return ""
        within = affinity.of_name(host.name) if host is not None else ()
        if host is not None and not within:
            return ""  # that one has no CPUs of its own to give away
        names = [entry.name for entry in listing.line(host).holding] + promised(listing.line(host).waiting, number)
        return affinity.suffix(record.claims, names, state.capacity, within=within)

    def admit(self, ticket: Ticket, cpus: str) -> None:
        """Let a waiting ticket hold: the rename is the commit."""
        ticket.lock.rename(self._tickets.path(name_of(ticket.number, ticket.nonce, HOLDING, ticket.parents) + cpus))
        self.hold(ticket)

    def count(self, before_ns: int, turnaround_ns: int) -> None:
        """Write down how long a turn takes now; after the commit, as it is advice."""
        if turnaround_ns != before_ns:
            try:  # noqa: SIM105  on the way of every hand-over
                self._turnaround.write(turnaround_ns)
            except OSError:
                pass  # a full disk must not stop it

    def hold(self, ticket: Ticket) -> None:
        """Take note that a ticket holds, as its name says."""
        ticket.admitted_boot_ns = boot_ns()
        ticket.holding = True
        self._sweeper.own(ticket.key)
        if ticket.watches:
            ticket.unwatch()


def _turns(swept: Mapping[Entry, Demand | None]) -> list[Demand]:
    """Return those of the dead whose turn has just ended; a part has none of its own."""
    return [demand for entry, demand in swept.items() if demand and entry.state == HOLDING and not entry.parents]
