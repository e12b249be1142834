"""The judgement of a request: may this principal ask it, of this node, for this plan. Pure.

The command that posts a request asks beforehand, the owner of the run asks again when it consumes it; both call
`judge`, so they cannot disagree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from hostres.errors import Code
from store.contracts import Request, RequestKind
from store.lifecycle import FINAL, Status
from store.rules import DEFAULT_RULES, WHOLE_RUN, Action, Matter, Rule, Verdict, verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The request may be consumed.

    Attributes:
        rule: Id of the rule that allows it.

    """

    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The request is refused.

    Attributes:
        code: The stable code.
        what: What is wrong, one line.
        todo: What the reader can do about it, one line.

    """

    code: Code
    what: str
    todo: str


ACTIONS: Final[Mapping[RequestKind, Action]] = MappingProxyType(
    {
        RequestKind.APPROVE: Action.APPROVE,
        RequestKind.DENY: Action.APPROVE,
        RequestKind.CANCEL: Action.CANCEL,
        RequestKind.RETRY: Action.RETRY,
        RequestKind.REPLAY: Action.REPLAY,
        RequestKind.SETTLE: Action.SETTLE,
        RequestKind.ACCEPT_INCOMPATIBLE: Action.CANCEL,  # it ends nodes, and nothing else
    }
)
"""What asking for that amounts to."""

_NEEDS: Final[Mapping[RequestKind, frozenset[Status]]] = MappingProxyType(
    {
        RequestKind.APPROVE: frozenset({Status.APPROVAL_REQUIRED}),
        RequestKind.DENY: frozenset({Status.APPROVAL_REQUIRED}),
        RequestKind.CANCEL: frozenset(Status) - FINAL,
        RequestKind.RETRY: frozenset({Status.FAILED, Status.BLOCKED}),
        RequestKind.REPLAY: frozenset({Status.AMBIGUOUS_CODE}),
        RequestKind.SETTLE: frozenset({Status.AMBIGUOUS}),
        RequestKind.ACCEPT_INCOMPATIBLE: frozenset(),  # it is about the run, and names nodes in its data
    }
)
"""In which statuses of the node a request of that kind has something to answer."""

OF_RUN: Final = frozenset({RequestKind.CANCEL, RequestKind.ACCEPT_INCOMPATIBLE})
"""Requests that may be about a whole run and name no node."""
_BOUND_TO_PLAN: Final = frozenset({RequestKind.APPROVE, RequestKind.DENY})


def judge(
    request: Request,
    *,
    status: Status | None,
    plan_sha256: str | None,
    rules: Sequence[Rule] = DEFAULT_RULES,
    matter: Matter = WHOLE_RUN,
) -> Accepted | Refused:
    """Say whether *request* may be consumed.

    Args:
        request: What somebody wants.
        status: The status of its node; None if it names no node.
        plan_sha256: The digest of the node's frozen plan, if it has one.
        rules: The authority rules, in order.
        matter: What it is about.

    """
    about = f"node {request.node}" if request.node else "the run"
    what_for = ACTIONS[request.kind]
    said, rule = verdict(rules, principal=request.principal, action=what_for, matter=matter)
    if said is not Verdict.ALLOW:
        return Refused(
            code=Code.CONFLICT,
            what=f"{request.principal} may not {request.kind} {about} (rule {rule})",
            todo="a person must do it, from a shell that no node of a run has started",
        )
    if request.node is None and request.kind not in OF_RUN:
        return Refused(code=Code.CONFLICT, what=f"the request to {request.kind} names no node", todo="name one")
    if status is not None and status not in _NEEDS[request.kind]:
        return Refused(
            code=Code.CONFLICT,
            what=f"{about} is {status}; there is nothing to {request.kind}",
            todo=f"see `hostler show {request.run_id}` for what waits",
        )
    named = request.plan_sha256
    if request.kind in _BOUND_TO_PLAN and named is None:
        return Refused(
            code=Code.CONFLICT,
            what=f"the request to {request.kind} {about} names no plan; {plan_sha256} waits",
            todo=f"look at it and give --plan {plan_sha256}",
        )
    if named is not None and named != plan_sha256:
        return Refused(
            code=Code.CONFLICT,
            what=f"{about} waits with plan {plan_sha256}, not {named}",
            todo=f"look at it again with `hostler approve {request.run_id} {request.node}`",
        )
    return Accepted(rule=rule)
