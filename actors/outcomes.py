"""How work ended: the values by which executors and planners say it. No I/O, no pykka."""

from enum import StrEnum

from pydantic import JsonValue

from store.amounts import Usage
from store.lazy_dataclass import dataclass
from store.policy import FailureCode
from store.terms import Evidence


def storable(text: str, length: int) -> str:
    """Return *text* as it can be stored and shown: cut, with undecodable bytes of a file's name replaced."""
    return text[:length].encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """The work gave a value.

    Attributes:
        value: Read-only JSON.
        data: Its canonical bytes.
        sha256: Their digest in the domain of outputs.
        usage: What it says that it spent.
        evidence: What it brings to show for it.

    """

    value: JsonValue
    data: bytes
    sha256: str
    usage: Usage | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The work failed by itself.

    Attributes:
        dispatched: Whether the node's own code or program was reached; if not, nothing can have happened outside.
        blocked: Whether it says itself that it cannot go on before a person has acted.
        usage: What it says that it spent.
        after_s: Seconds before which another try cannot help; None leaves that to the policy.

    """

    code: FailureCode
    message: str
    todo: str
    retryable: bool = False
    after_s: float | None = None
    dispatched: bool = True
    blocked: bool = False
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """The work stopped because it was asked to.

    Attributes:
        reason: cancel, timeout, drain, stall or recover.
        left: What of its processes could not be ended, for people.
        dispatched: Whether the node's own code or program may have been reached.
        usage: What it says that it spent.

    """

    reason: str
    left: tuple[str, ...] = ()
    dispatched: bool = True
    usage: Usage | None = None


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
class Integrated:
    """What the attempt made is where it belongs.

    Attributes:
        commit: What the branch holds now; None if the attempt committed nothing.

    """

    commit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotIntegrated:
    """Nothing was moved.

    Attributes:
        reason: uncommitted-edits, scope-drift, conflict, moved-branch, diverged, workspace-lost or unavailable.
        message: Why, one line.
        todo: What a person can do, one line.
        paths: The files that it is about.

    """

    reason: str
    message: str
    todo: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A machine lease that was given back.

    Attributes:
        released_boot_ns: Read just before the close.

    """

    ticket: int
    released_boot_ns: int
