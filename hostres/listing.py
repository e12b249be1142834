"""What the names in `t/` tell: which tickets there are, and in which line each of them stands.

| name | a ticket that |
| --- | --- |
| `w.<ticket>.<nonce>` | waits for the machine |
| `n.<ticket>.<nonce>.<predecessor>[.<cpus>]` | waits too, and holds next: see `hostres.heirs` |
| `z.<ticket>.<nonce>` | waits, but its process does not move |
| `h.<ticket>.<nonce>[.<cpus>]` | holds |
| `s.<ticket>.<parents>.<nonce>[.<cpus>]` | holds a part of what another one holds |
| `w.…`, `z.<ticket>.<parents>.<nonce>` | waits for a part of what another one holds |

`<parents>` are numbers, the nearest first: `12` or `12-7`. A ticket stands inside the nearest of them that
holds, and on the machine like any other once none does.

A ticket that has both a name that waits and one that holds was its predecessor's heir, and holds now.
"""

import os
from bisect import insort
from collections.abc import Iterable
from typing import Final, NamedTuple

from hostres.locks import NEW

WAITING: Final = "w"
HEIR: Final = "n"
"""First letter of the name of a waiter that is the heir of another ticket; its state is `WAITING`."""
DOZING: Final = "z"
HOLDING: Final = "h"
INSIDE: Final = "s"
"""First letter of a name that holds inside another; its state is `HOLDING`."""

RECORD: Final = ".json"
"""End of the name of a record."""


class Entry(NamedTuple):
    """A ticket's FIFO, as its name tells it.

    Attributes:
        number: Its place in the order of arrival.
        nonce: Makes its name unlike any other's.
        state: `WAITING`, `DOZING` or `HOLDING`.
        name: The name.
        parents: Numbers of the tickets it was asked for under, the nearest first.
        after: Number of the ticket whose heir it is, 0 for none.

    """

    number: int
    nonce: str
    state: str
    name: str
    parents: tuple[int, ...] = ()
    after: int = 0

    @property
    def key(self) -> str:
        """What stays of the name when the state changes."""
        return f"{self.number}.{self.nonce}"

    @property
    def cpus(self) -> str:
        """End of the name that tells the CPUs of a holder, or of an heir once it holds: `.<mask>`, or nothing."""
        parts = self.name.split(".", 5)
        whole = 4 if parts[0] in (HEIR, INSIDE) else 3
        return "." + parts[whole] if len(parts) > whole else ""

    def in_state(self, state: str) -> "Entry":
        """Return it as it is called in another state, without CPUs, and no heir."""
        return Entry(
            self.number, self.nonce, state, name_of(self.number, self.nonce, state, self.parents), self.parents
        )


MAX_DIGITS: Final = 18
"""No ticket's number has more, whatever a stray name says."""
MAX_NUMBER: Final = 10**MAX_DIGITS - 1
"""A million tickets a second reach it in 30,000 years."""


def is_number(text: str) -> bool:
    """Return whether *text* can be the number of a ticket."""
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS


def nonce_of(priority: int) -> str:
    """Return a new nonce; a priority stands at its end, so that nobody need read a record to see that there is one."""
    nonce = os.urandom(4).hex()
    return f"{nonce}{priority:+d}" if priority else nonce


def name_of(number: int, nonce: str, state: str, parents: tuple[int, ...] = ()) -> str:
    """Return the name of a ticket."""
    if not parents:
        return f"{state}.{number}.{nonce}"
    letter = INSIDE if state == HOLDING else state
    return f"{letter}.{number}.{'-'.join(map(str, parents))}.{nonce}"


def heir_name(number: int, nonce: str, after: int, cpus: str) -> str:
    """Return the name of a waiter that is the heir of the ticket *after*."""
    return f"{HEIR}.{number}.{nonce}.{after}{cpus}"


class Line:
    """Who holds and who waits in one place: on the machine, or inside one ticket.

    Attributes:
        waiting: Those that wait or doze, in order of their numbers.
        holding: Likewise.

    """

    __slots__ = ("holding", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Entry] = []
        self.holding: list[Entry] = []

    @property
    def awake(self) -> list[Entry]:
        """Those that wait and do not doze."""
        return [entry for entry in self.waiting if entry.state == WAITING]

    @property
    def lookouts(self) -> list[Entry]:
        """Those of them that are no heirs, and so look after the line; the first of them is the chief."""
        return [entry for entry in self.waiting if entry.state == WAITING and not entry.after]

    def add(self, entry: Entry) -> None:
        """Put a ticket in its place."""
        insort(self.holding if entry.state == HOLDING else self.waiting, entry)

    def remove(self, entry: Entry) -> None:
        """Take a ticket out."""
        (self.holding if entry.state == HOLDING else self.waiting).remove(entry)


class Listing(Line):
    """What `t/` holds, by names alone; its own line is the machine's.

    Attributes:
        inside: Number of a holder → the line inside it.
        records: Numbers that have a record.
        unborn: Names under which a FIFO is being made.
        strange: Names that are nobody's.
        highest: The highest number in use.
        nested: Whether any ticket was asked for under another.
        inherited: Tickets that held and have ended, each with its heir, which holds now.
        outlived: Names that tell nothing more than that: those tickets', and those under which their heirs waited.

    """

    __slots__ = ("_holders", "highest", "inherited", "inside", "nested", "outlived", "records", "strange", "unborn")

    def __init__(self) -> None:
        super().__init__()
        self.inside: dict[int, Line] = {}
        self.records: set[int] = set()
        self.unborn: list[str] = []
        self.strange: list[str] = []
        self.highest = 0
        self.nested = False
        self.inherited: list[tuple[Entry, Entry]] = []
        self.outlived: list[str] = []
        self._holders: dict[int, Entry] | None = None

    @classmethod
    def of(cls, names: Iterable[str], known: "dict[str, Entry | int] | None" = None) -> "Listing":
        """Read the names in `t/`.

        Args:
            names: The names.
            known: What some of them tell, of a record its number; what the others tell is added.

        """
        listing = cls()
        known = {} if known is None else known
        nested: list[Entry] = []
        for name in names:
            entry = known.get(name) or listing._learn(name, known)
            if entry is None:
                continue
            if isinstance(entry, int):
                listing.records.add(entry)
            elif entry.parents:
                nested.append(entry)
            elif entry.state == HOLDING:
                listing.holding.append(entry)
            else:
                listing.waiting.append(entry)
        listing.holding.sort()
        listing.waiting.sort()
        listing._see_heirs()
        listing.nested = bool(nested)
        last = (*listing.holding[-1:], *listing.waiting[-1:], *nested)
        listing.highest = max([*listing.records, *[entry.number for entry in last]], default=0)
        if nested:
            listing._holders = {entry.number: entry for entry in (*listing.holding, *nested) if entry.state == HOLDING}
            for entry in nested:
                listing.line(listing.host(entry)).add(entry)
        return listing

    def _see_heirs(self) -> None:
        """See which heirs hold: those that have both names."""
        if not (self.holding and self.waiting):
            return
        keys = {entry.key for entry in self.holding}
        both = [entry for entry in self.waiting if entry.key in keys]
        if not both:
            return
        heirs = {entry.after: entry for entry in both}
        holding, self.holding = self.holding, []
        for entry in holding:
            if entry.number in heirs:
                self.inherited.append((entry, heirs[entry.number]))
            else:
                self.holding.append(entry)
        self.outlived = [entry.name for entry, _ in self.inherited]  # before the names that say that it has ended
        self.outlived += [entry.name for entry in both]
        self.waiting = [entry for entry in self.waiting if entry.key not in keys]

    def _learn(self, name: str, known: dict[str, Entry | int]) -> Entry | int | None:
        number = name.removesuffix(RECORD)
        entry = entry_of(name) if number == name else int(number) if is_number(number) else None
        if entry is not None:
            known[name] = entry
        else:
            (self.unborn if name.startswith(NEW) else self.strange).append(name)
        return entry

    @property
    def entries(self) -> list[Entry]:
        """All tickets, dead or alive, those that hold first."""
        if not self.inside:
            return [*self.holding, *self.waiting]
        lines = (self, *self.inside.values())
        return [entry for line in lines for entry in line.holding] + [entry for line in lines for entry in line.waiting]

    @property
    def tickets(self) -> int:
        """How many there are, dead or alive."""
        here = len(self.waiting) + len(self.holding)
        return (
            here + sum(len(line.waiting) + len(line.holding) for line in self.inside.values()) if self.inside else here
        )

    def host(self, entry: Entry) -> Entry | None:
        """Return the ticket inside which *entry* stands, None on the machine."""
        if not entry.parents:
            return None
        if self._holders is None:
            self._holders = {holder.number: holder for holder in self.holding}
        return next((self._holders[number] for number in entry.parents if number in self._holders), None)

    def line(self, host: Entry | None) -> Line:
        """Return the line inside a ticket, or the machine's."""
        return self if host is None else self.inside.setdefault(host.number, Line())

    def find(self, number: int, nonce: str) -> Entry | None:
        """Return a ticket that holds."""
        lines = (self, *self.inside.values())
        return next(
            (entry for line in lines for entry in line.holding if (entry.number, entry.nonce) == (number, nonce)), None
        )

    def replace(self, entry: Entry, state: str) -> Entry:
        """Note that a ticket that does not hold is now in another state."""
        line, after = self.line(self.host(entry)), entry.in_state(state)
        line.remove(entry)
        line.add(after)
        return after

    def forget(self, entry: Entry) -> None:
        """Note that a ticket is gone; those inside it stand where it stood, or on the machine."""
        self.line(self.host(entry)).remove(entry)
        if entry.state == HOLDING and self._holders is not None:
            self._holders.pop(entry.number, None)
            orphans = self.inside.pop(entry.number, Line())
            for orphan in (*orphans.holding, *orphans.waiting):
                self.line(self.host(orphan)).add(orphan)


def entry_of(name: str) -> Entry | None:
    """Return the ticket that has a name in `t/`, None if none has."""
    parts = name.split(".")
    if not (3 <= len(parts) <= 5 and is_number(parts[1])):
        return None
    number = int(parts[1])
    if parts[0] == HOLDING and len(parts) < 5:
        return Entry(number, parts[2], HOLDING, name)
    if parts[0] in (WAITING, DOZING) and len(parts) == 3:
        return Entry(number, parts[2], parts[0], name)
    if parts[0] == HEIR:
        after = int(parts[3]) if len(parts) > 3 and is_number(parts[3]) else 0
        return Entry(number, parts[2], WAITING, name, after=after) if after else None
    parents = tuple(int(parent) for parent in parts[2].split("-") if is_number(parent))
    if not parents or len(parts) < 4:
        return None
    if parts[0] == INSIDE:
        return Entry(number, parts[3], HOLDING, name, parents)
    if parts[0] in (WAITING, DOZING) and len(parts) == 4:
        return Entry(number, parts[3], parts[0], name, parents)
    return None
