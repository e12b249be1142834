"""The page of the words of a policy, from the contracts that check them."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from hostler.building import GATES
from hostres.claims import default_capacity
from scripts.reference.tables import table
from scripts.reference.told import rows_of
from store.amounts import Ask, Demand
from store.fields import Contract
from store.policy import MIB, Backoff, Effect, Heartbeat, Isolation, Policy, PreparationKind, Resume, Retry

HERE: Final = "in scripts/reference/policy.py"
HEAD: Final = """\
# Policy

*Written from `store/policy.py` by `scripts/docs`.*

A policy says what a node may do, needs and costs at most. Operations carry theirs (`@operation(…, policy=Policy(…))`);
commands and agents of a [graph file](../graph-files.md) author theirs, word for word the same. It is part of the plan
that is approved, so a node whose policy changes is another node.
"""

EFFECTS: Final[Mapping[Effect, tuple[str, str]]] = {
    Effect.PURE: ("nothing that anybody could notice", "allowed"),
    Effect.LOCAL_READ: ("reads files", "allowed"),
    Effect.LOCAL_DERIVED_WRITE: ("writes files that can be made again", "allowed"),
    Effect.PROJECT_MUTATION: ("changes files that cannot", "allowed"),
    Effect.PAID_CLOUD: ("costs money", "a person is asked"),
    Effect.LIVE_CONTROL: ("acts on the world outside", "a person is asked"),
    Effect.TRUSTED_CODE: (
        "runs code of the workflow itself; derived for compute functions, cannot be authored",
        "allowed",
    ),
}
RESUMES: Final[Mapping[Resume, str]] = {
    Resume.DETERMINISTIC: "it runs again",
    Resume.VERIFIED_RECEIPT: "its `reconcile` says whether it happened; without one it is *incompatible*",
    Resume.RECOVERABLE_TRANSACTION: "likewise; what did not happen is done again",
    Resume.AMBIGUOUS_AFTER_DISPATCH: "*ambiguous*: rests until a person settles it; a `reconcile` may find out before",
    Resume.NON_RESUMABLE_LIVE: "likewise",
    Resume.EXPLICIT_CODE_REPLAY: (
        "*ambiguous-code*: only `hostler replay` runs it again; derived for compute functions, cannot be authored"
    ),
}
ISOLATIONS: Final[Mapping[Isolation, str]] = {
    Isolation.THREAD: "in a thread of the host; cannot be killed, only given up on",
    Isolation.PROCESS: "in a process of its own, which ends with its answer and can be killed",
}
PREPARATIONS: Final[Mapping[PreparationKind, str]] = {
    kind: "allowed" if kind in {PreparationKind.PROJECT_STATE, PreparationKind.LOCAL_MEDIA} else "a person is asked"
    for kind in PreparationKind
}


EFFECT: Final = """\
## effect

What running it does to the world. The last column is what the default rules say;
[rules of your own](../governance.md#rules) come first.
"""
RESUME: Final = """\
## resume

What becomes of an attempt whose host died in the middle of it. Where a policy does not say, `paid-cloud` is
`ambiguous-after-dispatch`, `live-control` is `non-resumable-live`, and all else is `deterministic`.
"""
CLAIMS: Final = """\
## claims

Units of machine resources, admitted whole or not at all. The machine has the names below, and whatever
[`[machine.capacity]`](../configuration.md#capacities) adds.
"""
GATE: Final = """\
## Gates

A gate has no policy. Its kinds differ in name only, except that everything waits for
[activation](../governance.md#activation).
"""


def policy_page() -> str:
    """Return the page."""
    parts = [
        f"{HEAD}\n## Fields\n",
        _fields(Policy),
        EFFECT,
        table("value", "it", "by default", rows=rows_of(Effect, EFFECTS, where=f"EFFECTS {HERE}")),
        RESUME,
        table("value", "after an interruption", rows=rows_of(Resume, RESUMES, where=f"RESUMES {HERE}")),
        "## isolation\n",
        table("value", "its Python function runs", rows=rows_of(Isolation, ISOLATIONS, where=f"ISOLATIONS {HERE}")),
        "## preparation\n",
        table("value", "by default", rows=rows_of(PreparationKind, PREPARATIONS, where=f"PREPARATIONS {HERE}")),
        CLAIMS,
        _names(sorted(default_capacity())),
        "## retry\n",
        _fields(Retry),
        "`delays` may be a `Backoff`:\n",
        _fields(Backoff),
        "## heartbeat\n",
        _fields(Heartbeat),
        "## budget\n",
        _fields(Demand),
        "Both are amounts:\n",
        _fields(Ask),
        "See [budgets](../governance.md#budgets) for the counters.\n",
        GATE,
        _names(GATES),
    ]
    return "\n".join(parts)


def _names(names: Iterable[str]) -> str:
    return f"{', '.join(f'`{name}`' for name in names)}.\n"


def _fields(model: Any) -> str:
    told = _attributes(model)
    silent = [name for name in model.model_fields if name not in told]
    if silent:
        raise ValueError(f"the docstring of {model.__name__} says nothing of {', '.join(silent)}; say it there")
    rows = [(f"`{name}`", f"`{_default(field)}`", told[name]) for name, field in model.model_fields.items()]
    return table("field", "default", "is", rows=rows)


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Contract):
        return "nothing" if isinstance(value, Ask) else "see below"
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, int) and not isinstance(value, bool) and value and value % MIB == 0:
        return f"{value // MIB} MiB"
    if isinstance(value, tuple):
        return f"[{', '.join(str(each) for each in value)}]"
    return (
        "none"
        if value is None
        else f"{value if isinstance(value, Decimal) else repr(value)}".removesuffix(".0").strip("'")
    )


def _attributes(model: Any) -> dict[str, str]:
    """Return what the docstring of a contract says of each field."""
    told: dict[str, str] = {}
    name = ""
    for line in (model.__doc__ or "").partition("Attributes:")[2].splitlines():
        found, colon, rest = line.strip().partition(": ")
        if colon and found in model.model_fields:
            name, line = found, rest  # noqa: PLW2901
        if name:
            told[name] = f"{told.get(name, '')} {line.strip()}".strip()
    return told
