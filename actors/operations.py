"""What the host can run in Python: operations and trusted compute, as values.

An operation may bring three ports besides its function: `prepare` and `plan` work out, before anything is done, what
exactly it will do; `reconcile` finds out what an attempt did that left no result.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, JsonValue

from actors.outcomes import Finding
from actors.scheduling.state import Port
from hostres.arguments import shown
from store.lazy_dataclass import dataclass
from store.policy import Policy

if TYPE_CHECKING:
    from actors.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What `prepare` gives: what the exact plan will be worked out from, for people to see and to bound it.

    Attributes:
        descriptors: JSON that describes what will be looked at.
        max_input_bytes: Bound of the exact input, bytes; None is the policy's.
        max_seconds: Bound of the time from admission, seconds; None is the policy's.

    """

    descriptors: Any = None
    max_input_bytes: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactPlan:
    """What `plan` gives: what exactly the operation will do.

    Attributes:
        input: The input that it will get.
        keys: Publication keys besides the files that the policy finds in the input; no two nodes on the machine that
            share one run at a time.

    """

    input: BaseModel
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """The attempt that `reconcile` is asked about.

    Attributes:
        attempt: Its number; `ctx.idempotency_key` is the one it had.
        gate_passed: Whether it was let through to an outside write.

    """

    attempt: int
    gate_passed: bool


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What `reconcile` gives if the attempt did not do its work, or nobody can tell; else it returns the output.

    Attributes:
        finding: `RETRY`, it did nothing that counts and may be made again; `INCOMPATIBLE`, what it left cannot be
            gone on with; `AMBIGUOUS`, it cannot be told.
        message: Why, for people.

    """

    finding: Finding
    message: str = ""

    def __post_init__(self) -> None:
        """Refuse what no reconciliation can find.

        Raises:
            TypeError: The finding is none, or the message is no text.

        """
        if not isinstance(self.finding, Finding):
            raise TypeError(f"finding is {self.finding!r:.60}, not one of Finding")
        if not isinstance(self.message, str):
            raise TypeError(f"message is {shown(self.message)}, not text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A registered callable; kind and version name it in plans, the policy says what it may do.

    Attributes:
        kind: Dotted name, `media.probe`.
        version: Raised when its meaning changes.
        policy: Effect, resume class, claims and limits.
        function: Called with a `Context` and the validated input.
        input_type: Pydantic model of the input.
        output_type: Pydantic model of the output.
        prepare: Called with a `Planning` and the validated input; gives a `Preparation`.
        plan: Called with a `Planning`, the validated input and the preparation's descriptors; gives an `ExactPlan`.
        reconcile: Called with a `Context`, the validated input and a `Previous`; gives the output or a
            `Reconciliation`.
        probe: Called with a `Planning` and the validated input; says whether what the attempt waits for still runs.

    """

    kind: str
    version: int
    policy: Policy
    function: Callable[..., Any]
    input_type: type[BaseModel]
    output_type: type[BaseModel]
    prepare: Callable[..., Any] | None = None
    plan: Callable[..., Any] | None = None
    reconcile: Callable[..., Any] | None = None
    probe: Callable[..., Any] | None = None

    @property
    def ports(self) -> frozenset[Port]:
        """Which of the four it brings."""
        return frozenset(port for port in Port if getattr(self, port.value) is not None)

    def __call__(self, ctx: "Context", input: BaseModel) -> Any:
        """Call it as the function it is, for tests and for reuse inside another operation."""
        return self.function(ctx, input)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """Trusted code of the workflow itself: a function from a value to a value.

    Attributes:
        name: Its name in the bundle.
        policy: Derived, never authored.
        function: Called with the input alone.
        input_type: Pydantic model of the input, None for any JSON value.
        output_type: Likewise of the output.

    """

    name: str
    policy: Policy
    function: Callable[[Any], Any]
    input_type: type[BaseModel] | None = None
    output_type: type[BaseModel] | None = None

    def __call__(self, input: Any) -> Any:
        """Call it as the function it is."""
        return self.function(input)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How a worker process is started and what it is to call.

    Attributes:
        argv: The program; the number of the descriptor of its channel is added.
        code: What to call and where it is, for that program.
        bundle: The stored code that it loads, None if it loads what is installed.

    """

    argv: tuple[str, ...]
    code: dict[str, JsonValue]
    bundle: bytes | None = None
