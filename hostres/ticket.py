"""One ticket as its own process holds it: first waiting, then perhaps holding."""

# Plain strings on the hot path.
# ruff: noqa: PTH108, PTH116, PTH120, PTH208

import contextlib
import functools
import os
import select
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from hostres import descriptors
from hostres.listing import DOZING, WAITING, Entry, name_of
from hostres.locks import ALIVE, WATCH, FifoLock
from hostres.pulse import Pulse
from hostres.queue import Demand
from hostres.summons import Summons
from hostres.tickets import Record

if TYPE_CHECKING:
    from hostres.stillness import Stillness


class Inheritance(NamedTuple):
    """What an heir needs to know when its time has come.

    Attributes:
        key: Of the predecessor, which it watches.
        held: Where the predecessor is, if it was admitted.
        place: Where the heir is, once it holds.

    """

    key: str
    held: str
    place: str


class Ticket:
    """A ticket of this process.

    Attributes:
        number: Its place in the order of arrival.
        nonce: Makes its name unlike any other's.
        lock: Its FIFO, locked.
        demand: What it claims, as the queue sees it.
        record: What it claims, as it is written.
        key: What stays of its name when its state changes.
        holding: Whether it is admitted.
        admitted_boot_ns: When, read after the rename that admitted it.
        watches: What it waits for: key of another ticket → descriptor that hangs up when that one dies.
        rank: 0 for the chief, 1 for the next, 2 for all others.
        parents: Numbers of the tickets it was asked for under, the nearest first.
        host: The one of them inside which it stood when it last looked, 0 for the machine.
        unit: The thread that holds it as a part of another.
        adapts: What was asked for, if what that takes follows what there is as long as it waits, else None.
        inheritance: What it comes into, if it is the heir of another ticket, else None.
        stillness: What it found when it last looked, if nothing had prompted that.

    """

    def __init__(
        self, demand: Demand, nonce: str, lock: FifoLock, record: Record, parents: tuple[int, ...] = ()
    ) -> None:
        self.number: Final = demand.number
        self.parents = parents
        self._claim(demand, nonce, lock, record)
        self.host = parents[0] if parents else 0
        self.unit = 0
        self.adapts: Mapping[str, int] | None = None
        self.inheritance: Inheritance | None = None
        self.stillness: Stillness | None = None
        self.holding = False
        self.admitted_boot_ns = 0
        self.watches: dict[str, int] = {}
        self.rank = 0
        self.withdrawn = False
        self._interval_s = self._look_s = 0.0
        self._heard = b""
        self._tickets = self._counted_ns = 0
        self.mutex = threading.Lock()
        """Held to admit or withdraw it: one of the two wins."""

    @functools.cached_property
    def summons(self) -> Summons:
        """Whom it has told that they may go; like the next two it is made for a ticket that waits alone."""
        return Summons()

    @functools.cached_property
    def roused(self) -> Summons:
        """Whom it has asked for a sign of life."""
        return Summons()

    @functools.cached_property
    def pulse(self) -> Pulse:
        """Whether somebody looks after its line."""
        return Pulse()

    @functools.cached_property
    def waiting(self) -> Entry:
        """What others see of it while it waits; likewise."""
        return Entry(
            self.number, self.nonce, WAITING, name_of(self.number, self.nonce, WAITING, self.parents), self.parents
        )

    def be_born_again(self, demand: Demand, nonce: str, lock: FifoLock, record: Record) -> None:
        """Let it claim something else from now on, in a FIFO of its own under the same number."""
        self._claim(demand, nonce, lock, record)
        del self.waiting

    def _claim(self, demand: Demand, nonce: str, lock: FifoLock, record: Record) -> None:
        self.nonce = nonce
        self.lock = lock
        self.record = record
        self.key = f"{self.number}.{nonce}"
        self.demand = demand

    def be_called(self, waiting: Entry, inheritance: Inheritance | None = None) -> None:
        """Take note of another name under which it waits now."""
        self.waiting, self.inheritance = waiting, inheritance
        self.lock.place = f"{os.path.dirname(self.lock.place)}/{waiting.name}"

    def entry(self, state: str) -> Entry:
        """Return what others see of it."""
        return self.waiting.in_state(state)

    def look_at(self, safety_net_s: Sequence[float]) -> float:
        """Return the monotonic second at which to look, or see to the line, although nothing has happened.

        Args:
            safety_net_s: Seconds after which to look, by rank.

        """
        self._interval_s, self._look_s = safety_net_s[1], time.monotonic() + safety_net_s[self.rank]
        for due in (self.summons.due(), self.roused.due()):
            self._look_s = self._look_s if due is None else min(self._look_s, due)
        return self.see_at()

    def see_at(self) -> float:
        """Return the same, after it has seen to the line only."""
        if self.rank < 2:
            return self._look_s
        folder = os.path.dirname(self.lock.place)
        try:
            changed_ns = os.stat(folder).st_mtime_ns
            if changed_ns != self._counted_ns:
                self._tickets, self._counted_ns = len(os.listdir(folder)) // 2, changed_ns  # at most so many wait
        except OSError:
            self._tickets = 0  # the folder is gone: soon, so that it is told
        return min(self._look_s, self.pulse.due(self._interval_s, self._tickets))

    def must_look(self) -> bool:
        """Return whether it must look, nothing having happened: it is time, or nobody else does."""
        return time.monotonic() >= self._look_s or self.pulse.missed()

    def need_not_look(self) -> bool:
        """Return whether somebody else has looked meanwhile, of all that saw at once that nobody did."""
        return time.monotonic() < self._look_s and self.pulse.renewed()

    def poll(self, timeout_s: float) -> Sequence[str] | None:
        """Wait until something happens.

        Args:
            timeout_s: Seconds after which to give up.

        Returns:
            Keys of the watched tickets that died, perhaps none if another process poked; None if nothing
            happened.

        """
        poll = select.poll()
        poll.register(self.lock.fd, select.POLLIN)
        keys = {fd: key for key, fd in self.watches.items()}
        for fd in keys:
            poll.register(fd, 0)
        events = poll.poll(max(0.0, timeout_s) * 1000)
        return [keys[fd] for fd, _ in events if fd in keys] if events else None

    def heard(self) -> bytes:
        """Take and return what others have told it."""
        heard, self._heard = self._heard + self.lock.drain(), b""
        return heard

    def only_lives(self) -> bool:
        """Return whether all that woke it was to know that it lives: it is the first of its line, and where it was.

        Anybody else finds out that it has come to be the first.
        """
        if self.rank:
            return False
        with self.mutex:
            if self.withdrawn or self.holding:
                return False
            self._heard = self.heard()
            if not self._heard or self._heard.strip(ALIVE) or not self.lock.still_there():
                return False
            self._heard = b""
            return True

    def wake(self) -> None:
        """Make whoever polls it return, from another thread or a signal handler."""
        if self.mutex.acquire(blocking=False):  # else it is not polled now
            try:
                if not self.holding and self.lock.fd >= 0:
                    with contextlib.suppress(BlockingIOError):  # it is full: that wakes as well
                        os.write(self.lock.fd, WATCH)
            finally:
                self.mutex.release()

    def hung(self, descriptors_: Collection[int]) -> Sequence[str]:
        """Return the keys of the watched tickets whose descriptors are among the given ones."""
        return [key for key, fd in self.watches.items() if fd in descriptors_]

    def unwatch(self, keys: Iterable[str] | None = None) -> None:
        """Close the watches on *keys*, or all of them."""
        close_watches(self.watches, self.watches if keys is None else keys)

    def withdraw(self) -> bool:
        """Leave the queue, without the gate: unlink, then close, which whoever comes next is told by the kernel.

        Returns:
            False if it is admitted already; then nothing happens.

        """
        with self.mutex:
            if self.holding:
                return False
            if not self.withdrawn:
                self.withdrawn = True
                folder = os.path.dirname(self.lock.place)
                # in this order, as others only change it in this one
                for entry in dict.fromkeys((self.waiting, self.entry(WAITING), self.entry(DOZING))):
                    self.lock.place = f"{folder}/{entry.name}"
                    if self.lock.still_there():
                        with contextlib.suppress(OSError):
                            os.unlink(self.lock.place)
                self.lock.close()
            return True


def close_watches(watches: dict[str, int], keys: Iterable[str]) -> None:
    """Close those of a ticket's watches that are on *keys*; another thread may do so in the same moment."""
    for key in tuple(keys):
        fd = watches.pop(key, None)
        if fd is not None:
            descriptors.close(fd)
