"""Whether a node has brought what it must show for its work: no less and no more. Pure.

A human approval is never brought by whoever did the work: only a person's grant for the result counts.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pydantic import JsonValue

from hostres.errors import Code
from store.approvals import Refused
from store.contracts import Failure, NodeRecord, Request, RequestKind
from store.lazy_dataclass import dataclass
from store.lifecycle import Status
from store.policy import FailureCode
from store.rules import principal_kind
from store.terms import Evidence, EvidenceType

_ANSWERS: Final = frozenset({RequestKind.APPROVE, RequestKind.DENY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """What is wrong with the evidence of a node.

    Attributes:
        missing: Due, and not brought.
        unexpected: Brought, and not due.
        unapproved: Approvals that are due, and that no person has given.

    """

    missing: tuple[Evidence, ...] = ()
    unexpected: tuple[Evidence, ...] = ()
    unapproved: tuple[Evidence, ...] = ()

    @property
    def awaits_approval(self) -> bool:
        """Whether a person's approval is all that is wanting."""
        return bool(self.unapproved) and not self.missing and not self.unexpected

    def document(self) -> dict[str, JsonValue]:
        """Return it as the event of the node tells it."""
        return {
            name: documents(pieces)
            for name, pieces in (
                ("missing", self.missing),
                ("unexpected", self.unexpected),
                ("unapproved", self.unapproved),
            )
            if pieces
        }

    def __str__(self) -> str:
        named = (("missing", self.missing), ("unexpected", self.unexpected), ("unapproved", self.unapproved))
        return "; ".join(
            f"{what}: {', '.join(f'{each.id} ({each.type})' for each in pieces)}" for what, pieces in named if pieces
        )


def shortfall(due: Sequence[Evidence], brought: Iterable[Evidence], *, approved: bool) -> Shortfall | None:
    """Say what is wrong with what a node has brought, or None if nothing is.

    Args:
        due: What its terms ask for.
        brought: What its attempt has reported.
        approved: Whether a person has approved its result.

    """
    wanted, given = set(due), set(brought)
    approvals = {each for each in wanted if each.type is EvidenceType.HUMAN_APPROVAL}
    found = Shortfall(
        missing=_sorted(wanted - approvals - given),
        unexpected=_sorted(given - wanted),
        unapproved=() if approved else _sorted(approvals),
    )
    return None if found == Shortfall() else found


def failure_of(found: Shortfall, *, run_id: str, node: str) -> Failure:
    """Return what people are told of a node that is blocked for its evidence."""
    if found.awaits_approval:
        code, todo = FailureCode.AUTHORIZATION_REQUIRED, f"look at its result, then: hostler approve {run_id} {node}"
    else:
        code = FailureCode.INVALID_DATA
        todo = f"mend what brings it, then: hostler retry {run_id} {node} --anew"
    return Failure(code=code, message=f"evidence {found}"[:4000], todo=todo)


def is_judged_again(record: NodeRecord) -> bool:
    """Say whether a retry of the node checks its result again instead of making it again."""
    return record.status is Status.BLOCKED and record.output_sha256 is not None


def awaits_approval(record: NodeRecord) -> bool:
    """Say whether the node is blocked for nothing but a person's approval of its result."""
    return (
        is_judged_again(record)
        and record.failure is not None
        and record.failure.code is FailureCode.AUTHORIZATION_REQUIRED
    )


def asked_status(record: NodeRecord, kind: RequestKind) -> Status:
    """Return the status that a request of that kind is judged by: a result may be approved as a plan may."""
    if kind in _ANSWERS and awaits_approval(record):
        return Status.APPROVAL_REQUIRED
    return record.status


def evidence_refusal(request: Request) -> Refused | None:
    """Refuse that anybody but a person approves a result, whatever the rules of this machine allow."""
    if request.kind not in _ANSWERS or principal_kind(request.principal) == "human":
        return None
    return Refused(
        code=Code.CONFLICT,
        what=f"{request.principal} is no person; only a person gives the approval that node {request.node} has to show",
        todo="a person must do it, from a shell that no node of a run has started",
    )


def documents(pieces: Iterable[Evidence]) -> list[JsonValue]:
    """Return pieces of evidence as JSON."""
    return [{"id": each.id, "type": each.type.value} for each in pieces]


def _sorted(pieces: Iterable[Evidence]) -> tuple[Evidence, ...]:
    return tuple(sorted(pieces, key=lambda each: (each.type, each.id)))
