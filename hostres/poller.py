"""One thread that waits for all tickets asked for without blocking."""

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from hostres import descriptors
from hostres.beginning import begin
from hostres.errors import Code, HostlerError
from hostres.lease import Lease
from hostres.logger import LOG
from hostres.machine import Machine
from hostres.nesting import Asker
from hostres.ticket import Ticket
from hostres.tickets import Record

SAFETY_NET_S: Final = (2.0, 1.0, 60.0)
"""After so many seconds a waiter looks unprompted: the chief, its successor, all others.

The successor also asks the chief for a sign of life, so that it looks as often; the others see whether these do, and if
not look in their place; see `hostres.pulse`.
"""


class Admitted(NamedTuple):
    """The ask was granted."""

    lease: Lease


class NotAdmitted(NamedTuple):
    """The ask was refused."""

    error: HostlerError


Notify = Callable[[Admitted | NotAdmitted], None]


def closed() -> HostlerError:
    """Return what is said to who asks a coordinator that was closed."""
    return HostlerError(Code.CONFLICT, "the coordinator is closed", "make a new one")


class Ask:
    """A wish for capacity that does not block.

    `notify` is called once, on the poll thread, unless the ask is withdrawn before.
    """

    def __init__(self, poller: "Poller", record: Record, asker: Asker, notify: Notify) -> None:
        self._poller = poller
        self._mutex = threading.Lock()
        self._settled = False
        self.record = record
        self.asker = asker
        self.notify = notify
        self.ticket: Ticket | None = None
        self.look_at = 0.0

    def withdraw(self) -> None:
        """Leave the queue; without effect once admitted or refused. `notify` is not called afterwards."""
        with self._mutex:
            if self._settled or (self.ticket is not None and not self.ticket.withdraw()):
                return
            self._settled = True
        self._poller.wake()

    def seat(self, ticket: Ticket) -> bool:
        """Give it its ticket; False if it was withdrawn meanwhile."""
        with self._mutex:
            self.ticket = ticket
            return not self._settled

    def settle(self) -> bool:
        """Note that it will be answered; False if it was withdrawn."""
        with self._mutex:
            if self._settled:
                return False
            self._settled = True
            return True

    @property
    def settled(self) -> bool:
        """Whether it was answered or withdrawn."""
        return self._settled


class Poller:
    """Serves the asks of one coordinator; its thread starts with the first."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._mutex = threading.Lock()
        self._new: list[Ask] = []
        self._waiting: list[Ask] = []
        self._thread: threading.Thread | None = None
        self._bell = -1
        self._stopping = False
        descriptors.forget_after_fork(self)

    def submit(self, ask: Ask) -> None:
        """Take on an ask."""
        with self._mutex:
            if self._stopping:
                raise closed()
            if self._thread is None:
                with descriptors.guard:
                    self._bell = descriptors.keep(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))
                thread = threading.Thread(target=self._serve, name="hostres-poller", daemon=True)
                begin(thread)
                self._thread = thread
            self._new.append(ask)
        self.wake()

    def wake(self) -> None:
        """Make the thread look at its asks."""
        with self._mutex:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Withdraw all asks and end the thread; idempotent."""
        with self._mutex:
            self._stopping = True
            thread = self._thread
            asks = [*self._new, *self._waiting]
        for ask in asks:
            ask.withdraw()
        self.wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def forget(self) -> None:
        """Drop what belongs to the parent; called in a forked child, where the thread does not exist."""
        self._mutex = threading.Lock()
        self._new, self._waiting, self._thread, self._bell = [], [], None, -1

    def _serve(self) -> None:
        try:
            while True:
                with self._mutex:
                    new, self._new = self._new, []
                    stopping = self._stopping
                while new:  # no name here keeps an ask, and with it a lease that nobody has
                    self._begin(new.pop(0))
                if stopping:
                    for ask in self._waiting:
                        ask.withdraw()  # also one that was being seated while `close` went round
                self._let_go()
                if stopping:
                    return
                self._wait()
        finally:
            with self._mutex:
                bell, self._bell = self._bell, -1
            descriptors.close(bell)

    def _begin(self, ask: Ask) -> None:
        if ask.settled:
            return
        try:
            ticket = self._machine.ask(ask.record, asker=ask.asker)
        except Exception as error:  # noqa: BLE001  whatever it is, the asker must hear of it
            self._refuse(ask, error)
            return
        if not ask.seat(ticket):
            self._undo(ticket)
        elif ticket.holding:
            self._admit(ask)
        else:
            self._rest(ask)
            self._waiting.append(ask)

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        due = None
        for ask in self._waiting:
            ticket = ask.ticket
            own = -1 if ticket is None else ticket.lock.fd
            if ticket is not None and own >= 0:
                poll.register(own, select.POLLIN)
                for fd in ticket.watches.values():
                    poll.register(fd, 0)
                due = ask.look_at if due is None else min(due, ask.look_at)
        timeout_s = None if due is None else max(0.0, due - time.monotonic())
        events = dict(poll.poll(None if timeout_s is None else timeout_s * 1000))
        if self._bell in events:
            os.eventfd_read(self._bell)
        for ask in tuple(self._waiting):
            self._attend(ask, events)

    def _attend(self, ask: Ask, events: dict[int, int]) -> None:
        ticket = ask.ticket
        if ticket is None or ask.settled:
            return
        hung = ticket.hung(events)
        poked = ticket.lock.fd in events
        if hung and self._machine.inherit(ticket, hung):
            self._admit(ask)
            return
        unprompted = not hung and not poked
        if unprompted and time.monotonic() < ask.look_at:
            return
        if not (unprompted or hung) and ticket.only_lives():
            return
        if unprompted and not ticket.must_look():
            ask.look_at = ticket.see_at()
            return
        try:
            admitted = self._machine.look(ticket, hung=hung, unprompted=unprompted)
        except Exception as error:  # noqa: BLE001  likewise
            ticket.withdraw()
            self._refuse(ask, error)
            return
        if admitted:
            self._admit(ask)
        else:
            self._rest(ask)

    def _rest(self, ask: Ask) -> None:
        assert ask.ticket is not None
        ask.look_at = ask.ticket.look_at(SAFETY_NET_S)

    def _let_go(self) -> None:
        """Forget what is settled; only this thread closes watches, as only it polls them."""
        settled = [ask for ask in self._waiting if ask.settled]
        self._waiting = [ask for ask in self._waiting if not ask.settled]
        for ask in settled:
            if ask.ticket is not None:
                ask.ticket.unwatch()

    def _undo(self, ticket: Ticket) -> None:
        ticket.withdraw()
        ticket.unwatch()
        if ticket.holding:
            Lease(self._machine, ticket).release()

    def _admit(self, ask: Ask) -> None:
        ticket = ask.ticket
        assert ticket is not None
        if ask.settle():
            self._tell(ask, Admitted(lease=Lease(self._machine, ticket)))
            ticket.unwatch()
            ask.ticket = None  # where the callback failed and kept nothing, the capacity is free again
        else:
            self._undo(ticket)

    def _refuse(self, ask: Ask, error: Exception) -> None:
        if not isinstance(error, HostlerError):
            LOG.error("an ask failed", exc_info=error)
            error = HostlerError(Code.INTERNAL, f"an ask failed: {error!r}", "report it with the log")
        if ask.settle():
            self._tell(ask, NotAdmitted(error=error))

    def _tell(self, ask: Ask, answer: Admitted | NotAdmitted) -> None:
        try:
            ask.notify(answer)
        except BaseException:  # noqa: BLE001  the callback is a stranger's, whatever it wants to end; others wait
            LOG.exception("the callback of an ask failed")
