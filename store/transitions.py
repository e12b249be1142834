"""What a node record may become in one transaction. Pure.

A transaction may carry several moves of a node and stores only where they end, so what is checked is whether
moves of `lifecycle.MOVES` lead there: without starting the node if the attempt stays, by way of exactly one
start if it rises by one. Moves that only a person's grant allows count only as the first step, with the grant.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from store.contracts import NodeRecord
from store.lifecycle import FINAL, IMMUTABLE, MOVES, Status

_S = Status

GRANTED: Final[Mapping[Status, frozenset[Status]]] = MappingProxyType(
    {
        _S.FAILED: frozenset({_S.READY}),
        _S.SKIPPED: frozenset({_S.PENDING}),
        _S.AMBIGUOUS: frozenset({_S.COMPLETED, _S.FAILED, _S.READY, _S.CANCELLED}),
        _S.AMBIGUOUS_CODE: frozenset({_S.READY}),
    }
)
"""Moves that only a grant allows."""

CORRECTABLE: Final = frozenset({_S.FAILED, _S.BLOCKED})
"""What a person may give another input."""

_BY_GATE: Final = (_S.APPROVAL_REQUIRED, _S.COMPLETED)
_START: Final = (_S.QUEUED, _S.RUNNING)

_NOT_STARTED: Final = frozenset({
    _S.PENDING, _S.READY, _S.PREPARING, _S.APPROVAL_REQUIRED, _S.QUEUED, _S.CORRECTIVE,
})  # fmt: skip


def _free_moves(status: Status, *, gate: bool) -> frozenset[Status]:
    excluded = set(GRANTED.get(status, ()))
    if status is _START[0]:
        excluded.add(_START[1])
    if status is _BY_GATE[0] and not gate:
        excluded.add(_BY_GATE[1])
    return MOVES[status] - excluded


def _closure(starts: Iterable[Status], *, gate: bool) -> frozenset[Status]:
    seen = set(starts)
    frontier = set(seen)
    while frontier:
        frontier = {move for status in frontier for move in _free_moves(status, gate=gate)} - seen
        seen |= frontier
    return frozenset(seen)


_Ends = tuple[frozenset[Status], frozenset[Status]]


def _ends(before: Status, *, gate: bool, granted: bool) -> _Ends:
    first = _free_moves(before, gate=gate) | (GRANTED.get(before, frozenset()) if granted else frozenset())
    same_attempt = _closure(first, gate=gate)
    if _START[0] in same_attempt or before is _START[0]:
        return same_attempt, _closure({_START[1]}, gate=gate)
    return same_attempt, frozenset()


_ENDS: Final[Mapping[tuple[Status, bool, bool], _Ends]] = MappingProxyType(
    {
        (before, gate, granted): _ends(before, gate=gate, granted=granted)
        for before in Status
        for gate in (False, True)
        for granted in (False, True)
    }
)


def _check_move(before: NodeRecord, after: NodeRecord, *, gate: bool, granted: bool) -> str | None:
    same_attempt, next_attempt = _ENDS[before.status, gate, granted]
    stays = after.attempt == before.attempt
    if stays and after.status is before.status and before.status not in FINAL:
        return None
    if not stays and after.attempt != before.attempt + 1:
        return f"its attempt is {before.attempt} and may not become {after.attempt}"
    if after.status in (same_attempt if stays else next_attempt):
        return None
    if before.status in IMMUTABLE:
        return f"it is {before.status} for ever"
    with_attempt = "" if stays else " with a new attempt"
    return f"it is {before.status} and may not become {after.status}{with_attempt}"


def refusal(
    before: NodeRecord, after: NodeRecord, *, gate: bool, granted: bool, revision: int | None = None
) -> str | None:
    """Say why *before* may not become *after*, or None if it may.

    Args:
        before: The stored record.
        after: The record that replaces it, not identical to it.
        gate: Whether the node is a pure gate, which completes without ever running.
        granted: Whether the transaction brings the grant that moves out of the stored status need.
        revision: Which revision the transaction makes of it; None leaves it as it is.

    """
    reason = _check_move(before, after, gate=gate, granted=granted)
    if reason is not None:
        return reason
    due = before.revision if revision is None else revision
    if after.revision != due or due not in (before.revision, before.revision + 1):
        return f"it has revision {before.revision}, and revision {due} is due, not {after.revision}"
    corrected = after.revision != before.revision
    if corrected and before.status not in CORRECTABLE:
        return f"it is {before.status} and may not be corrected"
    reopened = corrected or (granted and before.status in GRANTED)
    if not reopened:
        if before.preparation_sha256 not in (None, after.preparation_sha256):
            return f"its preparation {before.preparation_sha256} is frozen"
        if before.plan_sha256 not in (None, after.plan_sha256):
            return f"its plan {before.plan_sha256} is frozen"
    if after.attempt != before.attempt:
        return None
    if before.started_at not in (None, after.started_at) and not (
        after.started_at is None and after.status in _NOT_STARTED
    ):
        return f"it started at {before.started_at}, not at {after.started_at}"
    if before.gate_passed and not after.gate_passed and after.status in (_S.RUNNING, _S.VERIFYING):
        return "its publication gate was passed"
    return None
