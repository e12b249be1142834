"""Removing what the dead left in `t/`; always under the gate.

They are counted no longer from the moment they are found; their files go last, when whoever found them has been
admitted. Whoever is killed in between leaves names that are found dead again.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from hostres import descriptors
from hostres.errors import HostlerError
from hostres.listing import HOLDING, RECORD, Entry, Listing
from hostres.tickets import TicketFolder


class Sweeper:
    """Knows which tickets are this process's own, so that it need not ask the kernel whether they live."""

    PROBES: Final = 8
    """At most so many tickets are probed at each ask."""

    def __init__(self, tickets: TicketFolder) -> None:
        self._tickets = tickets
        self._own: set[str] = set()
        self._nobodys: list[str] = []
        self._released: deque[str] = deque(maxlen=4 * self.PROBES)
        self._turn = 0
        descriptors.forget_after_fork(self)

    def own(self, key: str) -> None:
        """Take note of a ticket that this process holds."""
        self._own.add(key)

    def released(self, key: str) -> None:
        """Take note that this process holds it no longer, though a child may."""
        self._own.discard(key)
        self._released.append(key)

    def was_ours(self, key: str) -> bool:
        """Return whether this process held a ticket not long ago, and holds it no longer."""
        return key in self._released

    def forget(self) -> None:
        """Forget the tickets of the parent; called in a forked child."""
        self._own.clear()
        self._nobodys.clear()
        self._released.clear()

    def tidy(self, listing: Listing) -> list[Entry]:
        """Take the dead out as far as a bounded number of probes finds them, those first that were ours.

        Where somebody looks after the line each of them is watched, so that only what was ours is probed: who has given
        it back just now finds it free.

        Args:
            listing: What `t/` holds; the dead are taken out.

        Returns:
            The dead whose names are still there, as others may be about to see that they have ended.

        Raises:
            HostlerError: `unsafe-state`: a folder has a name that only a file of ours can have.

        """
        for name in listing.unborn:
            self._tickets.sweep_name(name)  # its maker died: nobody else makes any while we hold the gate
        self.inherited(listing)
        highest = listing.highest  # stays known until there is a higher one
        for number in listing.records.difference([highest], (entry.number for entry in listing.entries)):
            self._tickets.sweep_name(f"{number}{RECORD}")
        if listing.lookouts and not listing.nested:
            entries = [entry for entry in listing.holding if entry.key in self._released]
        else:
            entries = [entry for entry in listing.entries if entry.key not in self._own]
        if len(entries) > self.PROBES:
            self._turn = (self._turn + self.PROBES) % len(entries)
            released = set(self._released)
            entries = entries[self._turn :] + entries[: self._turn]
            entries.sort(key=lambda entry: entry.key not in released)
        heirs = {entry.after for entry in listing.waiting}
        found = []
        for entry in entries[: self.PROBES]:
            if not self._tickets.is_live(entry):
                listing.forget(entry)
                if entry.state != HOLDING or entry.number not in heirs:
                    found.append(entry)  # else its name is left to its heir, which is about to see that it has held
        return found

    def inherited(self, listing: Listing) -> None:
        """Let `sweep` remove the names of those that heirs have followed: all, else one of them may seem to hold."""
        self._nobodys.extend(listing.outlived)

    def surpass(self, listing: Listing) -> None:
        """Let `sweep` remove the record that only kept the highest number known, as a machine of its own has a new one.

        Among others it goes with the next ask.
        """
        if listing.highest in listing.records and not listing.tickets:
            self._nobodys.append(f"{listing.highest}{RECORD}")

    def live(self, listing: Listing) -> int:
        """Take all the dead out and return how many tickets live."""
        for entry in listing.entries:
            if entry.key not in self._own:
                self.dead(entry, listing)
        return listing.tickets

    def dead(self, entry: Entry, listing: Listing) -> bool:
        """Return whether a ticket is dead; then it is taken out of the listing."""
        fd = self._tickets.watch(entry)
        if fd is None:
            self.bury(entry, listing)
            return True
        descriptors.close(fd)
        return False

    def bury(self, entry: Entry, listing: Listing) -> None:
        """Take a ticket that is dead out of the listing; `sweep` removes its files."""
        listing.forget(entry)
        self.bury_name(entry.name, entry.number, below=listing.highest)

    def bury_name(self, name: str, number: int, *, below: int) -> None:
        """Let `sweep` remove a ticket that is dead, its record only if a number *below* which it is stays known."""
        self._nobodys.append(name)
        if number < below:
            self._nobodys.append(f"{number}{RECORD}")

    def bury_names(self, dead: Iterable[Entry], *, below: int) -> None:
        """Let `sweep` remove tickets that are dead and taken out of the listing; see `bury_name`."""
        for entry in dead:
            self.bury_name(entry.name, entry.number, below=below)

    def sweep(self) -> None:
        """Remove the files of the dead, a FIFO before its record, as a record without one is nobody's."""
        names, self._nobodys = self._nobodys, []
        for name in names:
            try:  # noqa: SIM105  on the way of every hand-over
                self._tickets.sweep_name(name)
            except (OSError, HostlerError):
                pass  # it will be found again
