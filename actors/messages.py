"""Every message between actors: frozen, named by what happened or what is wanted. No I/O, no pykka.

Actors tell, they never ask; an answer goes to the `reply_to` inside the message. Grouped by who receives them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import JsonValue

from actors.actions import (
    Address,
    AskMachine,
    CancelTimer,
    Judge,
    NodeChanged,
    RunChanged,
    RunLeft,
    SetTimer,
    TimerName,
)
from hostres.errors import Code, HostlerError
from store.approvals import Accepted, Refused
from store.contracts import FailureCode, GraphPlan, Request, RunRecord
from store.transactions import Claimed, Fence, Transaction

# --- to a scheduler: what its pure core decides about -------------------------------------------------------------


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
class Value:
    """The work gave a value.

    Attributes:
        value: Read-only JSON.
        data: Its canonical bytes.
        sha256: Their digest in the domain of outputs.

    """

    value: JsonValue
    data: bytes
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The work failed by itself.

    Attributes:
        dispatched: Whether the node's own code or program was reached; if not, nothing can have happened outside.

    """

    code: FailureCode
    message: str
    todo: str
    retryable: bool = False
    dispatched: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """The work stopped because it was asked to.

    Attributes:
        reason: cancel, timeout or drain.
        left: What of its processes could not be ended, for people.
        dispatched: Whether the node's own code or program may have been reached.

    """

    reason: str
    left: tuple[str, ...] = ()
    dispatched: bool = True


class Finding(StrEnum):
    """What a reconciler can say of an attempt besides that it did its work."""

    RETRY = "retry"
    INCOMPATIBLE = "incompatible"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What became of an attempt that left no result.

    Attributes:
        message: Why, for people.

    """

    finding: Finding
    message: str = ""


Outcome = Value | Failed | Aborted | Found
"""Of an attempt: a value, or why there is none. Of its reconciliation: the value it made after all, or `Found`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A planner has said what the exact plan will be worked out from.

    Attributes:
        descriptors: Of the input that it will look at.
        max_input_bytes: Bound of the exact input; None is the policy's.
        max_seconds: Bound of the time from admission; None is the policy's.

    """

    descriptors: JsonValue
    max_input_bytes: int | None
    max_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """A planner has worked out what exactly the node will do.

    Attributes:
        input: What the operation gets.
        keys: Publication keys besides those that the policy finds in the input.

    """

    input: JsonValue
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerAnswered:
    """The planner of a node has answered."""

    node: str
    number: int
    answer: Prepared | Exact | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A machine lease that was given back.

    Attributes:
        released_boot_ns: Read just before the close.

    """

    ticket: int
    released_boot_ns: int


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
    | PlannerAnswered
    | PublicationWanted
    | RequestsArrived
    | Judged
    | Due
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


# --- to an executor -----------------------------------------------------------------------------------------------


# --- to the run store ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Make a transaction durable; `Committed` or `CommitRefused` answers.

    Attributes:
        awaited: Whether anything is to be done once it is; if not, it may wait a little for others.

    """

    number: int
    transaction: Transaction
    reply_to: Address
    awaited: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """To itself: commit what has gathered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRun:
    """Store a new run; `RunCreated` or `CreateRefused` answers.

    Attributes:
        again: Whether it may be stored already, since the store broke before it answered.

    """

    record: RunRecord
    plan: GraphPlan
    bundle: bytes | None
    reply_to: Address
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCreated:
    """The run stands in the store.

    Attributes:
        stands_as: Its id there: another one where it was asked for under its key before.

    """

    run_id: str
    stands_as: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRefused:
    """The run was not stored; nothing of it is left."""

    run_id: str
    error: HostlerError


@dataclass(frozen=True, slots=True, kw_only=True)
class LookForRequests:
    """Say whether requests wait for that run, which has just been handed back; `RequestsFound` answers."""

    run_id: str
    reply_to: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsFound:
    """Whether a request came in while the run was being handed back."""

    run_id: str
    found: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRun:
    """Claim a run for this host; `RunClaimed` or `ClaimRefused` answers.

    Attributes:
        number: Which claim of this host; the answer names it, and only that to the latest one counts.
        again: Whether this host may have it already, since the scheduler that had it is gone.

    """

    run_id: str
    reply_to: Address
    number: int
    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowRequests:
    """Tell *reply_to* the requests of that run: those that wait now, and later ones as they come.

    Attributes:
        fence: The claim under which it works on the run; it is told when that is no longer in force.

    """

    run_id: str
    fence: Fence
    reply_to: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequests:
    """Stop telling the requests of that run to *reply_to*; a later follower keeps its place."""

    run_id: str
    reply_to: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """Another process put something into the store for this host, or the host was stopped and goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceLost:
    """The claim of a scheduler is no longer in force: the run is another host's."""

    error: HostlerError


# --- to the supervisor --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Claim a run and work on it; the subscriber hears of everything, last of `RunLeft` or `RunLost`.

    Attributes:
        operations: (kind, version) → `Operation`, all that the run may need.
        computes: Name → `Compute`.
        lacking: Key of each node whose code this host does not have → why not.
        entry: Tells how to start the worker process of one of these.
        jobs: How many of its nodes may be queued or running; 0 only settles requests.
        release_at_rest: Whether to hand it back when it rests.

    """

    run_id: str
    operations: Mapping[tuple[str, int], Any]
    computes: Mapping[str, Any]
    entry: Callable[[Any], Any]
    jobs: int
    release_at_rest: bool
    subscriber: "Subscriber"
    lacking: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClaimed:
    """The run is this host's."""

    number: int
    claimed: Claimed


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRefused:
    """The run is not to be had."""

    number: int
    run_id: str
    error: HostlerError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLost:
    """The run could not be claimed, or its scheduler could not go on; it stands in the store as last committed."""

    run_id: str
    error: HostlerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """An actor broke.

    Attributes:
        name: Its name in its parent's list.
        urn: Which incarnation.
        error: What broke it.

    """

    name: str
    urn: str
    error: BaseException


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacated:
    """A scheduler that broke or was told to go has nothing running any more.

    Attributes:
        urn: Which incarnation of it.
        hung: Nodes whose work does not end: it may still act, so nobody else may take the run up here.

    """

    run_id: str
    urn: str
    hung: tuple[str, ...]


# --- to the timer, the machine's resources, authority -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTimers:
    """Set and forget timers of an owner, in this order; *reply_to* gets a `Due` for each that runs out."""

    owner: str
    changes: tuple[SetTimer | CancelTimer, ...]
    reply_to: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTimers:
    """Forget all timers of an owner."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantLease:
    """Ask the machine for claims; a `MachineAnswer` goes to *reply_to*."""

    run_id: str
    ask: AskMachine
    reply_to: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseUnwanted:
    """Withdraw an ask; an answer that has crossed this message is given back."""

    run_id: str
    node: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpoke:
    """To itself: the coordinator's thread has an answer to an ask."""

    key: tuple[str, str, int]
    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class WantRuling:
    """Judge a request; `Judged` goes to *reply_to*."""

    judge: Judge
    reply_to: Address


Report = NodeChanged | RunChanged | Progress | RunLeft | RunLost
Subscriber = Callable[[Report], None]
"""Called on an actor's thread: must be quick and must not raise."""
