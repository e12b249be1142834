"""Messages to the actors that every run of a host shares: frozen, named by what happened or what is wanted.

They are grouped by who receives them: the run store, the supervisor, the timer, the resources, authority.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from actors.actions import (
    Address,
    AskMachine,
    CancelTimer,
    Judge,
    LookAtLease,
    NodeChanged,
    RunChanged,
    RunLeft,
    SetTimer,
)
from actors.messages import Progress
from actors.worktrees import Worktrees
from hostres.errors import HostlerError
from store.contracts import RunRecord
from store.lazy_dataclass import dataclass
from store.plans import GraphPlan
from store.transactions import Claimed, Fence, Transaction

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
    entrusted: bool = False


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
class LookForLease:
    """Say how long a worker's lease still lasts; `LeaseSeen` answers."""

    run_id: str
    lease: LookAtLease
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
        entrusted: Whether it is left to the background service from now on; None leaves that as it is.

    """

    run_id: str
    reply_to: Address
    number: int
    again: bool
    entrusted: bool | None = None


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
        worktrees: Makes and integrates workspaces that lie in repositories.
        jobs: How many of its nodes may be queued or running; 0 only settles requests.
        release_at_rest: Whether to hand it back when it rests.
        entrusted: Whether it is left to the background service from now on; None leaves that as it is.
        patience_s: How long to go on asking for it, in seconds, where another host has it.

    """

    run_id: str
    operations: Mapping[tuple[str, int], Any]
    computes: Mapping[str, Any]
    entry: Callable[[Any], Any]
    worktrees: Worktrees
    jobs: int
    release_at_rest: bool
    subscriber: "Subscriber"
    lacking: Mapping[str, str] = field(default_factory=dict)
    entrusted: bool | None = None
    patience_s: float = 0.0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenBack:
    """The claim of a run that was given up is gone."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Say that the supervisor and the run store take messages: the latter answers with `Pong`."""

    reply_to: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
    """The run store takes messages.

    Attributes:
        gone: Why no write of this host may count any more; None as long as all is there.

    """

    gone: HostlerError | None = None


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
