"""The tickets of the machine folder: one FIFO each in `t/`, beside `t/<ticket>.json`.

The name says in which state and line a ticket is, its lock whether it lives, the record what it claims. A
record is written before its FIFO appears and never changes as long as the nonce does not, so whoever has read it once
knows it.
"""

# Plain strings on the hot path.
# ruff: noqa: PTH104, PTH108, PTH208

import contextlib
import errno
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hostres.claims import is_name, is_priority, is_units
from hostres.errors import Code, HostlerError
from hostres.folders import MAX_BYTES, open_private
from hostres.listing import DOZING, HOLDING, RECORD, WAITING, Entry, Listing
from hostres.locks import NEW, is_held, poke, probe
from hostres.queue import KEY, Demand

__all__ = ["DOZING", "HOLDING", "WAITING", "Entry", "Listing", "Record", "TicketFolder"]

MAX_TICKETS: Final = 4096
MAX_WORDS: Final = 4096
"""Characters of a name, and of a command line, that are recorded."""

_MOST: Final = 4 * MAX_WORDS
"""As JSON, in which a character may take twelve, each of them takes no more: a record must not be too large to read."""

_MARKS: Final = 32
"""Of that, what quotes, a comma and the sign that something was cut may take."""

_KNOWN: Final = 64
_FORMAT: Final = 1
_ENCODE: Final = json.encoder.encode_basestring_ascii
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")

_ASKED: Final = b',"asked_boot_ns":'
_DIGITS: Final = 20
_MOST_ALIKE: Final = 64
_SHORT: Final = 1024
"""Records of more bytes are not kept, so that all of them are few."""


class Record(NamedTuple):
    """What a ticket claims, and for whom.

    Attributes:
        claims: Resource → units.
        keys: Digests of its exclusive keys.
        asked_boot_ns: When it was asked for, on the boot-time clock.
        priority: From -10 to 10; the higher goes first, within the patience of the oldest.
        name: For people.
        pid: Of the process that asked, for people.
        command: What it runs, for people.

    """

    claims: Mapping[str, int]
    keys: tuple[str, ...]
    asked_boot_ns: int
    priority: int = 0
    name: str = ""
    pid: int = 0
    command: tuple[str, ...] = ()

    def demand(self, number: int) -> Demand:
        """Return it as the queue sees it."""
        units = self.claims
        if self.keys:
            units = {**units, **{KEY + digest: 1 for digest in self.keys}}
        return Demand(number=number, units=units, asked_boot_ns=self.asked_boot_ns, priority=self.priority)

    def to_json(self) -> bytes:
        """Return its bytes on disk: no more than anybody reads, with what is for people cut where the claims take most.

        Raises:
            HostlerError: `invalid-claims`: the claims alone take more.

        """
        data = self._encoded(_MOST)
        if len(data) <= MAX_BYTES:
            return data
        room = MAX_BYTES - len(self._encoded(0))
        if room < 0:
            raise HostlerError(
                Code.INVALID_CLAIMS,
                f"claims of {len(self.claims)} resources make a record of more than {MAX_BYTES} bytes",
                "claim fewer, or give the resources shorter names",
            )
        return self._encoded(max(0, room // 2 - _MARKS))

    def _encoded(self, most: int) -> bytes:
        claims = ",".join([f'"{name}":{units}' for name, units in self.claims.items()])
        keys = ",".join([f'"{digest}"' for digest in self.keys]) if self.keys else ""
        words = ",".join(map(_ENCODE, _shortened(self.command, most))) if self.command else ""
        name = _ENCODE(_cut(self.name, most)) if self.name else '""'
        return (
            f'{{"format":{_FORMAT},"claims":{{{claims}}},"keys":[{keys}],"asked_boot_ns":{self.asked_boot_ns},'
            f'"priority":{self.priority},"name":{name},"pid":{self.pid},"command":[{words}]}}'
        ).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "Record":
        """Read it back.

        Raises:
            ValueError: It is damaged.

        """
        head, _, rest = data.rpartition(_ASKED)
        digits, _, tail = rest.partition(b",")
        plain = digits.isdigit() and (digits[:1] != b"0" or digits == b"0")
        like = _alike.get((head, tail)) if plain and len(digits) < _DIGITS else None
        if like is not None:
            return like._replace(asked_boot_ns=int(digits))
        record = cls._parsed(json.loads(data))
        if plain and len(data) <= _SHORT and str(record.asked_boot_ns).encode() == digits:
            if len(_alike) >= _MOST_ALIKE:
                _alike.clear()
            _alike[head, tail] = record
        return record

    @classmethod
    def _parsed(cls, value: Any) -> "Record":
        match value:
            case {
                "format": 1,
                "claims": dict(claims),
                "keys": list(keys),
                "asked_boot_ns": int(asked),
                "priority": int(priority),
                "name": str(name),
                "pid": int(pid),
                "command": list(command),
            } if (
                all(is_name(resource) and is_units(units, least=1) for resource, units in claims.items())
                and all(isinstance(key, str) and _DIGEST.fullmatch(key) for key in keys)
                and all(isinstance(word, str) for word in command)
                and is_priority(priority)
            ):
                return cls(
                    claims=claims,
                    keys=tuple(keys),
                    asked_boot_ns=asked,
                    priority=priority,
                    name=name,
                    pid=pid,
                    command=tuple(command),
                )
        raise ValueError("not a ticket's record")


_alike: Final[dict[tuple[bytes, bytes], Record]] = {}
"""Records that were read: what stands before and behind the time → one of them; a worker's differ in nothing else.

Quotation marks within a string are escaped and no claim stands behind the time, so that the last number that is called
so is the time.
"""


class TicketFolder:
    """Reads and writes `t/`; what changes it must hold the gate."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._entries: dict[str, Entry | int] = {}
        self.known: dict[str, Demand] = {}
        """What tickets claim, by key, as far as that need not be read any more."""

    def path(self, name: str) -> str:
        """Return the place of a name in it."""
        return f"{self.place}/{name}"

    def scan(self) -> Listing:
        """Read the names.

        Raises:
            HostlerError: `unsafe-state`: more than there can be tickets.
            OSError: The folder cannot be read.

        """
        return self.listing(self.names())

    def names(self) -> list[str]:
        """Return the names in it, in any order.

        Raises:
            OSError: The folder cannot be read.

        """
        return os.listdir(self.place)

    def listing(self, names: Iterable[str]) -> Listing:
        """Return what names in it tell.

        Raises:
            HostlerError: `unsafe-state`: more than there can be tickets.

        """
        listing = Listing.of(names, self._entries)
        if listing.tickets > 2 * MAX_TICKETS:
            raise HostlerError(
                Code.UNSAFE_STATE,
                f"{self.place} holds more than {2 * MAX_TICKETS} tickets",
                "end what fills it, then remove the files in it",
            )
        if len(self._entries) > _KNOWN + 2 * listing.tickets:
            self._entries.clear()
        if len(self.known) > _KNOWN + 2 * listing.tickets:
            there = {entry.key for entry in listing.entries}
            self.known = {key: demand for key, demand in self.known.items() if key in there}
        return listing

    def remembers_too_much(self, names: Collection[str]) -> bool:
        """Return whether more is known of tickets than of those that there may be, which `listing` ends."""
        return len(self.known) > _KNOWN + 2 * len(names)

    def watch(self, entry: Entry) -> int | None:
        """Open a ticket for watching; None if it is dead."""
        return probe(self.path(entry.name))

    def is_live(self, entry: Entry) -> bool:
        """Return whether somebody holds a ticket's lock."""
        return is_held(self.path(entry.name))

    def demand(self, entry: Entry) -> Demand:
        """Return what a live ticket claims, and whether it dozes.

        Raises:
            HostlerError: `unsafe-state`: its record is missing or damaged.

        """
        key = entry.key
        demand = self.known.get(key)
        if demand is None:
            demand = self.known[key] = self.read(entry.number).demand(entry.number)
        return demand._replace(dozing=True) if entry.state == DOZING else demand

    def demand_of_dead(self, entry: Entry) -> Demand | None:
        """Return what a dead ticket claimed, None if that cannot be known any more."""
        with contextlib.suppress(HostlerError):
            return self.demand(entry)
        return None

    def read(self, number: int) -> Record:
        """Read the record of a live ticket.

        Raises:
            HostlerError: `unsafe-state`: it is missing, damaged or not private.

        """
        path = self.path(f"{number}{RECORD}")
        try:
            return Record.from_json(read_small(path))
        except (FileNotFoundError, ValueError, RecursionError):
            raise HostlerError(
                Code.UNSAFE_STATE,
                f"{path}, the record of a live ticket{self._held_by(number)}, is missing or damaged",
                f"end what holds the ticket, or take it back with `hostler machine revoke {number}`",
            ) from None

    def _held_by(self, number: int) -> str:
        from hostres.holders import holders_of  # noqa: PLC0415  looks at every process, only to say whom it is about

        files = []
        with contextlib.suppress(OSError, HostlerError):
            for name in self.names():
                parts = name.split(".")
                if len(parts) > 2 and parts[1] == str(number) and is_held(self.path(name)):
                    files.append(os.lstat(self.path(name)))
        holders = [f"pid {one.pid} ({one.command})" for some in holders_of(files).values() for one in some]
        return f" that {' and '.join(holders)} hold{'s' * (len(holders) == 1)}" if holders else ""

    def write(self, number: int, record: Record) -> None:
        """Write a new ticket's record, before its FIFO appears.

        Raises:
            OSError: It cannot be written; nothing is left.

        """
        write_new(self.path(f"{number}{RECORD}"), record.to_json())

    def rewrite(self, number: int, record: Record) -> None:
        """Put another record in the place of a ticket's, which is to get another nonce.

        Raises:
            OSError: It cannot be written; the old one stands.

        """
        draft = self.path(f"{NEW}{number}")  # swept at the next ask, should this process be killed
        write_new(draft, record.to_json())
        os.rename(draft, self.path(f"{number}{RECORD}"))

    def write_over(self, before: str, number: int, record: Record) -> None:
        """Make a ticket's record of one that is nobody's any more, before its FIFO appears: nothing need be allocated.

        Args:
            before: Name of that one.
            number: Of the ticket.
            record: What it claims.

        Raises:
            OSError: It cannot be written; what is left is nobody's.

        """
        path = f"{self.place}/{before}"
        fd = open_private(path, os.O_WRONLY)
        try:
            data = record.to_json().ljust(os.lseek(fd, 0, os.SEEK_END))  # JSON may end with blanks
            if os.pwrite(fd, data, 0) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        finally:
            os.close(fd)
        os.rename(path, f"{self.place}/{number}{RECORD}")

    def put(self, entry: Entry, state: str, listing: Listing) -> Entry | None:
        """Let others see another process's waiting ticket in another state.

        Args:
            entry: That ticket.
            state: `WAITING` or `DOZING`.
            listing: What `t/` holds; the ticket is changed in it.

        Returns:
            None if it holds: an heir may at any time, and does if it has got its other name before it lost this one.

        """
        with contextlib.suppress(FileNotFoundError):  # it has just gone
            os.rename(self.path(entry.name), self.path(entry.in_state(state).name))
        if entry.after:
            self._see_to(entry, state, listing, self.names())
        else:
            listing.replace(entry, state)
        return next((after for after in listing.waiting if after.key == entry.key), None)

    def disown(self, listing: Listing) -> None:
        """Let all heirs look for themselves, before anything changes who goes first.

        Args:
            listing: What `t/` holds; they are changed in it.

        """
        heirs = [entry for entry in listing.waiting if entry.after]
        told = listing.awake[:2] if heirs else []  # whoever comes to be the first without having looked after others
        for entry in told:  # the first of them may hold meanwhile
            poke(self.path(entry.name))
        for entry in heirs:
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.path(entry.name), self.path(entry.in_state(WAITING).name))
        names = self.names() if heirs else []
        for entry in heirs:
            self._see_to(entry, WAITING, listing, names)
        for entry in listing.awake[:1]:
            if heirs and entry.key not in [before.key for before in told]:
                poke(self.path(entry.name))

    def _see_to(self, entry: Entry, state: str, listing: Listing, names: Iterable[str]) -> None:
        held = f"{HOLDING}.{entry.key}{entry.cpus}"
        if held in names:
            for before in [before for before in listing.holding if before.number == entry.after]:
                listing.forget(before)
                self.sweep_name(before.name)  # first: the other name says that it has ended
            self.sweep_name(entry.in_state(state).name)
            listing.remove(entry)
            listing.add(Entry(entry.number, entry.nonce, HOLDING, held))
        else:
            listing.replace(entry, state)

    def sweep_name(self, name: str) -> None:
        """Remove a name that is nobody's.

        Raises:
            HostlerError: `unsafe-state`: it is a folder, which nobody here has made.

        """
        try:
            os.unlink(f"{self.place}/{name}")
        except FileNotFoundError:
            pass
        except IsADirectoryError:
            raise HostlerError(Code.UNSAFE_STATE, f"{self.path(name)} is a folder", "move it away") from None


def read_small(path: str) -> bytes:
    """Read a private file of bounded size.

    Raises:
        HostlerError: `unsafe-state`: it is not private, or too large.
        OSError: It cannot be read.

    """
    fd = open_private(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        data = os.read(fd, MAX_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise HostlerError(Code.UNSAFE_STATE, f"{path} has more than {MAX_BYTES} bytes", "move it away, then try again")
    return data


def write_new(path: str, data: bytes) -> None:
    """Write a private file that does not exist yet.

    Raises:
        OSError: It cannot be written whole; nothing is left of it.

    """
    fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(fd)


def _shortened(command: Sequence[str], room: int) -> list[str]:
    words: list[str] = []
    for word in command:
        if room <= 0 or len(words) >= MAX_WORDS:
            words.append("…")
            break
        words.append(_cut(word, room))
        room -= len(_ENCODE(words[-1])) + 1
    return words


def _cut(text: str, most: int) -> str:
    """Return the start of a text, at most `MAX_WORDS` characters and *most* as JSON."""
    text = text[:MAX_WORDS]
    while text and len(_ENCODE(text)) > most + 2:
        text = text[: len(text) * 3 // 4]
    return text
