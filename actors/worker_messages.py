"""What a host and its worker process say to each other; the host checks every word of a worker.

A worker may be wrong, broken or lying: an unknown kind, a field too many, a text too long or a number that is none is
a `FrameError`, never an exception of another sort, and never reaches the run.
"""

from dataclasses import fields
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

import orjson
from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from actors.failures import MAX_MESSAGE, MAX_TODO, MAX_TRACEBACK_BYTES
from actors.frames import Frame, FrameError
from store.fields import MAX_SAFE_INTEGER, Id
from store.lazy_dataclass import dataclass
from store.policy import HOUR_SECONDS, FailureCode
from store.terms import EvidenceType

MAX_WORDS_OF_WORKER: Final = 64 * 1024
MAX_WORDS_OF_HOST: Final = 4 << 20
MAX_BLOB_OF_HOST: Final = 64 << 20
"""An input has at most 32 MiB, a bundle 16."""

_STRICT: Final = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

Line = Annotated[str, Field(max_length=MAX_MESSAGE)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT


# --- from the host ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseAt(_Message):
    """The machine lease that a worker inherited.

    Attributes:
        fd: The descriptor that holds it.
        place: Where its ticket is.
        ticket: Its number.
        nonce: Makes the ticket's name unlike any other's.
        claims: Resource → units.

    """

    fd: int
    place: str
    ticket: int
    nonce: str
    claims: dict[str, int]
    admitted_boot_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(_Message):
    """Do this attempt; its blob is the canonical input, and the code bundle follows if there is one.

    Attributes:
        folder: Where the run was created.
        code: What to call and where it is, for those who load it.
        bundled: Whether a `Bundle` follows.
        max_output_bytes: Limit of the canonical output.
        lease: None for a node that claims nothing.
        beats: Whether its processes get a descriptor to beat on.
        envelope: What the node may do at most, as JSON; None where nothing is kept from it.
        kept: Folders that Hostler keeps for itself.

    """

    run_id: str
    node: str
    attempt: int
    folder: str
    code: dict[str, JsonValue]
    bundled: bool
    max_output_bytes: int
    lease: LeaseAt | None
    beats: bool = False
    envelope: dict[str, JsonValue] | None = None
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle(_Message):
    """The stored code, as its blob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(_Message):
    """What a worker asked for.

    Attributes:
        id: Of its question.
        paths: What it is given.
        refusal: Why it is not, as the code, the sentence and what to do.
        aborted: Whether the attempt was asked to stop meanwhile.

    """

    id: int
    paths: tuple[str, ...] = ()
    refusal: tuple[FailureCode, str, str] | None = None
    aborted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop(_Message):
    """The attempt is asked to stop; the signal follows.

    Attributes:
        reason: cancel, timeout or drain.

    """

    reason: str


# --- from the worker ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling(_Message):
    """Everything is loaded and checked; the function is called next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced(_Message):
    """How far the work is."""

    fraction: Annotated[float, Field(ge=0, le=1)] | None
    text: Annotated[str, Field(max_length=1000)]
    speed: Annotated[float, Field(ge=0)] | None
    left_s: Annotated[float, Field(ge=0)] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beaten(_Message):
    """The work lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlogged(_Message):
    """A log of one of its processes lacks what the disk did not take.

    Attributes:
        stream: Name of the log's file.
        missing: Bytes, at most.
        why: What the system said.

    """

    stream: Annotated[str, Field(pattern=r"^[0-9]{1,9}\.[a-z]{1,32}(\.[0-9]{1,6})?$")]
    missing: Annotated[int, Field(ge=1, le=MAX_SAFE_INTEGER)]
    why: Annotated[str, Field(max_length=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(_Message):
    """Something that only the host can give: leave to publish, the workspace, the logs of the next process.

    Attributes:
        tokens: Of `spending`: what was spent.
        cost: Likewise, a decimal as text.

    """

    id: Count
    what: Literal["publication", "workspace", "logs", "spending"]
    tokens: Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)] = 0
    cost: Annotated[str, Field(pattern=r"^\d{1,16}(\.\d{1,9})?$")] = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(_Message):
    """A piece of evidence for the value that follows."""

    id: Id
    type: EvidenceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Gave(_Message):
    """The function gave a value: the blob is its canonical form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broke(_Message):
    """There is no value; the blob is the traceback, if it is worth reading."""

    code: FailureCode
    message: Line
    todo: Annotated[str, Field(max_length=MAX_TODO)]
    retryable: bool
    after_s: Annotated[float, Field(ge=0, le=HOUR_SECONDS)] | None = None


FromHost = Start | Bundle | Answer | Stop
FromWorker = Calling | Advanced | Beaten | Unlogged | Asked | Shown | Gave | Broke

_KINDS: Final[dict[type, str]] = {each: each.__name__.lower() for each in (*get_args(FromHost), *get_args(FromWorker))}
_OF_HOST: Final[dict[str, type]] = {_KINDS[each]: each for each in get_args(FromHost)}
_OF_WORKER: Final[dict[str, type]] = {_KINDS[each]: each for each in get_args(FromWorker)}


def frame_of(message: FromHost | FromWorker, blob: bytes = b"") -> Frame:
    """Return a message as a frame."""
    words = {each.name: getattr(message, each.name) for each in fields(message)}
    return Frame(words=orjson.dumps({"kind": _KINDS[type(message)], **words}), blob=blob)


def from_worker(frame: Frame) -> FromWorker:
    """Return what a worker said.

    Raises:
        FrameError: It is nothing that a worker may say.

    """
    message: FromWorker = _message(frame, _OF_WORKER)
    room = {Gave: None, Broke: MAX_TRACEBACK_BYTES}.get(type(message), 0)
    if room is not None and len(frame.blob) > room:
        raise FrameError(f"a {_KINDS[type(message)]} with {len(frame.blob)} bytes, where at most {room} may come")
    return message


def from_host(frame: Frame) -> FromHost:
    """Return what the host said.

    Raises:
        FrameError: It is nothing that a host says.

    """
    message: FromHost = _message(frame, _OF_HOST)
    return message


def _message(frame: Frame, kinds: dict[str, type]) -> Any:
    try:
        words = orjson.loads(frame.words)
    except orjson.JSONDecodeError as error:
        raise FrameError(f"no JSON: {error}") from None
    kind = words.pop("kind", None) if isinstance(words, dict) else None
    found = kinds.get(kind) if isinstance(kind, str) else None
    if found is None:
        raise FrameError(f"a message of the kind {kind!r:.60}")
    try:
        return _adapter(found).validate_json(orjson.dumps(words))  # JSON has no tuples and no enums, but strict texts
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(str(part) for part in fault["loc"])
        raise FrameError(f"a {kind} whose {at or 'form'} is wrong: {fault['msg']:.200}") from None


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
