"""Every rule about what may happen to a node and to a run, and nothing else.

The scheduler, the store and every view call this module, so they cannot disagree. It touches nothing: no clock,
no disk, no process.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Status(StrEnum):
    """Where a node stands."""

    PENDING = "pending"
    READY = "ready"
    PREPARING = "preparing"
    APPROVAL_REQUIRED = "approval-required"
    QUEUED = "queued"
    RUNNING = "running"
    VERIFYING = "verifying"
    CORRECTIVE = "corrective"
    BLOCKED = "blocked"
    AMBIGUOUS = "ambiguous"
    AMBIGUOUS_CODE = "ambiguous-code"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    INCOMPATIBLE = "incompatible"
    FAILED = "failed"
    SKIPPED = "skipped"


class RunStatus(StrEnum):
    """Where a run stands; always derived from its nodes."""

    PLANNED = "planned"
    RUNNING = "running"
    APPROVAL_REQUIRED = "approval-required"
    AMBIGUOUS_CODE = "ambiguous-code"
    AMBIGUOUS = "ambiguous"
    BLOCKED = "blocked"
    BUDGET_EXHAUSTED = "budget-exhausted"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    INCOMPATIBLE = "incompatible"
    PARTIAL = "partial"
    FAILED = "failed"


_S = Status

RESTING: Final = frozenset({_S.APPROVAL_REQUIRED, _S.BLOCKED, _S.AMBIGUOUS, _S.AMBIGUOUS_CODE})
"""A person must act before the node moves."""

FINAL: Final = frozenset({_S.COMPLETED, _S.CANCELLED, _S.INCOMPATIBLE, _S.FAILED, _S.SKIPPED})
"""Nothing moves the node but, for failed and skipped, a person's retry or correct grant."""

IMMUTABLE: Final = frozenset({_S.COMPLETED, _S.CANCELLED, _S.INCOMPATIBLE})
"""Final for ever; writing the identical record again is accepted."""

LIVE: Final = frozenset(Status) - RESTING - FINAL

NEEDS_CODE: Final = frozenset(Status) - FINAL - {_S.AMBIGUOUS, _S.VERIFYING}
"""The node cannot go on without its code; an ambiguous one waits for a person's word alone, one that is verified has
run already."""

MAY_RUN: Final = frozenset(Status) - IMMUTABLE
"""The node runs, may come to run or may be made to by a person: whoever takes up its run should have its code."""

_WORKED_ON: Final = (
    _S.RUNNING,  # the commonest first
    *sorted(LIVE - {_S.RUNNING, _S.PENDING}),
)

MOVES: Final[Mapping[Status, frozenset[Status]]] = MappingProxyType(
    {
        _S.PENDING: frozenset({_S.READY, _S.SKIPPED, _S.CANCELLED, _S.INCOMPATIBLE}),
        _S.READY: frozenset(
            {
                _S.READY,
                _S.PREPARING,
                _S.APPROVAL_REQUIRED,
                _S.QUEUED,
                _S.FAILED,
                _S.INCOMPATIBLE,
                _S.CANCELLED,
            }
        ),
        _S.PREPARING: frozenset(
            {
                _S.READY,
                _S.APPROVAL_REQUIRED,
                _S.CORRECTIVE,
                _S.BLOCKED,
                _S.FAILED,
                _S.INCOMPATIBLE,
                _S.CANCELLED,
            }
        ),
        _S.APPROVAL_REQUIRED: frozenset(
            {
                _S.APPROVAL_REQUIRED,
                _S.PREPARING,
                _S.READY,
                _S.COMPLETED,
                _S.FAILED,
                _S.INCOMPATIBLE,
                _S.CANCELLED,
            }
        ),
        _S.QUEUED: frozenset(
            {
                _S.RUNNING,
                _S.READY,
                _S.CORRECTIVE,
                _S.BLOCKED,
                _S.FAILED,
                _S.INCOMPATIBLE,
                _S.CANCELLED,
            }
        ),
        _S.RUNNING: frozenset(
            {
                _S.VERIFYING,
                _S.COMPLETED,
                _S.CORRECTIVE,
                _S.READY,
                _S.BLOCKED,
                _S.FAILED,
                _S.AMBIGUOUS,
                _S.AMBIGUOUS_CODE,
                _S.INCOMPATIBLE,
                _S.CANCELLED,
            }
        ),
        _S.VERIFYING: frozenset(
            {
                _S.COMPLETED,
                _S.CORRECTIVE,
                _S.BLOCKED,
                _S.FAILED,
                _S.AMBIGUOUS,
                _S.INCOMPATIBLE,
                _S.CANCELLED,
            }
        ),
        _S.CORRECTIVE: frozenset({_S.READY, _S.BLOCKED, _S.FAILED, _S.INCOMPATIBLE, _S.CANCELLED}),
        _S.BLOCKED: frozenset({_S.READY, _S.VERIFYING, _S.FAILED, _S.INCOMPATIBLE, _S.CANCELLED}),
        _S.AMBIGUOUS: frozenset({_S.COMPLETED, _S.FAILED, _S.READY, _S.CANCELLED, _S.INCOMPATIBLE}),
        _S.AMBIGUOUS_CODE: frozenset({_S.READY, _S.CANCELLED, _S.INCOMPATIBLE}),
        _S.FAILED: frozenset({_S.READY}),
        _S.SKIPPED: frozenset({_S.PENDING}),
        _S.COMPLETED: frozenset(),
        _S.CANCELLED: frozenset(),
        _S.INCOMPATIBLE: frozenset(),
    }
)
"""Which status may follow which. Several moves may share one transaction."""


class IllegalMoveError(Exception):
    """A bug in the caller: the pair is not in `MOVES`.

    Attributes:
        key: The node.
        before: Its status.
        after: The status it was asked to take.

    """

    def __init__(self, key: str, before: Status, after: Status) -> None:
        super().__init__(key, before, after)
        self.key = key
        self.before = before
        self.after = after

    def __str__(self) -> str:
        return f"node {self.key}: {self.before} may not become {self.after}"


def check_path(key: str, before: Status, path: Iterable[Status]) -> Status:
    """Return the last status of *path*, having checked every move of it.

    Args:
        key: The node, for the error.
        before: The status the node has.
        path: The statuses it takes in turn.

    Raises:
        IllegalMoveError: A move of the path is not in `MOVES`.

    """
    for after in path:
        if after not in MOVES[before]:
            raise IllegalMoveError(key, before, after)
        before = after
    return before


RUN_RESTS: Final = (
    (_S.APPROVAL_REQUIRED, RunStatus.APPROVAL_REQUIRED),
    (_S.AMBIGUOUS_CODE, RunStatus.AMBIGUOUS_CODE),
    (_S.AMBIGUOUS, RunStatus.AMBIGUOUS),
    (_S.BLOCKED, RunStatus.BLOCKED),
)

RUN_RESTING: Final = frozenset({status for _, status in RUN_RESTS} | {RunStatus.BUDGET_EXHAUSTED})
RUN_FINAL: Final = frozenset(
    {
        RunStatus.CANCELLED,
        RunStatus.COMPLETED,
        RunStatus.INCOMPATIBLE,
        RunStatus.PARTIAL,
        RunStatus.FAILED,
    }
)


def run_status(nodes: Mapping[Status, int], *, started: bool, short: int = 0) -> RunStatus:
    """Derive the status of a run from how many of its nodes have which status; the first match wins.

    A pending node waits, through others perhaps, for a node that is not pending. If that one is live the run is
    running; if it rests, so does the pending one. So pending nodes never decide.

    Args:
        nodes: Number of nodes by status; missing means none.
        started: Whether a scheduler ever took the run up.
        short: How many of the ready nodes no budget lets go any more.

    """
    if not started:
        return RunStatus.PLANNED
    if any(nodes.get(status) for status in _WORKED_ON) and not (short and _only_short(nodes, short)):
        return RunStatus.RUNNING
    for status, rests in RUN_RESTS:
        if nodes.get(status):
            return rests
    if short:
        return RunStatus.BUDGET_EXHAUSTED
    if nodes.get(_S.PENDING):
        return RunStatus.RUNNING
    if nodes.get(_S.CANCELLED):
        return RunStatus.CANCELLED
    completed = nodes.get(_S.COMPLETED, 0)
    if completed == sum(nodes.values()):
        return RunStatus.COMPLETED
    if nodes.get(_S.INCOMPATIBLE) and not completed:
        return RunStatus.INCOMPATIBLE
    return RunStatus.PARTIAL if completed else RunStatus.FAILED


def _only_short(nodes: Mapping[Status, int], short: int) -> bool:
    return sum(nodes.get(status, 0) for status in _WORKED_ON) == nodes.get(_S.READY, 0) == short


def run_status_without_budget(nodes: Mapping[Status, int], *, started: bool) -> RunStatus:
    """Derive the status of a run in which no budget lets any ready node go.

    Args:
        nodes: Number of nodes by status; missing means none.
        started: Whether a scheduler ever took the run up.

    """
    return run_status(nodes, started=started, short=nodes.get(_S.READY, 0))


COUNTED_AS: Final[Mapping[Status, str]] = MappingProxyType(
    {
        _S.CANCELLED: "cancelled",
        _S.COMPLETED: "completed",
        _S.FAILED: "failed",
        _S.INCOMPATIBLE: "failed",
        _S.SKIPPED: "skipped",
        _S.RUNNING: "running",
        **dict.fromkeys(RESTING, "resting"),
        **dict.fromkeys(LIVE - {_S.RUNNING}, "pending"),
    }
)
"""Under which heading of a summary a node of that status is counted."""


def counts(nodes: Mapping[Status, int]) -> dict[str, int]:
    """Count the nodes of a run under the seven headings of a summary; they add up to the number of nodes."""
    totals: Counter[str] = Counter(dict.fromkeys(sorted(set(COUNTED_AS.values())), 0))
    for status, number in nodes.items():
        totals[COUNTED_AS[status]] += number
    return dict(totals)
