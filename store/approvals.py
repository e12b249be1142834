"""Who may do what: the authority rules as data, and the judgement of a request. Pure.

The command that posts a request asks beforehand, the owner of the run asks again when it consumes it; both call
`judge`, so they cannot disagree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from hostres.errors import Code
from store.amounts import Usage
from store.budgets import read_amounts
from store.contracts import Request, RequestKind
from store.lifecycle import FINAL, Status
from store.policy import Effect, PreparationKind
from store.transitions import CORRECTABLE

PRINCIPAL_KINDS: Final = frozenset({"human", "agent", "service"})
NO_RULE: Final = "none"
"""Stands for the rule where none matched."""


class Verdict(StrEnum):
    """What a rule says."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Action(StrEnum):
    """What a principal can want."""

    PREPARE = "prepare"
    EFFECT = "effect"
    APPROVE = "approve"
    RETRY = "retry"
    REPLAY = "replay"
    SETTLE = "settle"
    CORRECT = "correct"
    CANCEL = "cancel"
    RECOVER = "recover"
    BUDGET = "budget"
    WORK = "work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One line of the authority rules; None matches everything.

    Attributes:
        id: Recorded with every grant that the rule let be given.
        verdict: What it says.
        principal_kind: human, agent or service.
        action: What is wanted.
        effect: The effect of the node that it is wanted for.
        preparation: What the node's planner wants to look at.
        parents_owner: Whether it is only about whoever owns the parent of the node.

    """

    id: str
    verdict: Verdict
    principal_kind: str | None = None
    action: str | None = None
    effect: Effect | None = None
    preparation: PreparationKind | None = None
    parents_owner: bool = False

    def matches(
        self,
        principal_kind: str,
        action: str,
        effect: Effect | None,
        preparation: PreparationKind | None,
        *,
        parents_owner: bool = False,
    ) -> bool:
        """Say whether the rule is about that."""
        return (
            self.parents_owner <= parents_owner
            and self.principal_kind in (None, principal_kind)
            and self.action in (None, action)
            and self.effect in (None, effect)
            and self.preparation in (None, preparation)
        )


_HUMANS_ONLY: Final = (
    Action.APPROVE, Action.RETRY, Action.REPLAY, Action.SETTLE, Action.CORRECT, Action.CANCEL, Action.RECOVER,
    Action.BUDGET,
)  # fmt: skip
_RECOVERY: Final = (Action.RETRY, Action.CORRECT, Action.CANCEL, Action.RECOVER)
"""What whoever owns its parent may do with a node that got into trouble."""

DEFAULT_RULES: Final = (
    *(
        Rule(id=f"default.prepare-{kind}", action=Action.PREPARE, preparation=kind, verdict=Verdict.ALLOW)
        for kind in (PreparationKind.LOCAL_MEDIA, PreparationKind.PROJECT_STATE)
    ),
    Rule(id="default.ask-preparation", action=Action.PREPARE, verdict=Verdict.ASK),
    Rule(id="default.ask-paid-cloud", action=Action.EFFECT, effect=Effect.PAID_CLOUD, verdict=Verdict.ASK),
    Rule(id="default.ask-live-control", action=Action.EFFECT, effect=Effect.LIVE_CONTROL, verdict=Verdict.ASK),
    Rule(id="default.allow-effects", action=Action.EFFECT, verdict=Verdict.ALLOW),
    Rule(id="default.allow-work", action=Action.WORK, verdict=Verdict.ALLOW),
    *(
        Rule(id=f"default.human-{action}", principal_kind="human", action=action, verdict=Verdict.ALLOW)
        for action in _HUMANS_ONLY
    ),
    *(
        Rule(id=f"default.owner-{action}", parents_owner=True, action=action, verdict=Verdict.ALLOW)
        for action in _RECOVERY
    ),
)
"""In order; the first match wins, and no match is a denial."""


def principal_kind(principal: str) -> str | None:
    """Return the kind of `kind:id`, or None if it is not a principal."""
    kind, colon, name = principal.partition(":")
    return kind if colon and name and kind in PRINCIPAL_KINDS else None


def is_owner(principal: str, owner: str | None) -> bool:
    """Say whether the principal `kind:id` is the owner of that id."""
    return owner is not None and principal_kind(principal) is not None and principal.partition(":")[2] == owner


def verdict(
    rules: Sequence[Rule],
    *,
    principal: str,
    action: str,
    effect: Effect | None,
    preparation: PreparationKind | None = None,
    parents_owner: bool = False,
) -> tuple[Verdict, str]:
    """Ask the rules.

    Args:
        rules: In order; the first match wins.
        principal: `kind:id`.
        action: What is wanted.
        effect: The effect of the node that it is wanted for; None where it is about no one node.
        preparation: What is to be looked at, for the action prepare.
        parents_owner: Whether the principal owns the parent of the node.

    Returns:
        What they say, and the id of the rule that said it (`NO_RULE` if none matched).

    """
    kind = principal_kind(principal)
    if kind is not None:
        for rule in rules:
            if rule.matches(kind, action, effect, preparation, parents_owner=parents_owner):
                return rule.verdict, rule.id
    return Verdict.DENY, NO_RULE


_STRICTNESS: Final = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY)


def preparation_verdict(
    rules: Sequence[Rule], kinds: Sequence[PreparationKind], *, principal: str, effect: Effect | None
) -> tuple[Verdict, str]:
    """Ask the rules about all that a preparation looks at; the strictest answer counts.

    Args:
        rules: In order; the first match wins.
        kinds: What is looked at; nothing needs no leave.
        principal: `kind:id`.
        effect: The effect of the node.

    Returns:
        What they say, and the id of the rule that said it.

    """
    answers = [
        verdict(rules, principal=principal, action=Action.PREPARE, effect=effect, preparation=kind) for kind in kinds
    ]
    return max(answers, key=lambda answer: _STRICTNESS.index(answer[0]), default=(Verdict.ALLOW, NO_RULE))


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
        RequestKind.CORRECT: Action.CORRECT,
        RequestKind.RECOVER: Action.RECOVER,
        RequestKind.ACCEPT_INCOMPATIBLE: Action.CANCEL,  # it ends nodes, and nothing else
        RequestKind.LEASE_WORK: Action.WORK,
        RequestKind.SUBMIT_WORK: Action.WORK,
        RequestKind.GIVE_BACK_WORK: Action.WORK,
        RequestKind.BUDGET: Action.BUDGET,
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
        RequestKind.CORRECT: CORRECTABLE,
        RequestKind.RECOVER: frozenset({Status.RUNNING}),
        RequestKind.ACCEPT_INCOMPATIBLE: frozenset(),  # it is about the run, and names nodes in its data
        RequestKind.LEASE_WORK: frozenset(),
        RequestKind.SUBMIT_WORK: frozenset(Status),  # what comes too late is refused with what it spent
        RequestKind.GIVE_BACK_WORK: frozenset(Status),
        RequestKind.BUDGET: frozenset(Status),  # a retry that failed for want of it may be made after it
    }
)
"""In which statuses of the node a request of that kind has something to answer."""

OF_RUN: Final = frozenset(
    {RequestKind.CANCEL, RequestKind.ACCEPT_INCOMPATIBLE, RequestKind.LEASE_WORK, RequestKind.BUDGET}
)
"""Requests that may be about a whole run and name no node."""
_BOUND_TO_PLAN: Final = frozenset({RequestKind.APPROVE, RequestKind.DENY})


def _says_how_much(request: Request) -> bool:
    """Say whether the amounts in the data of a request, where it needs or may have any, are amounts."""
    try:
        if request.kind is RequestKind.BUDGET:
            read_amounts(request.data.get("add"))
        if request.kind is RequestKind.SETTLE and "spent" in request.data:
            Usage.model_validate(request.data["spent"])
    except ValueError:
        return False
    return True


def judge(
    request: Request,
    *,
    status: Status | None,
    plan_sha256: str | None,
    rules: Sequence[Rule] = DEFAULT_RULES,
    effect: Effect | None = None,
    parents_owner: str | None = None,
    revision: int = 0,
) -> Accepted | Refused:
    """Say whether *request* may be consumed.

    Args:
        request: What somebody wants.
        status: The status of its node; None if it names no node.
        plan_sha256: The digest of the node's frozen plan, if it has one.
        rules: The authority rules, in order.
        effect: The effect of the node.
        parents_owner: Id of the owner of the node's parent, who may recover its children.
        revision: Which revision of its input the node has.

    """
    about = f"node {request.node}" if request.node else "the run"
    what_for = ACTIONS[request.kind]
    said, rule = verdict(
        rules,
        principal=request.principal,
        action=what_for,
        effect=effect,
        parents_owner=is_owner(request.principal, parents_owner),
    )
    if said is not Verdict.ALLOW:
        return Refused(
            code=Code.CONFLICT,
            what=f"{request.principal} may not {request.kind} {about} (rule {rule})",
            todo=_who(what_for, parents_owner),
        )
    if request.node is None and request.kind not in OF_RUN:
        return Refused(code=Code.CONFLICT, what=f"the request to {request.kind} names no node", todo="name one")
    if status is not None and status not in _NEEDS[request.kind]:
        return Refused(
            code=Code.CONFLICT,
            what=f"{about} is {status}; there is nothing to {request.kind}",
            todo=f"see `hostler show {request.run_id}` for what waits",
        )
    if not _says_how_much(request):
        return Refused(
            code=Code.INVALID_DATA,
            what=f"the request to {request.kind} {about} does not say how much",
            todo="give amounts such as cost=5 or tokens=1000",
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
    if request.kind is RequestKind.CORRECT and request.data.get("revision") != revision:
        return Refused(
            code=Code.CONFLICT,
            what=f"{about} has revision {revision} by now; the request corrects {request.data.get('revision')}",
            todo=f"look at it again with `hostler show {request.run_id}`, then correct what it is now",
        )
    return Accepted(rule=rule)


def _who(action: Action, parents_owner: str | None) -> str:
    """Say who may do it."""
    person = "a person must do it, from a shell that no node of a run has started"
    if action in _RECOVERY and parents_owner is not None:
        return f"{person}; or the owner of its parent, {parents_owner}"
    return person
