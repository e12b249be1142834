"""Messages to a scheduler: frozen, named by what happened or what is wanted. No I/O, no pykka.

Actors tell, they never ask; an answer goes to the `reply_to` inside the message.
"""

from collections.abc import Mapping
from typing import Any

from actors.actions import (
    Address,
    TimerName,
)
from actors.outcomes import Exact, Failed, Integrated, NotIntegrated, Outcome, Prepared, Release
from hostres.errors import Code, HostlerError
from store.amounts import Usage
from store.approvals import Accepted, Refused
from store.contracts import Request
from store.lazy_dataclass import dataclass

# --- what its pure core decides about -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """The run is claimed; take it up.

    Attributes:
        requests: What waits for it in the store.

    """

    requests: tuple[Request, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoversEnded:
    """The processes of dead attempts have been looked for and ended.

    Attributes:
        nodes: The nodes that were asked about.
        remaining: Node → what could not be ended, for people.

    """

    nodes: tuple[str, ...]
    remaining: Mapping[str, str]
    ended: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The machine admitted the claims of a node.

    Attributes:
        number: Of the ask.
        admitted_boot_ns: Read after the ticket was holding.
        claims: What it holds, resource → units, with all that the claims take here; None if that is what it asked for.

    """

    node: str
    number: int
    ticket: int
    admitted_boot_ns: int
    claims: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAdmitted:
    """The machine refused the claims of a node; *number* is the ask's."""

    node: str
    number: int
    code: Code
    message: str
    todo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerAnswered:
    """The planner of a node has answered."""

    node: str
    number: int
    answer: Prepared | Exact | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The work of an attempt has ended, and its lease has been given back.

    Attributes:
        reconciling: Whether that was its reconciliation.

    """

    node: str
    attempt: int
    outcome: Outcome
    release: Release | None
    reconciling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrationEnded:
    """What an attempt made is where it belongs, or nothing was moved."""

    node: str
    attempt: int
    answer: Integrated | NotIntegrated


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationWanted:
    """An attempt is about to write outside; it waits for `PublicationAllowed` or `PublicationRefused`.

    Attributes:
        reconciling: Whether its reconciliation is.

    """

    node: str
    attempt: int
    reply_to: Address
    reconciling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingReported:
    """An attempt says what it has spent since it last said so; it waits for `SpendingRecorded` or `SpendingRefused`."""

    node: str
    attempt: int
    usage: Usage
    reply_to: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCut:
    """A log of an attempt lacks some of what its processes wrote: the disk did not take it.

    Attributes:
        stream: Which log, as `stdout` or `stderr.2`.
        missing: Bytes, at most.
        why: What the system said.

    """

    node: str
    attempt: int
    stream: str
    missing: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsArrived:
    """Requests of people and other processes that nobody has consumed yet."""

    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What authority says to a request."""

    request: Request
    ruling: Accepted | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A timer has run out."""

    timer: TimerName


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSeen:
    """How long a worker's lease still lasts.

    Attributes:
        left_s: Seconds; 0 once it has expired.

    """

    node: str
    attempt: int
    left_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseTaken:
    """What was seen of an attempt that is to show that it lives.

    Attributes:
        beats: How often it has beaten.
        silent_s: Since its last beat, or since its start, seconds of a monotonic clock.
        late_s: By how much that was looked at too late, seconds.
        running: Whether it is still at work.

    """

    node: str
    attempt: int
    beats: int
    silent_s: float
    late_s: float = 0.0
    running: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What a probe says of a silent attempt.

    Attributes:
        running: Whether what it waits for still runs; None if the probe gave no answer.

    """

    node: str
    attempt: int
    running: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Stop taking up work and hand the run back.

    Attributes:
        grace_s: How long admitted work may go on before it is stopped, seconds.

    """

    grace_s: float


SchedulingMessage = (
    Begin
    | LeftoversEnded
    | Admitted
    | NotAdmitted
    | Returned
    | IntegrationEnded
    | PlannerAnswered
    | PublicationWanted
    | SpendingReported
    | LogCut
    | RequestsArrived
    | Judged
    | Due
    | LeaseSeen
    | PulseTaken
    | Probed
    | Drain
)


# --- to a scheduler's shell ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an attempt is; advice for views, never stored."""

    node: str
    attempt: int
    fraction: float | None
    text: str = ""
    speed: float | None = None
    left_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The commit of that number, and all before it, are durable."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRefused:
    """The commit of that number was not made, and none after it will be."""

    number: int
    error: HostlerError


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineAnswer:
    """What the machine said to an ask; `lease` is a live object of this process, or None."""

    answer: Admitted | NotAdmitted
    lease: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacate:
    """Stop what runs and go: a service that the scheduler depends on has broken."""
