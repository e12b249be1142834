"""What a node may do, needs and costs at most: the policy that its author or its operation gives it."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field

from store.amounts import Demand
from store.fields import Claims, Contract, Id

DAY_SECONDS: Final = 86_400.0
MIB: Final = 1 << 20


class Effect(StrEnum):
    """What running a node does to the world."""

    PURE = "pure"
    LOCAL_READ = "local-read"
    LOCAL_DERIVED_WRITE = "local-derived-write"
    PROJECT_MUTATION = "project-mutation"
    PAID_CLOUD = "paid-cloud"
    LIVE_CONTROL = "live-control"
    TRUSTED_CODE = "trusted-code"


class Resume(StrEnum):
    """What may be done with an attempt that was interrupted."""

    DETERMINISTIC = "deterministic"
    VERIFIED_RECEIPT = "verified-receipt"
    RECOVERABLE_TRANSACTION = "recoverable-transaction"
    AMBIGUOUS_AFTER_DISPATCH = "ambiguous-after-dispatch"
    NON_RESUMABLE_LIVE = "non-resumable-live"
    EXPLICIT_CODE_REPLAY = "explicit-code-replay"


class Isolation(StrEnum):
    """Where the Python function of an operation runs."""

    THREAD = "thread"
    PROCESS = "process"


class FailureCode(StrEnum):
    """Why a node failed; stable, in views and events."""

    AUTHORIZATION_REQUIRED = "authorization-required"
    CANCELLED = "cancelled"
    CONFLICT = "conflict"
    INCOMPATIBLE = "incompatible"
    INVALID_DATA = "invalid-data"
    SUBPROCESS = "subprocess"
    UNAVAILABLE = "unavailable"
    UNSUPPORTED_PLAN = "unsupported-plan"
    AMBIGUOUS = "ambiguous"
    INTERNAL = "internal"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    PROVIDER_TRANSIENT = "provider-transient"
    MALFORMED_OUTPUT = "malformed-output"
    BUDGET_EXHAUSTED = "budget-exhausted"


class PreparationKind(StrEnum):
    """What working out a node's exact plan looks at."""

    PROJECT_STATE = "project-state"
    RECORDING_METADATA = "recording-metadata"
    SCREEN_CAPTURE = "screen-capture"
    CAMERA = "camera"
    MICROPHONE = "microphone"
    SYSTEM_AUDIO = "system-audio"
    TYPED_TEXT = "typed-text"
    WINDOW_METADATA = "window-metadata"
    LOCAL_MEDIA = "local-media"
    PROVIDER_OPTIONS = "provider-options"


HOUR_SECONDS: Final = 3600.0
MAX_ATTEMPTS: Final = 16


Delay = Annotated[float, Field(ge=0, le=HOUR_SECONDS, allow_inf_nan=False)]


class Backoff(Contract):
    """Delays that grow from try to try.

    Attributes:
        first_s: Before the second try, seconds.
        factor: What each next delay is multiplied by.
        ceiling_s: No delay is longer, seconds.
        jitter: Up to which part of itself a delay is shortened, so that many failures do not come back at once.

    """

    first_s: Delay = 1.0
    factor: float = Field(default=2.0, ge=1, le=100, allow_inf_nan=False)
    ceiling_s: Delay = 300.0
    jitter: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)


class Retry(Contract):
    """When a failed attempt is made again by itself.

    Attributes:
        attempts: How often it may fail at most; 1 never tries again.
        delays: Seconds before the second, third… try, the last one for all further ones; or a `Backoff`.
        codes: Failures after which trying the same again may help.
        exhausted: Whether the node then fails, or is blocked until a person acts.

    """

    attempts: int = Field(default=1, ge=1, le=MAX_ATTEMPTS)
    delays: Annotated[tuple[Delay, ...], Field(max_length=MAX_ATTEMPTS - 1, strict=False)] | Backoff = ()
    codes: tuple[Annotated[FailureCode, Field(strict=False)], ...] = Field(
        default=(
            FailureCode.PROVIDER_TRANSIENT,
            FailureCode.STALLED,
            FailureCode.SUBPROCESS,
            FailureCode.TIMEOUT,
            FailureCode.UNAVAILABLE,
        ),
        strict=False,
    )
    exhausted: Literal["fail", "block"] = "fail"


class Heartbeat(Contract):
    """How often a node shows that it lives.

    Attributes:
        seconds: From beat to beat at most; after twice that without one it counts as stalled and is stopped.
        grace_seconds: How long the first beat may take. A node that has not beaten at all by then is stopped only if
            it does not run any more, and else looked at again after as long. None gives the first beat no more time
            than any other.

    """

    seconds: float = Field(ge=0.1, le=HOUR_SECONDS, allow_inf_nan=False)
    grace_seconds: float | None = Field(default=None, ge=0.1, le=DAY_SECONDS, allow_inf_nan=False)


RESUMES: Final[Mapping[Effect, Resume]] = MappingProxyType(
    {Effect.PAID_CLOUD: Resume.AMBIGUOUS_AFTER_DISPATCH, Effect.LIVE_CONTROL: Resume.NON_RESUMABLE_LIVE}
)
"""What may be done after an interruption, by effect, where its author says nothing of that; of any other it runs again.

An approval lets one of these happen once. That a second time does no harm only its author can say.
"""


class Policy(Contract):
    """What a node may do, needs and costs at most; the graph plan's hash covers it.

    Attributes:
        effect: What running it does to the world.
        resume: What may be done after an interruption; where its author does not say, it goes by the effect.
        preparation: What working out its exact plan looks at; each kind needs authority of its own.
        claims: Machine resources it holds while it runs, in units.
        publishes: Fields of its input that name files it publishes; no two nodes on the machine publish to one
            file at a time. A field of an inner object is named with dots.
        cancellable: Whether admitted work may be aborted by a cancel; otherwise it is let finish.
        max_seconds: Time limit from admission, seconds.
        max_wait_seconds: Time limit of waiting for admission, seconds.
        max_input_bytes: Limit of the canonical input, bytes.
        max_output_bytes: Limit of the canonical output, bytes.
        retry: When a failed attempt is made again by itself.
        heartbeat: How often it shows that it lives; None where its processes are sign enough.
        budget: What each attempt reserves of its budgets before it starts; None reserves nothing but its task, or what
            is left of the node's own budget if it has one and delegates nothing.
        isolation: Whether its Python function runs in a thread of the host or in a worker process, which can be
            killed. What runs no Python function of its own is not concerned.

    """

    effect: Effect = Field(default=Effect.PURE, strict=False)
    resume: Resume = Field(default=Resume.DETERMINISTIC, strict=False)
    preparation: tuple[Annotated[PreparationKind, Field(strict=False)], ...] = Field(
        default=(), max_length=len(PreparationKind), strict=False
    )
    claims: Claims = Field(default_factory=dict, validate_default=True)
    publishes: tuple[Id, ...] = Field(default=(), max_length=64, strict=False)
    cancellable: bool = True
    max_seconds: float = Field(default=3600.0, gt=0, le=30 * DAY_SECONDS, allow_inf_nan=False)
    max_wait_seconds: float = Field(default=DAY_SECONDS, gt=0, le=DAY_SECONDS, allow_inf_nan=False)
    max_input_bytes: int = Field(default=32 * MIB, ge=1, le=32 * MIB)
    max_output_bytes: int = Field(default=32 * MIB, ge=1, le=32 * MIB)
    retry: Retry = Retry()
    heartbeat: Heartbeat | None = None
    budget: Demand | None = None
    isolation: Isolation = Field(default=Isolation.THREAD, strict=False)

    @property
    def authored(self) -> "Policy":
        """The policy as its author means it: where it does not say what may be done again, its effect does."""
        resume = None if "resume" in self.model_fields_set else RESUMES.get(self.effect)
        return self if resume is None else self.model_copy(update={"resume": resume})
