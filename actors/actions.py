"""What the pure core of a scheduler wants done: the actions around a transaction, frozen. No I/O, no pykka."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from pydantic import JsonValue

from actors.agent_requests import AgentTask
from store.approvals import Standing
from store.contracts import NodeRecord, Request
from store.lazy_dataclass import dataclass
from store.lifecycle import RunStatus
from store.plans import NodePlan
from store.policy import FailureCode
from store.workspace import GitWorkspace


class Address(Protocol):
    """Where a message can be sent."""

    def tell(self, message: Any) -> None:
        """Put *message* into the inbox and return at once."""


class TimerName(NamedTuple):
    """Which timer; one of a kind a node and attempt, and one more for the attempt's reconciliation.

    A tuple, since timers are looked up by it at every step.
    """

    kind: str
    node: str = ""
    attempt: int = 0
    reconciling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AskMachine:
    """Ask the machine for claims and keys.

    Attributes:
        number: Which ask of this node; its answer names it.

    """

    node: str
    number: int
    claims: Mapping[str, int]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawAsk:
    """Take the ask back; if it has been admitted meanwhile, give the lease back."""

    node: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBack:
    """Close a lease that came too late for its node."""

    node: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """Start the work of an attempt.

    Attributes:
        ask: The ask whose lease it gets; None for a node that claims nothing.
        task: On what terms an agent works; None for any other node.
        given: Canonical bytes of the input of the plan, where they are at hand.

    """

    node: str
    attempt: int
    ask: int | None
    plan: NodePlan
    plan_sha256: str
    task: AgentTask | None = None
    given: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPlanner:
    """Let the node's planner work out what comes before its effect, off the scheduler's thread.

    Attributes:
        number: Which question about this node; its answer names it.
        preparation: What it is worked out from; None asks for that preparation itself.

    """

    node: str
    number: int
    input: JsonValue
    preparation: NodePlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPlanner:
    """Nobody waits for that answer any more."""

    node: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconcile:
    """Find out what an attempt that is over did.

    Attributes:
        ask: The ask whose lease that gets; None for a node that claims nothing.
        gate_passed: Whether the attempt was let through to an outside write.

    """

    node: str
    attempt: int
    plan: NodePlan
    plan_sha256: str
    ask: int | None
    gate_passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrate:
    """Bring what an attempt made in its worktree to where it belongs; its result is stored.

    Attributes:
        paths: What the node may change, by its envelope; None is no limit.
        begin: Whether it may be begun, or it is only found out whether it was done.

    """

    node: str
    attempt: int
    plan_sha256: str
    workspace: GitWorkspace
    paths: tuple[str, ...] | None
    begin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """Stop the work of an attempt, or its reconciliation.

    Attributes:
        reason: cancel, timeout, drain, stall or recover.
        grace_s: Between TERM and KILL, seconds.

    """

    node: str
    attempt: int
    reason: str
    grace_s: float
    reconciling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLeftovers:
    """Find and end what dead attempts of these nodes left running."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtLease:
    """Say how long a worker's lease still lasts; the worker itself extends it in the store."""

    node: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimer:
    """Send `Due` after so many seconds of this process's monotonic clock."""

    timer: TimerName
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTimer:
    """Forget a timer; a `Due` that is already on its way may still come."""

    timer: TimerName


@dataclass(frozen=True, slots=True, kw_only=True)
class TakePulse:
    """Say what was seen of an attempt since it began, or last beat; `PulseTaken` answers.

    Attributes:
        after_s: How long after its start, or after it was looked at last, that was to be, seconds.

    """

    node: str
    attempt: int
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AskProbe:
    """Ask the operation of a silent attempt whether what that waits for still runs; `Probed` answers."""

    node: str
    attempt: int
    input: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Ask authority about a request, given what it is about.

    Attributes:
        standing: How that stands.

    """

    request: Request
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPublication:
    """Let an attempt through to its outside write, or refuse it."""

    reply_to: Address
    answer: "PublicationAllowed | PublicationRefused"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSpending:
    """Let an attempt know that what it spent is recorded, or cannot be."""

    reply_to: Address
    answer: "SpendingRecorded | SpendingRefused"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanged:
    """For views: the durable record of a node."""

    run_id: str
    record: NodeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChanged:
    """For views: the durable status of a run, with its nodes under the seven headings of a summary."""

    run_id: str
    status: RunStatus
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLeft:
    """This host is done with the run: it ended, rests, or was handed back.

    Attributes:
        drained: Whether it was handed back with work left.

    """

    run_id: str
    status: RunStatus
    counts: Mapping[str, int]
    outputs: JsonValue
    drained: bool


Change = NodeChanged | RunChanged
Action = (
    AskMachine
    | WithdrawAsk
    | GiveBack
    | Dispatch
    | AskPlanner
    | ForgetPlanner
    | Reconcile
    | Integrate
    | Abort
    | EndLeftovers
    | LookAtLease
    | SetTimer
    | CancelTimer
    | TakePulse
    | AskProbe
    | Judge
    | AnswerPublication
    | AnswerSpending
    | NodeChanged
    | RunChanged
    | RunLeft
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationAllowed:
    """The attempt is durably marked as let through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationRefused:
    """The attempt may not write outside any more."""

    code: FailureCode
    message: str
    todo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingRecorded:
    """What the attempt has spent is durable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingRefused:
    """What the attempt has spent cannot be recorded: this host no longer works on the run."""
