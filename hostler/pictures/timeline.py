"""What a run did when: a pure function from its events to a frozen value, which others draw."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from hostler.pictures.holding import Band, Hold, bands
from hostler.pictures.moments import Moment, Reading, moments
from store.clock import Stamp
from store.contracts import Event, EventKind
from store.lifecycle import FINAL, Status


class Phase(StrEnum):
    """What a node did in one stretch of time."""

    DEPENDENCIES = "waited for other nodes"
    ROOM = "waited for room in its host"
    PREPARING = "was planned"
    PERSON = "waited for a person"
    MACHINE = "waited for the machine"
    RAN = "ran"
    CHECKED = "its result was checked"
    FAILED = "ran and failed"
    CANCELLED = "ran and was cancelled"
    INTERRUPTED = "ran and was interrupted"
    LOST = "its host was gone"
    RETRY = "waited for its next try"


_PHASES: Final[Mapping[Status, Phase]] = MappingProxyType(
    {
        Status.PENDING: Phase.DEPENDENCIES,
        Status.READY: Phase.ROOM,
        Status.PREPARING: Phase.PREPARING,
        Status.APPROVAL_REQUIRED: Phase.PERSON,
        Status.BLOCKED: Phase.PERSON,
        Status.AMBIGUOUS: Phase.PERSON,
        Status.AMBIGUOUS_CODE: Phase.PERSON,
        Status.QUEUED: Phase.MACHINE,
        Status.RUNNING: Phase.RAN,
        Status.VERIFYING: Phase.CHECKED,
        Status.CORRECTIVE: Phase.RETRY,
    }
)
"""What a node does while it has that status; one that is final does nothing."""

_ENDED: Final[Mapping[Status, Phase]] = MappingProxyType(
    {
        Status.CORRECTIVE: Phase.FAILED,
        Status.FAILED: Phase.FAILED,
        Status.BLOCKED: Phase.FAILED,
        Status.INCOMPATIBLE: Phase.FAILED,
        Status.CANCELLED: Phase.CANCELLED,
        Status.READY: Phase.INTERRUPTED,
        Status.AMBIGUOUS: Phase.INTERRUPTED,
        Status.AMBIGUOUS_CODE: Phase.INTERRUPTED,
    }
)
"""What an attempt turns out to have been, by the status that follows it."""

WORK: Final = frozenset({Phase.RAN, Phase.CHECKED, Phase.FAILED, Phase.CANCELLED, Phase.INTERRUPTED, Phase.PREPARING})
"""Phases in which something is done for the node."""

ATTEMPTS: Final = frozenset({Phase.RAN, Phase.FAILED, Phase.CANCELLED, Phase.INTERRUPTED})
"""Phases in which an attempt runs."""

_FOR_A_HOST: Final = WORK | {Phase.ROOM, Phase.MACHINE, Phase.RETRY, Phase.LOST}
"""Phases that a host would end; where all wait for a person, that none is there is as it should be."""

_NOT_BEGUN: Final = FINAL | {Status.PENDING, Status.READY}
"""Statuses by which nothing of a node begins."""

_NOT_DRAWN: Final = frozenset({EventKind.RUN_CLAIMED, EventKind.RUN_RELEASED})
"""Events that make the picture of a run that has ended no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One stretch of a bar.

    Attributes:
        start_s: When it began, seconds since the run was created.
        end_s: When it ended, or the end of the picture.
        attempt: The attempt that runs or is checked; None in any other phase.
        going: Whether it goes on beyond the end of the picture.

    """

    phase: Phase
    start_s: float
    end_s: float
    attempt: int | None = None
    going: bool = False

    @property
    def length_s(self) -> float:
        """How long it was, seconds."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One node.

    Attributes:
        spans: In order, none over another.
        attempts: How often it was started.

    """

    key: str
    label: str | None
    status: Status
    spans: tuple[Span, ...]
    attempts: int

    @property
    def ran_s(self) -> float:
        """How long its attempts ran in all, seconds."""
        return sum(span.length_s for span in self.spans if span.phase in ATTEMPTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A stretch of time in which there was something to do for the run, and no host that did it.

    Attributes:
        died: Whether its host had died, some time in it, rather than given the run back.

    """

    start_s: float
    end_s: float
    died: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A run over time.

    Attributes:
        title: What it is a picture of.
        status: Where the run stands.
        created_at: When it was created, RFC 3339; empty if its log does not say.
        length_s: From its creation to its end, or to when the picture was made.
        bars: One a node, in the order in which they began; those that never did come last, in the order of the plan.
        bands: One a resource that was held.
        absences: In order.

    """

    title: str
    status: str
    created_at: str
    length_s: float
    bars: tuple[Bar, ...]
    bands: tuple[Band, ...]
    absences: tuple[Absence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a timeline is of.

    Attributes:
        title: What it is a picture of.
        status: Where the run stands.
        nodes: Key, label and whether it depends on others, of each node, in the order of the plan.
        capacity: Units of each resource that the machine has now; empty if that says nothing about the run.

    """

    title: str
    status: str
    nodes: Sequence[tuple[str, str | None, bool]]
    capacity: Mapping[str, int] = field(default_factory=dict)


def timeline(subject: Subject, events: Iterable[Event], *, now: Stamp | None = None, owned: bool = False) -> Timeline:
    """Tell a run over time.

    Args:
        subject: The run.
        events: Its log, whole and in order.
        now: When the picture is made, for a run that has not ended; None ends it with its last event.
        owned: Whether a living host works on it now.

    """
    log = list(events)
    readings = [Reading(at=e.at, boot_ns=e.boot_ns, claims=e.kind is EventKind.RUN_CLAIMED) for e in log]
    if now is not None:
        readings.append(Reading(at=now.at, boot_ns=now.boot_ns, claims=True))
    when = list(moments(readings))
    told = _Telling(subject, log[0].at if log else "")
    for event, moment in zip(log, when, strict=False):
        told.take(event, moment)
    last = [moment.s for event, moment in zip(log, when, strict=False) if event.kind not in _NOT_DRAWN]
    return told.end(when[-1].s if now is not None else max(last, default=0.0), owned=owned or now is None)


@dataclass(slots=True, kw_only=True)
class _Row:
    """A node as told so far."""

    key: str
    label: str | None
    order: int
    status: Status
    phase: Phase | None
    since_s: float = 0.0
    attempt: int | None = None
    attempts: int = 0
    first_s: float | None = None
    spans: list[Span] = field(default_factory=list)

    def close(self, s: float, phase: Phase | None = None, *, going: bool = False) -> None:
        """End the stretch that is open, as *phase* if that turned out; only an attempt is kept that took no time."""
        kind = phase or self.phase
        if kind is not None and (s > self.since_s or kind in ATTEMPTS):
            attempt = self.attempt if kind in WORK and kind is not Phase.PREPARING else None
            self.spans.append(Span(phase=kind, start_s=self.since_s, end_s=s, attempt=attempt, going=going))
        self.since_s = s


class _Telling:
    """A run as far as its events were read."""

    def __init__(self, subject: Subject, created_at: str) -> None:
        self._subject = subject
        self._created_at = created_at
        self._rows = {
            key: _Row(
                key=key,
                label=label,
                order=order,
                status=Status.PENDING if waits else Status.READY,
                phase=Phase.DEPENDENCIES if waits else Phase.ROOM,
            )
            for order, (key, label, waits) in enumerate(subject.nodes)
        }
        self._holds: list[Hold] = []
        self._held: dict[int, tuple[str, Mapping[str, int], float, bool]] = {}
        self._absences: list[Absence] = []
        self._alone_since_s: float | None = 0.0
        self._last_s = 0.0

    def take(self, event: Event, moment: Moment) -> None:
        """Take in the next event."""
        row = self._rows.get(event.node or "")
        match event.kind:
            case EventKind.RUN_CLAIMED:
                self._claimed(moment.s)
            case EventKind.RUN_RELEASED:
                self._alone_since_s = moment.s
            case EventKind.NODE_RUNNING if row is not None and event.data.get("reconciling") is True:
                row.close(moment.s)
                row.phase = Phase.CHECKED
                self._hold(event, moment)
            case EventKind.NODE_RUNNING | EventKind.NODE_STATUS if row is not None:
                self._move(row, event, moment)
            case EventKind.LEASE_RELEASED:
                self._release(event, moment)
            case _:
                pass
        self._last_s = moment.s

    def _claimed(self, s: float) -> None:
        """Let another host take the run over; if nobody gave it back, its host died after its last event."""
        if self._alone_since_s is None:
            self._lose(self._last_s)
        since_s = self._last_s if self._alone_since_s is None else self._alone_since_s
        died = self._alone_since_s is None
        if s > since_s and (died or any(row.phase in _FOR_A_HOST for row in self._rows.values())):
            self._absences.append(Absence(start_s=since_s, end_s=s, died=died))
        self._alone_since_s = None

    def _lose(self, s: float) -> None:
        """Say that nothing is known of what ran, and of what it held, since *s*."""
        for row in self._rows.values():
            if row.phase in (Phase.RAN, Phase.CHECKED, Phase.PREPARING):
                row.close(s, Phase.INTERRUPTED if row.phase is Phase.RAN else None)
                row.phase = Phase.LOST
        for ticket in list(self._held):
            node, claims, _, _ = self._held[ticket]
            self._let_go(ticket, s)
            self._held[ticket] = node, claims, s, False

    def _move(self, row: _Row, event: Event, moment: Moment) -> None:
        status = Status(str(event.data["status"]))
        via = event.data.get("via")
        path = [*(Status(str(name)) for name in (via if isinstance(via, list) else [])), status]
        row.close(moment.s, _ENDED.get(path[0]) if row.phase is Phase.RAN else None)
        for ticket, (node, _, _, known) in list(self._held.items()):
            if node == row.key and not known:  # what a dead host left is ended before its node moves
                self._let_go(ticket, moment.s)
        row.status, row.phase = status, _PHASES.get(status)
        if row.first_s is None and status not in _NOT_BEGUN:
            row.first_s = moment.s
        if status is Status.RUNNING:
            row.attempts = row.attempt = event.attempt or row.attempts + 1
            self._hold(event, moment)

    def _hold(self, event: Event, moment: Moment) -> None:
        ticket, claims, since = (event.data.get(name) for name in ("ticket", "claims", "admitted_boot_ns"))
        if isinstance(ticket, int) and isinstance(claims, dict) and isinstance(since, int):
            units = {name: number for name, number in claims.items() if isinstance(number, int)}
            self._held[ticket] = event.node or "", units, min(moment.when(since), moment.s), True

    def _release(self, event: Event, moment: Moment) -> None:
        ticket, until = event.data.get("ticket"), event.data.get("released_boot_ns")
        if isinstance(ticket, int) and isinstance(until, int) and ticket in self._held:
            self._let_go(ticket, min(moment.when(until), moment.s))

    def _let_go(self, ticket: int, s: float) -> None:
        node, claims, since_s, known = self._held.pop(ticket)
        self._holds += [
            Hold(node=node, resource=resource, units=units, start_s=since_s, end_s=s, known=known)
            for resource, units in claims.items()
            if s > since_s
        ]

    def end(self, s: float, *, owned: bool) -> Timeline:
        """Return the whole.

        Args:
            s: Where the picture ends at the earliest, seconds.
            owned: Whether a living host works on the run then.

        """
        s = max([s, *(row.since_s for row in self._rows.values())])  # a host that only claimed it may have died later
        if not owned:
            self._claimed(s)
        for row in self._rows.values():
            row.close(s, going=row.status not in FINAL)
        for ticket in list(self._held):
            self._let_go(ticket, s)
        rows = sorted(self._rows.values(), key=lambda row: (row.first_s is None, row.first_s or 0.0, row.order))
        return Timeline(
            title=self._subject.title,
            status=self._subject.status,
            created_at=self._created_at,
            length_s=s,
            bars=tuple(
                Bar(key=row.key, label=row.label, status=row.status, spans=tuple(row.spans), attempts=row.attempts)
                for row in rows
            ),
            bands=bands(self._holds, self._subject.capacity),
            absences=tuple(each for each in self._absences if each.start_s < s),
        )
