"""Removing what the dead left in `t/`; always under the gate."""

from collections import deque
from typing import Final

from hostres import descriptors
from hostres.listing import Entry, Listing
from hostres.tickets import TicketFolder


class Sweeper:
    """Knows which tickets are this process's own, so that it need not ask the kernel whether they live."""

    PROBES: Final = 8
    """At most so many tickets are probed at each ask."""

    def __init__(self, tickets: TicketFolder) -> None:
        self._tickets = tickets
        self._own: set[str] = set()
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

    def forget(self) -> None:
        """Forget the tickets of the parent; called in a forked child."""
        self._own.clear()
        self._released.clear()

    def tidy(self, listing: Listing) -> None:
        """Remove the dead as far as a bounded number of probes finds them, those first that were ours.

        Args:
            listing: What `t/` holds; what is removed is taken out.

        """
        for name in listing.unborn:
            self._tickets.sweep_name(name)  # its maker died: nobody else makes any while we hold the gate
        entries = [entry for entry in listing.entries if entry.key not in self._own]
        if len(entries) > self.PROBES:
            self._turn = (self._turn + self.PROBES) % len(entries)
            released = set(self._released)
            entries = entries[self._turn :] + entries[: self._turn]
            entries.sort(key=lambda entry: entry.key not in released)
        for entry in entries[: self.PROBES]:
            self.dead(entry, listing)
        used = {entry.number for entry in listing.entries}
        used.add(listing.highest)  # the highest number stays known until there is a higher one
        for number in listing.records - used:
            self._tickets.sweep_name(f"{number}.json")

    def live(self, listing: Listing) -> int:
        """Remove all the dead and return how many tickets live."""
        for entry in listing.entries:
            if entry.key not in self._own:
                self.dead(entry, listing)
        return listing.tickets

    def dead(self, entry: Entry, listing: Listing) -> bool:
        """Return whether a ticket is dead; then it is removed."""
        fd = self._tickets.watch(entry)
        if fd is None:
            self.bury(entry, listing)
            return True
        descriptors.close(fd)
        return False

    def bury(self, entry: Entry, listing: Listing) -> None:
        """Remove a ticket that is dead."""
        self._tickets.sweep(entry, keep_record=entry.number == listing.highest)
        listing.forget(entry)
