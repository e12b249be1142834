"""Machine-wide admission for a program: ask for capacity, get a lease.

Independent processes of one user share a folder and nothing else; there is no daemon. A claim is admitted
whole or not at all, equal claims in order of arrival, the oldest waits only so long for what others could
use meanwhile, and what a process held is free again the moment it and all it passed the lease to are gone,
however they died.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from hostres.arguments import folder as path_of
from hostres.arguments import invalid, of_type, seconds, text
from hostres.claims import check_keys, describe, is_name, is_priority, is_units
from hostres.clock import boot_ns
from hostres.errors import Code, HostlerError
from hostres.lease import Lease, current_lease
from hostres.machine import Machine
from hostres.nesting import ALONE, Asker, Parent
from hostres.patience import Patience
from hostres.platforms import require_supported
from hostres.poller import SAFETY_NET_S, Admitted, Ask, NotAdmitted, Poller, closed
from hostres.settings import MachineSettings
from hostres.ticket import Ticket
from hostres.tickets import Record

if TYPE_CHECKING:
    from hostres.niceness import Niceness

__all__ = ["Admitted", "Ask", "Coordinator", "Lease", "NotAdmitted", "Patience", "current_lease"]

MAX_WAIT_S: Final = 86_400.0
ABORT_S: Final = 0.05
"""A blocking wait that can be aborted looks at its event so often."""


class Coordinator:
    """One process's door to a machine folder; a context manager.

    Attributes:
        machine: The folder and its counters.

    """

    def __init__(
        self,
        folder: Path,
        *,
        explicit: Mapping[str, int] | None = None,
        environ: Mapping[str, str] | None = None,
        patience: Patience | None = None,
        settings: MachineSettings | None = None,
    ) -> None:
        """Open the folder, making it if need be.

        Args:
            folder: The machine folder; see `machine_folder`.
            explicit: Capacities that this process sets, resource → units: the keys of `[machine.capacity]`.
            environ: The environment, in which `HOSTLER_LEASE` may name the lease under which this process runs; this
                process's by default.
            patience: Sets for the whole machine how long the oldest waiter lets others pass; None adopts what is
                in force.
            settings: What the configuration says, see `machine_settings`; what is given beside it goes before it.

        Raises:
            HostlerError: `unsupported-platform`, `unsafe-state`, `invalid-profile`, `unavailable`; `invalid-data`: an
                argument of a wrong type.

        """
        require_supported()
        place = path_of(folder, name="folder")
        if place is None:
            raise invalid("folder", folder, "give the path of a folder, as `machine_folder` does")
        of_type(explicit, Mapping, name="explicit", todo='give a mapping, as in {"cpu": 2}')
        of_type(environ, Mapping, name="environ", todo="give a mapping of texts, as os.environ")
        of_type(patience, Patience, name="patience", todo="give a Patience")
        of_type(settings, MachineSettings, name="settings", todo="give what `machine_settings` returns")
        given = settings or MachineSettings()
        given = given._replace(
            capacity={**given.capacity, **(explicit or {})}, patience=given.patience if patience is None else patience
        )
        for name, units in given.capacity.items():
            if not (is_name(name) and is_units(units, least=0)):
                raise HostlerError(
                    Code.INVALID_PROFILE,
                    f"{name} = {units!r} is not a capacity",
                    "write a lower-case name and a whole number of units",
                )
        self.machine: Final = Machine(place, given)
        self._outermost = Parent.of_environment(os.environ if environ is None else environ)
        self._poller = Poller(self.machine)
        self._closed = threading.Event()
        self._waiting: set[Ticket] = set()
        """Those for which threads wait; what is added to it looks at `_closed` afterwards."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """The capacities that the next ask will meet, resource → units."""
        return self.machine.capacity()

    @property
    def niceness(self) -> "Niceness | None":
        """How the programs that its leases run stand behind others; so should those that claim nothing."""
        return self.machine.settings.niceness

    @property
    def safety_net_looks(self) -> int:
        """How often a waiter of this process looked although nothing had woken it."""
        return self.machine.safety_net_looks

    @property
    def safety_net_progress(self) -> int:
        """How often such a look was what made progress; expected to stay 0."""
        return self.machine.safety_net_progress

    def lease(
        self,
        claims: Mapping[str, int],
        *,
        wait: float | None = None,
        name: str = "",
        command: Sequence[str] = (),
        keys: Sequence[str] = (),
        abort: threading.Event | None = None,
        priority: int = 0,
        parent: Lease | None = None,
    ) -> Lease:
        """Wait for capacity.

        Under a living lease - *parent*, that of the context, or that of `HOSTLER_LEASE` - it is for a part of that.

        Args:
            claims: Resource → units, admitted whole or not at all.
            wait: Seconds to wait at most; None waits as long as it takes.
            name: Shown to people.
            command: Shown to people.
            keys: Exclusive keys: on the whole machine, one holder each.
            abort: Ends the wait when set.
            priority: From -10 to 10; the higher goes first, as long as the oldest waiter is not patient.
            parent: The lease for a part of which it is, while that lives.

        Raises:
            HostlerError: `invalid-claims`, `invalid-data`, `profile-mismatch`, `wait-timeout`, `wait-aborted` (by
                *abort* or `close`), `conflict` (this thread has a part of its lease already and would wait for more, or
                this is closed), `ownership-lost`, `unsafe-state`, `unavailable`.

        """
        if self._closed.is_set():
            raise closed()
        until = None if wait is None else _until(wait)
        of_type(abort, threading.Event, name="abort", todo="give a threading.Event")
        record = _record(claims, keys, name, command, priority)
        # The gate is busy for moments on any machine: who does not want to wait for capacity waits for that.
        given_up = None if until is None else until + 1.0
        ticket = self.machine.ask(record, asker=self._asker(parent, blocks=True), until=given_up)
        try:
            if not ticket.holding:
                self._wait(ticket, until, abort)
        except BaseException:
            self._give_up(ticket)
            raise
        return Lease(self.machine, ticket)

    def ask(
        self,
        claims: Mapping[str, int],
        *,
        notify: Callable[[Admitted | NotAdmitted], None],
        keys: Sequence[str] = (),
        name: str = "",
        command: Sequence[str] = (),
        priority: int = 0,
        parent: Lease | None = None,
    ) -> Ask:
        """Ask for capacity without waiting; under a lease as `lease` does.

        Args:
            claims: Resource → units, admitted whole or not at all.
            notify: Called once with the answer, on the poll thread, unless the ask is withdrawn before.
            keys: Exclusive keys: on the whole machine, one holder each.
            name: Shown to people.
            command: Shown to people.
            priority: As for `lease`.
            parent: As for `lease`.

        Raises:
            HostlerError: `invalid-claims`: keys or a priority out of bounds; `invalid-data`: an argument of a wrong
                type; `conflict`: it is closed.

        """
        if self._closed.is_set():
            raise closed()
        if not callable(notify):
            raise invalid("notify", notify, "give a function that takes the answer")
        inside = parent is not None or current_lease.get() is not None
        asker = self._asker(parent, blocks=inside)
        ask = Ask(self._poller, _record(claims, keys, name, command, priority), asker, notify)
        self._poller.submit(ask)
        return ask

    def close(self) -> None:
        """Withdraw all asks and abort all waits, of any thread; leases stay. Idempotent."""
        self._closed.set()
        for ticket in tuple(self._waiting):
            ticket.wake()
        self._poller.close()
        self.machine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _asker(self, lease: Lease | None, *, blocks: bool) -> Asker:
        of_type(lease, Lease, name="parent", todo="give the lease of which it is to be a part")
        lease, outermost = lease or current_lease.get(), self._outermost
        if lease is None and outermost is None:
            return ALONE
        parents = (*((lease.as_parent,) if lease else ()), *((outermost,) if outermost else ()))
        return Asker(parents=parents, unit=threading.get_ident(), blocks=blocks)

    def _wait(self, ticket: Ticket, until: float | None, abort: threading.Event | None) -> None:
        self._waiting.add(ticket)
        try:
            self._wait_on(ticket, until, abort)
        finally:
            self._waiting.discard(ticket)

    def _wait_on(self, ticket: Ticket, until: float | None, abort: threading.Event | None) -> None:
        look_at = ticket.look_at(SAFETY_NET_S)
        while True:
            if self._closed.is_set():
                what = f"the coordinator was closed during the wait for {_wanted(ticket)}"
                raise HostlerError(Code.WAIT_ABORTED, what, "ask before it is closed")
            if abort is not None and abort.is_set():
                raise HostlerError(Code.WAIT_ABORTED, f"the wait for {_wanted(ticket)} was aborted", "ask again")
            now = time.monotonic()
            if until is not None and now >= until:
                raise self._timeout(ticket)
            ends = [look_at] if until is None else [look_at, until]
            if abort is not None:
                ends.append(now + ABORT_S)
            hung = ticket.poll(min(ends) - now)
            if hung and self.machine.inherit(ticket, hung):
                return
            if self._closed.is_set():
                continue
            unprompted = hung is None
            if unprompted and time.monotonic() < look_at:
                continue
            if not (unprompted or hung) and ticket.only_lives():
                continue
            if unprompted and not ticket.must_look():
                look_at = ticket.see_at()
                continue
            if self.machine.look(ticket, hung=hung or (), unprompted=unprompted, until=until):
                return
            look_at = ticket.look_at(SAFETY_NET_S)

    def _give_up(self, ticket: Ticket) -> None:
        ticket.withdraw()
        ticket.unwatch()
        if ticket.holding:
            Lease(self.machine, ticket).release()

    def _timeout(self, ticket: Ticket) -> HostlerError:
        from hostres.top import snapshot  # noqa: PLC0415  only to say why

        why = ""
        with contextlib.suppress(HostlerError):
            rows = {row.ticket: row for row in snapshot(self.machine.folder).tickets}
            why = "; ".join(str(short) for short in rows[ticket.number].blocked_by) if ticket.number in rows else ""
        return HostlerError(
            Code.WAIT_TIMEOUT,
            f"no room for {_wanted(ticket)} in time" + (f" ({why})" if why else ""),
            "see `hostler top`, then wait longer or claim less",
        )


def _until(wait: float) -> float:
    """Return the monotonic second at which a wait ends."""
    wait = seconds(wait, name="wait") or 0.0
    if not 0 <= wait <= MAX_WAIT_S:
        raise HostlerError(Code.INVALID_DATA, f"a wait of {wait:g} s", "wait 0 s to 24 h")
    return time.monotonic() + wait


def _record(claims: Mapping[str, int], keys: Sequence[str], name: str, command: Sequence[str], priority: int) -> Record:
    if type(claims) is not dict and not isinstance(claims, Mapping):
        raise invalid("claims", claims, 'give a mapping, as in {"cpu": 2}', code=Code.INVALID_CLAIMS)
    if keys != ():
        _check_listed(keys)
    if not is_priority(priority):
        raise HostlerError(Code.INVALID_CLAIMS, f"a priority of {priority!r}", "use a whole number from -10 to 10")
    digests: tuple[str, ...] = ()
    if keys:
        import hashlib  # noqa: PLC0415  the light path has no keys

        check_keys(tuple(keys))
        digests = tuple(sorted({hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest() for key in keys}))
    return Record(
        claims=dict(claims),
        keys=digests,
        asked_boot_ns=boot_ns(),
        priority=priority,
        name=text(name, name="name"),
        pid=os.getpid(),
        command=tuple([text(word, name="command") for word in _listed(command)]) if command != () else (),
    )


def _check_listed(keys: Any) -> None:
    """Refuse keys that could not be looked at twice, as those of an iterator, or that are no texts."""
    listed = keys is None or (isinstance(keys, Collection) and not isinstance(keys, str | bytes))
    if not listed or not all(isinstance(key, str) for key in keys or ()):
        raise invalid("keys", keys, 'give a list of texts, as in ["film"]', code=Code.INVALID_CLAIMS)


def _listed(command: Any) -> Sequence[Any]:
    if isinstance(command, tuple) or (isinstance(command, Sequence) and not isinstance(command, str | bytes)):
        return command
    raise invalid("command", command, 'give a list, as in ["echo", "hi"]')


def _wanted(ticket: Ticket) -> str:
    keys = len(ticket.record.keys)
    return describe(ticket.record.claims) + (f" and {keys} exclusive keys" if keys else "")
